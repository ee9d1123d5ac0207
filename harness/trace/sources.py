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
from harness.model.figures import counted
from harness.model.operation import WHOLE_TABLE
from harness.trace.blocks import Alias, BlockColumns
from harness.trace.engine import Engine, Tell, reason_of
from harness.trace.head import BODIES, TraceError, TraceHead, ending
from harness.trace.logs.azure_monitor import OPERATION, TIME, column_name, csv_entries, json_entries
from harness.trace.logs.entries import (
    DAMAGED,
    SKIPPED_BYTES,
    LogEntry,
    RepeatedEntries,
    first_lines,
    lines_of,
    unpacked,
)
from harness.trace.logs.joining import Joiner
from harness.trace.logs.storage_analytics import VERSIONS, classic_entries
from harness.trace.operations import TracedParts, TracedQuery, address_of
from harness.trace.reader import MAGIC, Trace, files_of
from harness.trace.recorder import Recorder
from harness.trace.row_properties import showing_rows
from harness.trace.schema import AS_TEXT, FORMAT, IN_PARTS, in_order
from harness.trace.writer import TraceWriter

_LOOKED_AT_BYTES = 64 * 1024
_TOLD_BYTES, _TOLD_ENTRIES = 4 * 1024 * 1024, 16
_OF_RECORD = b'"schema_version"'
_GZIP_WITH_FIELD, _FIELD_OF_VERSION_1, _START_BYTES = b"\x1f\x8b\x08\x04", b"TH", 14
_FORMS = {".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json"}
_MOST_SORTED = 100_000_000


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
    """The format of a file, by its beginning, or of a folder with Parquet files.

    Raises:
        SetupError: it cannot be read, or has none of the formats.
    """
    try:
        if path.is_dir() and files_of(path):
            return SourceFormat.TRACE
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        if start.startswith(MAGIC):
            return SourceFormat.TRACE
        if start.startswith(_GZIP_WITH_FIELD) and start.endswith(_FIELD_OF_VERSION_1):
            raise SetupError(
                f"{cut(str(path))} is a trace of format 1, which only development versions of the "
                "harness until November 2026 read: record it again"
            )
        first, *others = first_lines(path, _LOOKED_AT_BYTES) or [b""]
        if any(_OF_RECORD in line for line in (first, *others)):
            raise SetupError(
                f"{cut(str(path))} is a record, which holds no single operations. --trace FOLDER "
                "records them, in a run or a watch"
            )
        if (form := _of_line(first, is_first=True)) is not None:
            return form
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
    if os.path.isdir(path) and not files_of(path):
        return any(holds_operations(file) for file in path.rglob("*") if file.is_file())
    try:
        if format_of(path) is not SourceFormat.AZURE_JSON:
            return True
        start = b"".join(first_lines(path, _LOOKED_AT_BYTES)).lower()
    except (OSError, SetupError):
        return False
    return OPERATION.encode() in start


@contextlib.contextmanager
def opened(
    path: Path, tell: Tell = lambda done, total: None, *, rows: bool = False
) -> Iterator[Trace]:
    """The operations in ``path``: of a trace, of a log, or of a folder with logs.

    With ``rows`` they have the properties of their rows: see `harness.trace.row_properties`.

    Raises:
        SetupError: it cannot be read; the message is the reason.
    """
    with contextlib.ExitStack() as stack:

        def scratch() -> Path:
            folder = tempfile.TemporaryDirectory(prefix="table-trace-")
            return Path(stack.enter_context(folder))

        source = path
        if not _is_trace(path):
            source = scratch() / "log"
            _write_log(path, source, tell)
        try:
            trace = Trace(source)
            if trace.crowded and trace.operations > _MOST_SORTED:
                raise TraceError(
                    f"its {trace.operations:,} rows are in no order: sort them by sent_at, with a "
                    "tool for Parquet"
                )
            if trace.crowded:
                trace = trace.copied(in_order(trace.properties), scratch(), tell)
            if rows and trace.properties:
                trace = showing_rows(trace, scratch(), tell)
        except (TraceError, OSError) as error:
            raise SetupError(
                f"{cut(str(path))} cannot be read ({cut(reason_of(error))})"
            ) from error
        stack.callback(trace.close)
        yield trace


def _is_trace(path: Path) -> bool:
    return bool(files_of(path)) if path.is_dir() else format_of(path) is SourceFormat.TRACE


def convert(
    path: Path, into: Path, alias: Alias | None = None, keys: str = "", tell: Tell | None = None
) -> tuple[int, list[str]]:
    """Write what is in ``path`` to a new file, in order: Parquet, ``.csv`` or ``.jsonl``.

    What cannot be read is left out. Returns how many operations it has, and notes on the others.
    ``keys`` is what the head says of the aliases.

    Raises:
        SetupError: a file cannot be read or written.
    """
    told = tell or (lambda done, total: None)
    if into.exists():
        raise SetupError(f"{cut(str(into))} exists: name a new file")
    with (
        tempfile.TemporaryDirectory(prefix="table-trace-") as folder,
        opened(path, told) as trace,
    ):
        head = trace.head
        if alias is not None:
            head = dataclasses.replace(head, keys=keys, account="")
        parts, done = Path(folder) / "parts", 0
        with TraceWriter(parts, head, alias) as writer:
            for batch in trace.batches():
                writer.append([BlockColumns.of(batch, head.started_ms).encode()])
                done += len(batch)
                told(done, 2 * trace.operations)
        _require_written(writer)
        notes = [*trace.notes, *trace.damage.sentences()]
        if trace.operations and not done:
            raise trace.unreadable(str(path))
        try:
            with contextlib.closing(Engine(Path(folder))) as engine:
                engine.copy(
                    AS_TEXT if into.suffix == ".csv" else IN_PARTS,
                    into,
                    form=_FORMS.get(into.suffix, FORMAT),
                    parameters={"files": [str(file) for file in files_of(parts)]},
                    metadata={}
                    if into.suffix in _FORMS
                    else {**head.metadata(), **ending(trace.operations - done, notes)},
                    tell=lambda part, whole: told(whole + part, 2 * whole),
                )
                told(1, 1)
        except (TraceError, OSError) as error:
            raise SetupError(f"{cut(str(into))} cannot be written ({reason_of(error)})") from error
    return done, notes


