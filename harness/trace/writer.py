"""Writes a trace file: a head, blocks as they come, and an end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from harness.model.errors import SetupError, cut
from harness.model.figures import counted
from harness.trace.blocks import renamed
from harness.trace.members import BLOCK, END, Prefix, TraceHead, pack, unpack


class TraceWriter:
    """One trace file that is being written.

    A failure to write, such as a full disk, does not raise: the file ends there, and ``problem``
    says why. Recording must not harm what is recorded.

    Args:
        path: The file, which must not exist.
        head: What it says of itself.
        alias: Makes the alias of a key; None keeps keys.

    Raises:
        SetupError: the file exists or cannot be created.
    """

    def __init__(
        self, path: Path, head: TraceHead, alias: Callable[[str], str] | None = None
    ) -> None:
        self.path = path
        self.operations = 0
        self.bytes = 0
        self.problem = ""
        self._alias = alias
        try:
            self._file = path.open("xb", buffering=0)
        except FileExistsError as error:
            raise SetupError(
                f"{cut(str(path))} exists. A trace is written to a new file: name another one"
            ) from error
        except OSError as error:
            raise SetupError(
                f"{cut(str(path))} cannot be written ({error.strerror or error})"
            ) from error
        self._write(head.encode())
        if self.problem:
            self._file.close()
            raise SetupError(f"{cut(str(path))} cannot be written ({self.problem})")

    @property
    def sentence(self) -> str:
        """What there is to say of the file at its end."""
        operations = counted(self.operations, "operation")
        if self.problem:
            return f"The trace {self.path} ends after {operations}: {self.problem}."
        return f"Trace: {self.path} ({operations}; harness trace {shlex.quote(str(self.path))})"

    def append(self, blocks: Iterable[bytes]) -> None:
        """Append blocks of a `harness.trace.recorder.Recorder`."""
        for block in blocks:
            if self.problem:
                return
            prefix = Prefix.read(block)
            assert prefix is not None
            if self._alias is not None:
                block = pack(
                    BLOCK,
                    renamed(unpack(block), self._alias),
                    operations=prefix.operations,
                    first_ms=prefix.first_ms,
                    last_ms=prefix.last_ms,
                )
            if self._write(block):
                self.operations += prefix.operations

    def close(self, *, lost: int = 0, notes: Sequence[str] = ()) -> None:
        """End the file.

        Args:
            lost: Operations that are known to be missing in it.
            notes: Sentences about what else is missing.
        """
        if self._file.closed:
            return
        if not self.problem:
            self._write(pack(END, {"operations": self.operations, "lost": lost, "notes": [*notes]}))
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()

    def _write(self, member: bytes) -> bool:
        """Write a whole member, or nothing of it."""
        before = self._file.tell()
        try:
            view = memoryview(member)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self.problem = error.strerror or str(error)
            # Half of a member would be reported as damage.
            os.ftruncate(self._file.fileno(), before)
            return False
        self.bytes += len(member)
        return True
