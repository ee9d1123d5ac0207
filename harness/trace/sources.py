"""Opens any source of traced operations: a trace of the harness, or a log of Azure Storage.

A log is converted to a temporary trace first, because its entries are not in order, and because an
operation's attempts are entries of their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.model.errors import SetupError, cut
from harness.model.operation import WHOLE_TABLE
from harness.trace.logs.azure_monitor import OPERATION, TIME, column_name, csv_entries, json_entries
from harness.trace.logs.entries import DAMAGED, LogEntry, first_lines, unpacked
from harness.trace.logs.joining import Joiner
from harness.trace.logs.storage_analytics import VERSIONS, classic_entries
from harness.trace.members import BODIES, TraceError, TraceHead, next_member
from harness.trace.operations import TracedParts, TracedQuery, address_of
from harness.trace.reader import Trace, has_member
from harness.trace.recorder import Recorder, TraceWriter

_LOOKED_AT_BYTES = 64 * 1024
_TOLD_BYTES = 4 * 1024 * 1024
_OF_RECORD = b'"schema_version"'

Tell = Callable[[int, int], None]
"""Takes how many bytes are read, and how many there are."""
Alias = Callable[[str], str]


class SourceFormat(enum.Enum):
    """A format of traced operations. The value is its name for users."""

    TRACE = "trace"
    AZURE_JSON = "Azure Monitor resource log, JSON lines"
    AZURE_CSV = "Azure Monitor resource log, CSV"
    CLASSIC = "Storage Analytics log"


_READERS: dict[SourceFormat, Callable[[Iterable[bytes]], Iterator[LogEntry | None]]] = {
    SourceFormat.AZURE_JSON: json_entries,
    SourceFormat.AZURE_CSV: csv_entries,
    SourceFormat.CLASSIC: classic_entries,
}


def format_of(path: Path) -> SourceFormat:
    """The format of a file, by its beginning.

    Raises:
        SetupError: it cannot be read, or has none of the formats.
    """
    try:
        with path.open("rb") as file:
            if next_member(file.read(_LOOKED_AT_BYTES)) >= 0:
                return SourceFormat.TRACE
        first, *others = first_lines(path, _LOOKED_AT_BYTES) or [b""]
        if any(_OF_RECORD in line for line in (first, *others)):
            raise SetupError(
                f"{cut(str(path))} is a record, which holds no single operations. --trace FILE "
                "records them, in a run or a watch"
            )
        if (form := _of_line(first, is_first=True)) is not None:
            return form
        if has_member(path):
            return SourceFormat.TRACE
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    if not first:
        raise SetupError(f"{cut(str(path))} is empty")
    # The first line may be cut.
    if (form := next(filter(None, map(_of_line, others)), None)) is not None:
        return form
    raise SetupError(
        f"{cut(str(path))} is neither a trace of the harness nor a log of Azure Storage: Azure "
        "Monitor's StorageTableLogs as JSON or CSV, or Storage Analytics 1.0 or 2.0"
    )


def _of_line(line: bytes, *, is_first: bool = False) -> SourceFormat | None:
    """The format of a log by one of its lines."""
    text = line.decode("utf-8", "replace").lstrip()
    if text.startswith(("{", "[")):
        return SourceFormat.AZURE_JSON
    if text.partition(";")[0] in VERSIONS:
        return SourceFormat.CLASSIC
    names = {column_name(name) for name in text.split(",")} if is_first else set()
    return SourceFormat.AZURE_CSV if OPERATION in names and names & set(TIME) else None


def holds_operations(path: Path) -> bool:
    """Whether a file is a trace or a log, or a folder has such a file; a record is neither."""
    if os.path.isdir(path):
        return any(holds_operations(file) for file in path.rglob("*") if file.is_file())
    try:
        if format_of(path) is not SourceFormat.AZURE_JSON:
            return True
        start = b"".join(first_lines(path, _LOOKED_AT_BYTES)).lower()
    except (OSError, SetupError):
        return False
    return OPERATION.encode() in start


@contextlib.contextmanager
def opened(path: Path, tell: Tell = lambda done, total: None) -> Iterator[Trace]:
    """The operations in ``path``: of a trace, of a log, or of a folder with logs.

    Raises:
        SetupError: it cannot be read; the message is the reason.
    """
    if not path.is_dir() and format_of(path) is SourceFormat.TRACE:
        yield _trace(path)
        return
    with tempfile.TemporaryDirectory(prefix="table-trace-") as folder:
        made = Path(folder) / "log.trace"
        convert(path, made, tell=tell)
        yield _trace(made)


def _trace(path: Path) -> Trace:
    try:
        return Trace(path)
    except TraceError as error:
        raise SetupError(f"{cut(str(path))} cannot be read: {error}") from error
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error


def convert(
    path: Path, into: Path, alias: Alias | None = None, keys: str = "", tell: Tell | None = None
) -> None:
    """Write what is in ``path`` to a new trace.

    Args:
        path: A trace, a log, or a folder with logs.
        keys: What the head says of the aliases.

    Raises:
        SetupError: a file cannot be read or written.
    """
    if not path.is_dir() and format_of(path) is SourceFormat.TRACE:
        _copy(path, into, alias, keys, tell)
        return
    files = _logs(path)
    joiner, recorder = Joiner(), Recorder()
    damaged: list[str] = []
    total, before = sum(file.stat().st_size for file in files), 0

    def entries() -> Iterator[LogEntry | None]:
        nonlocal before
        for file in files:
            with file.open("rb") as raw:
                try:
                    yield from _READERS[format_of(file)](_told(raw, before, total, tell))
                except DAMAGED:
                    damaged.append(f"{file.name} is cut or damaged: the rest of it was left out.")
            before += file.stat().st_size

    results = joiner.results(entries())
    first = next(results, None)
    if first is None:
        why = " ".join(["", *joiner.tally.sentences(), *damaged]).rstrip(".")
        raise SetupError(f"{cut(str(path))} holds no operation on entities.{why}".rstrip("."))
    head = TraceHead(
        # Entries are not in order: the reader takes the earliest one as the start.
        started_ms=int(first[0].sent_s) * 1000,
        source=format_of(files[0]).value,
        name=path.name,
        account="" if alias else joiner.account,
        keys=keys,
        bytes_of=BODIES,
    )
    with TraceWriter(into, head, alias) as writer:
        recorder.add(*first)
        for result, client in results:
            recorder.add(result, client)
            writer.append(recorder.drain(0.0))
        writer.append(recorder.drain(0.0, final=True))
        writer.close(notes=[*joiner.tally.sentences(), *damaged])
    _require_written(writer)


def _logs(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = []
    # The reason for a folder of results is its record, not the first of its files.
    for file in sorted(path.rglob("*"), key=lambda file: (file.name != "run.json", file)):
        if file.is_file() and file.stat().st_size:
            if format_of(file) is SourceFormat.TRACE:
                raise SetupError(f"{cut(str(file))} is a trace: name it, not its folder")
            files.append(file)
    if not files:
        raise SetupError(f"there is no log in {cut(str(path))}")
    return files


def _told(raw: io.BufferedReader, before: int, total: int, tell: Tell | None) -> Iterator[bytes]:
    """The lines of a file, while ``tell`` is told of the progress."""
    done = told = 0
    for line in unpacked(raw):
        yield line
        done += len(line)
        if tell is not None and done >= told + _TOLD_BYTES:
            tell(before + raw.tell(), total)
            told = done


def _copy(path: Path, into: Path, alias: Alias | None, keys: str, tell: Tell | None) -> None:
    """Write the readable blocks of a trace to another one."""
    trace = _trace(path)
    head = trace.head
    if alias is not None:
        head = dataclasses.replace(head, keys=keys, account="")
    with TraceWriter(into, head, alias) as writer:
        for block in trace.blocks():
            writer.append([block])
            if tell is not None:
                tell(writer.operations, trace.operations)
        lost = trace.operations - writer.operations
        writer.close(lost=lost, notes=[*trace.notes, *trace.damage.sentences()])
    _require_written(writer)


def ordered_aliases(trace: Trace) -> Alias:
    """Aliases for all keys of a trace, which sort as the keys do.

    All different keys are held in memory.
    """
    keys: set[str | None] = set()
    for batch in trace.batches():
        keys.update(batch.partition_keys, batch.row_keys)
        keys.update(address_of(shape.client) for shape in set(batch.shapes))
        for detail in filter(None, batch.details):
            if isinstance(detail, TracedParts):
                keys.update(detail.row_keys)
            elif isinstance(detail, TracedQuery):
                keys.update(detail.bounds, detail.continued_at or ())
    ordered = sorted(key for key in keys if key and key != WHOLE_TABLE)
    width = len(str(len(ordered)))
    return {key: f"key-{place:0{width}}" for place, key in enumerate(ordered, 1)}.__getitem__


def _require_written(writer: TraceWriter) -> None:
    if writer.problem:
        raise SetupError(f"{cut(str(writer.path))} cannot be written ({writer.problem})")