def log_entries(
    path: Path, tell: Tell, damaged: Callable[[str], None]
) -> Iterator[LogEntry | None]:
    """The entries of a log, or of a folder with logs, each once; None for what is not an entry.

    ``damaged`` takes a sentence for each file whose rest cannot be read, and one on repeated lines.

    Raises:
        SetupError: there is no log, or it is a trace.
    """
    files = _logs(path)
    total, before = sum(file.stat().st_size for file in files), 0
    repeats = RepeatedEntries()
    for file in files:
        reader = _READERS.get(form := format_of(file))
        if reader is None:
            raise SetupError(f"{cut(str(file))} is a {form.value}, not a log of Azure Storage")
        with file.open("rb") as raw:
            try:
                lines = _told(raw, before, total, tell)
                for number, entry in enumerate(reader(lines)):
                    if not number % _TOLD_ENTRIES:
                        tell(min(before + raw.tell(), total - 1), total)
                    if entry is None or not repeats.has(entry):
                        yield entry
            except DAMAGED:
                damaged(f"{file.name} is cut or damaged: the rest of it was left out.")
        before += file.stat().st_size
    if repeats.count:
        damaged(f"Left out: {counted(repeats.count, 'line')} that the log has again.")
    tell(1, 1)


def _write_log(path: Path, into: Path, tell: Tell) -> None:
    """Write the operations of a log, or of a folder with logs, to a new trace."""
    joiner, recorder = Joiner(), Recorder()
    damaged: list[str] = []
    results = joiner.results(log_entries(path, tell, damaged.append))
    first = next(results, None)
    if first is None:
        why = " ".join(["", *joiner.sentences(), *damaged]).rstrip(".")
        raise SetupError(f"{cut(str(path))} holds no operation on entities.{why}".rstrip("."))
    head = TraceHead(
        # Entries are not in order: the reader takes the earliest one as the start.
        started_ms=int(first[0].sent_s) * 1000,
        source=format_of(_logs(path)[0]).value,
        name=path.name,
        account=joiner.account,
        bytes_of=BODIES,
    )
    with TraceWriter(into, head) as writer:
        recorder.add(*first)
        for result, client in results:
            recorder.add(result, client)
            writer.append(recorder.drain(0.0))
        writer.append(recorder.drain(0.0, final=True))
        writer.close(notes=[*joiner.sentences(), *damaged])
    _require_written(writer)


def _logs(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = []
    # The reason for a folder of results is its record, not the first of its files.
    for file in sorted(path.rglob("*"), key=lambda file: (file.name != "run.json", file)):
        if file.is_file() and file.stat().st_size:
            if _is_trace(file):
                raise SetupError(f"{cut(str(file))} is a trace: name it, not its folder")
            files.append(file)
    if not files:
        raise SetupError(f"there is no log in {cut(str(path))}")
    return files


def _told(raw: io.BufferedReader, before: int, total: int, tell: Tell) -> Iterator[bytes]:
    """The lines of a file, while ``tell`` is told of the progress."""
    done = told = 0
    for line in lines_of(unpacked(raw)):
        yield line
        done += len(line) or SKIPPED_BYTES
        if done >= told + _TOLD_BYTES:
            tell(before + raw.tell(), total)
            told = done


def ordered_aliases(trace: Trace, tell: Tell = lambda done, total: None) -> Alias:
    """Aliases for all keys and values of a trace, which sort as the keys do.

    All different keys are held in memory.
    """
    keys: set[str | None] = set()
    done = 0
    for batch in trace.batches():
        done += len(batch)
        tell(done, trace.operations)
        keys.update(batch.partition_keys, batch.row_keys)
        keys.update(address_of(shape.client) for shape in set(batch.shapes))
        values = [*batch.properties]
        for detail in filter(None, batch.details):
            if isinstance(detail, TracedParts):
                keys.update(detail.row_keys)
                values += detail.properties
            elif isinstance(detail, TracedQuery):
                keys.update(detail.bounds, detail.continued_at or ())
                values.append(dict(detail.equal))
        keys.update(*(one.values() for one in values if one))
    ordered = sorted(key for key in keys if key and key != WHOLE_TABLE)
    width = len(str(len(ordered)))
    return {key: f"key-{place:0{width}}" for place, key in enumerate(ordered, 1)}.__getitem__


def _require_written(writer: TraceWriter) -> None:
    if writer.problem:
        raise SetupError(f"{cut(str(writer.path))} cannot be written ({writer.problem})")
