"""Writes a trace: a folder of Parquet files, each complete when it appears under its name.

An operation is recorded when it ends, and a trace is in the order in which operations begin. So
the operations of a file are sorted, and those that took much longer than others have files of
their own: otherwise a reader would have to keep many files in memory to bring them into order.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.errors import SetupError, cut
from harness.model.figures import counted
from harness.trace.blocks import DETAILS, NUMBERS, TEXTS, Alias, RowShape, count_of, decoded
from harness.trace.engine import Engine, reason_of
from harness.trace.head import TraceError, TraceHead, ending
from harness.trace.schema import written

LATE_MS = 2000
"""An operation that began this much before the latest one of the files before is late."""
EVERY_S = 4.0
"""A file is written after this time, or when there is enough for one."""
MOST_ROWS, MOST_BYTES = 120_000, 12 * 1024 * 1024
ENDING = ".parquet"

_SHAPE = ("client", "kind", "table_name", "operation", "outcome", "estimated", "attempts")
_ANSWER = ("status", "error_code", "scope")


class TraceWriter:
    """One trace that is being written.

    A failure to write, such as a full disk, does not raise: the trace ends there, and ``problem``
    says why. Recording must not harm what is recorded.

    Args:
        path: The folder, which must not exist.
        alias: Makes the alias of a key; None keeps keys.
        pool: Writes the files, so that the caller need not wait; shut down by `close`.

    Raises:
        SetupError: the folder exists or cannot be created.
    """

    def __init__(
        self,
        path: Path,
        head: TraceHead,
        alias: Alias | None = None,
        *,
        pool: concurrent.futures.Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.operations = 0
        self.problem = ""
        self._head, self._alias = head, alias
        self._pool, self._clock = pool, clock
        self._writing: concurrent.futures.Future[None] | None = None
        self._waiting: list[bytes] = []
        self._rows = self._bytes = self._newest_ms = 0
        self._since_s = clock()
        self._numbers = itertools.count()
        self._closed = False
        try:
            path.mkdir()
        except FileExistsError as error:
            raise SetupError(
                f"{cut(str(path))} exists. A trace is written to a new folder: name another one"
            ) from error
        except OSError as error:
            raise SetupError(
                f"{cut(str(path))} cannot be written ({error.strerror or error})"
            ) from error
        self._engine = Engine()
        # So that a recording that breaks off at once says what it was.
        self._write([], {})
        if self.problem:
            raise SetupError(f"{cut(str(path))} cannot be written ({self.problem})")

    @property
    def sentence(self) -> str:
        """What there is to say of the trace at its end."""
        operations = counted(self.operations, "operation")
        if self.problem:
            return f"The trace {self.path} ends after {operations}: {self.problem}."
        return f"Trace: {self.path} ({operations}; harness trace {shlex.quote(str(self.path))})"

    def append(self, blocks: Iterable[bytes]) -> None:
        if self.problem or self._closed:
            return
        for block in blocks:
            self._waiting.append(block)
            self._rows += count_of(block)
            self._bytes += len(block)
        now_s = self._clock()
        full = self._rows >= MOST_ROWS or self._bytes >= MOST_BYTES
        if full or (self._rows and now_s >= self._since_s + EVERY_S):
            self._since_s = now_s
            self._flush()

    def close(self, *, counted: int = 0, notes: Sequence[str] = ()) -> None:
        """End the trace. Of ``counted`` operations, those that are not here are said to be lost.

        ``notes`` are sentences about what else is missing.
        """
        if self._closed:
            return
        self._closed = True
        self._flush()
        self._wait()
        ended = ending(max(0, counted - self.operations), notes)
        self._run(lambda: self._write([], ended))
        self._end()

    def discard(self) -> None:
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            self._closed = True
            self._end()

    def _end(self) -> None:
        self._wait()
        if self._pool is not None:
            self._pool.shutdown()
        self._engine.close()

    def _flush(self) -> None:
        """Write what is there. It waits for the files before: memory stays flat."""
        self._wait()
        blocks, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        if blocks:
            self._run(lambda: self._write(blocks, {}))

    def _run(self, write: Callable[[], None]) -> None:
        if self._pool is None:
            write()
        else:
            self._writing = self._pool.submit(write)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, blocks: Sequence[bytes], ended: dict[str, str]) -> None:
        """Write a file, and one for the late operations."""
        if self.problem:
            return
        try:
            columns, shapes = _columns([decoded(block, self._alias) for block in blocks])
            at = columns["at"]
            late = at < self._newest_ms - LATE_MS
            if len(at):
                self._newest_ms = max(self._newest_ms, int(at[-1]))
            if late.any():
                self._write_file({name: of[late] for name, of in columns.items()}, shapes, {})
                columns = {name: of[~late] for name, of in columns.items()}
            if not len(at) or len(columns["at"]):
                self._write_file(columns, shapes, ended)
        except (TraceError, OSError) as error:
            self.problem = reason_of(error)

    def _write_file(
        self, columns: dict[str, Any], shapes: Sequence[RowShape], ended: dict[str, str]
    ) -> None:
        parameters: dict[str, Any]
        parameters = {name: [of[at] for of in shapes] for at, name in enumerate(_SHAPE)}
        parameters["attempts"] = [
            [dict(zip(_ANSWER, answer, strict=True)) for answer in attempts]
            for attempts in parameters["attempts"]
        ]
        self._engine.copy(
            written([name for name in DETAILS if name not in columns], self._head.property_names),
            self.path / f"part-{next(self._numbers):06}{ENDING}",
            parameters=parameters,
            metadata={**self._head.metadata(), **ended},
            table=columns,
        )
        self.operations += len(columns["at"])


def _columns(blocks: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[RowShape]]:
    """The operations of blocks as arrays, in order of their instants; and their shapes."""
    shapes: list[RowShape] = []
    numbers: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in NUMBERS}
    texts: dict[str, list[str | None]] = {name: [] for name in (*TEXTS, *DETAILS)}
    detailed = [name for name in DETAILS if any(block[name] for block in blocks)]
    for block in blocks:
        for name, columns in numbers.items():
            columns.append(np.frombuffer(block[name], dtype=np.int64))
        numbers["shape"][-1] = numbers["shape"][-1] + len(shapes)
        shapes += block["shapes"]
        for name in TEXTS:
            texts[name] += block[name]
        for name in detailed:
            of_block: list[str | None] = [None] * len(numbers["at"][-1])
            for place, text in block[name]:
                of_block[place] = text
            texts[name] += of_block
    nothing = [np.empty(0, dtype=np.int64)]
    arrays = {name: np.concatenate(columns or nothing) for name, columns in numbers.items()}
    for name in (*TEXTS, *detailed):
        arrays[name] = np.array(texts[name], dtype=object)
    order = np.argsort(arrays["at"], kind="stable")
    return {name: array[order] for name, array in arrays.items()}, shapes
