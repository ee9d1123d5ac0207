"""Reads a trace in the order of its instants, with memory that does not grow with its length.

The metadata of the Parquet files are read first. Then rows are read in spans, in the order of
their first instants, and operations are delivered as soon as no later span can have an earlier
one.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import itertools
import operator
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from harness.model.errors import SetupError, cut
from harness.model.figures import counted
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.trace.blocks import detail_in, values_in
from harness.trace.engine import Engine, Tell, Values
from harness.trace.head import TraceError, TraceHead, ending
from harness.trace.operations import (
    Batch,
    Detail,
    RecordedValues,
    TracedOperation,
    TracedShape,
)
from harness.trace.schema import (
    CLIENT_SHAPE,
    COLUMNS,
    GROUPS,
    MOVED,
    PROPERTIES,
    READ,
    ROWS,
    details_of,
    queries_of,
    shapes_of,
    values_of,
)
from harness.trace.spans import Group, Span, spans_of
from harness.trace.valid_values import LATEST_MS, MOST, OUTCOMES, require_numbers, shape_of
from harness.trace.writer import ENDING

MOST_WAITING = 500_000
"""Rows that may have to be in memory to bring the others into order."""
_MOST_METADATA_BYTES = 32 * 1024 * 1024
_ANSWERED_VALUES = 8 * ROWS
_SHAPES = shapes_of(CLIENT_SHAPE)
_MOST_ANSWERS = 50_000
"""Of the shapes that are kept."""
_MOST_NOTES, _MOST_NOTED = 20, 500
MAGIC = b"PAR1"
_TAIL_BYTES = 8
_DETAILED = (Kind.QUERY, Kind.TRANSACTION)
_FIRST_MS = operator.attrgetter("first_ms")
_STRUCT = re.compile(r'STRUCT\(((?:"?\w+"? VARCHAR(?:, )?)+)\)')


@dataclasses.dataclass(slots=True)
class Damage:
    """What cannot be read.

    Attributes:
        files: Files that are cut, or no Parquet files.
        rows: Operations that are no operations, or cannot be read.
        reason: Why, of the first of them.
        broke_off: A recording did not end regularly.
        lost: Operations that the recording itself could not keep.
        headless: Another program wrote a file, so that nothing is known of its source.
    """

    files: int = 0
    rows: int = 0
    reason: str = ""
    broke_off: bool = False
    lost: int = 0
    headless: bool = False

    def sentences(self) -> list[str]:
        said = []
        if self.files:
            said.append(f"{counted(self.files, 'damaged file')} cannot be read ({self.reason}).")
        if self.rows:
            said.append(
                f"{counted(self.rows, 'operation')} in damaged parts cannot be read "
                f"({self.reason})."
            )
        if self.headless:
            said.append("The file does not say what it is of, nor whether keys are aliases.")
        if self.broke_off:
            said.append("The recording broke off: what followed is missing.")
        if self.lost:
            said.append(f"{counted(self.lost, 'operation')} could not be recorded.")
        return said


class Trace:
    """One trace: a Parquet file, or a folder of them.

    ``damage`` is complete after all operations were read. ``notes`` are sentences about what the
    source of the trace left out. ``crowded`` says that its rows are in so little order that they
    have to be sorted before they can be read. ``properties`` are the names of those whose values it
    has; ``shows_rows`` says that it has what is known of rows: `harness.trace.row_properties`.

    Raises:
        TraceError: it is not a trace, or of a later version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage = Damage()
        self.notes: list[str] = []
        self.engine = Engine()
        self._shapes: dict[int, TracedShape] = {}
        self._answers = 0
        files = files_of(path)
        self.bytes = sum(file.stat().st_size for file in files)
        heads: dict[TraceHead, None] = {}
        readable: list[str] = []
        ends = 0
        for file in files:
            try:
                metadata = self._metadata(file)
                readable.append(str(file))
            except TraceError as error:
                self._note_damage(error)
                self.damage.files += 1
                continue
            if (head := TraceHead.of_metadata(metadata)) is None:
                self.damage.headless = True
                continue
            heads[head] = None
            ends += metadata.get("ended") == "true"
            lost = metadata.get("lost", "")
            self.damage.lost += int(lost) if lost.isdecimal() and len(lost) < _MOST_NOTES else 0
            self._note(metadata.get("notes", "[]"))
        if not readable:
            raise TraceError(f"it is no trace in Parquet ({self.damage.reason})")
        self.damage.broke_off = ends < len(heads)
        self.files = tuple(readable)
        self._require_columns()
        self._groups = self._found()
        self.operations = sum(group.rows for group in self._groups)
        self.crowded = _most_waiting(self._groups) > MOST_WAITING
        self.head = self._head([*heads])

    def unreadable(self, name: str) -> SetupError:
        """The error that not one operation can be read, and why; ``name`` is what the user gave."""
        why = " ".join(["", *self.notes, *self.damage.sentences()])
        return SetupError(f"{cut(name)} has no readable operation.{why}".rstrip("."))

    def batches(self) -> Iterator[Batch]:
        """The operations in order of their instants. Equal ones keep the order of recording."""
        # Each with the place of the first operation that was not delivered.
        waiting: list[tuple[Batch, int]] = []
        self.damage.rows = 0
        spans = spans_of(sorted(self._groups, key=_FIRST_MS), ROWS)
        started_ms = self.head.started_ms
        until_ms: int | None = spans[0].first_ms - started_ms if spans else None
        for one, later in itertools.zip_longest(spans, spans[1:]):
            last_ms = None
            try:
                batch = self._batch(one, until_ms)
                last_ms = batch.at_ms[-1]
                waiting.append((batch, 0))
            except TraceError as error:
                self._note_damage(error)
                self.damage.rows += one.rows
            until_ms = None if later is None else later.first_ms - started_ms
            if last_ms is not None and self._continues(one, later):
                others = (of.first_ms - started_ms for of in spans if of.first_ms > one.first_ms)
                until_ms = min(last_ms, next(others, last_ms))
            ready, waiting = _split(waiting, until_ms)
            if all(first.at_ms[-1] <= then.at_ms[0] for first, then in itertools.pairwise(ready)):
                yield from ready
            else:
                yield _joined(ready)

    def rows(self) -> Iterator[TracedOperation]:
        """The same one by one."""
        for batch in self.batches():
            yield from batch.rows()

    def answers(
        self, queries: Sequence[str]
    ) -> Iterator[tuple[list[dict[str, np.ndarray[Any, Any]]], int, int | None]]:
        """The columns of each query, for some hundred thousand rows of the trace at a time.

        What a query reads is `harness.trace.schema.PART`.

        Yields:
            The columns of each query, the number of rows, and the UTC milliseconds before which no
            later row is; None at the end.
        """
        self.damage.rows = 0
        spans = self.spans(_ANSWERED_VALUES)
        firsts = itertools.accumulate((span.first_ms for span in reversed(spans)), min)
        for span, until_ms in zip(spans, [None, *firsts][-2::-1], strict=True):
            try:
                found = [self.engine.columns(sql, span.place) for sql in queries]
            except TraceError as error:
                self._note_damage(error)
                self.damage.rows += span.rows
                continue
            yield found, span.rows, until_ms

    def queries(self) -> Iterator[tuple[tuple[str, str | None, Detail], Outcome]]:
        """Table, PartitionKey and detail of the different queries, and how they ended."""
        for (found,), _, _ in self.answers((queries_of(self.properties),)):
            names = ("table", "key", "outcome", "query", "properties")
            columns = (found[name].tolist() for name in names)
            for table, key, outcome, query, values in zip(*columns, strict=True):
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    yield (table, key, detail_in(query, None, values)), OUTCOMES[outcome]

    @property
    def first_ms(self) -> int:
        """UTC milliseconds of the first operation."""
        return min(map(_FIRST_MS, self._groups), default=0)

    def spans(self, values: int) -> list[Span]:
        """All rows in spans of about so many values, in the order in which the files begin."""
        begins: dict[str, int] = {}
        for group in self._groups:
            begins[group.file] = min(group.first_ms, begins.get(group.file, group.first_ms))
        return spans_of(sorted(self._groups, key=lambda group: begins[group.file]), values)

    def copy(
        self, engine: Engine, select: str, folder: Path, values: Values, tell: Tell | None = None
    ) -> Trace:
        """A trace of the rows of a query on these files, in a new file in ``folder``."""
        made = folder / f"{len(list(folder.glob(f'*{ENDING}')))}{ENDING}"
        parameters = {**values, "files": [*self.files]}
        metadata = {**self.head.metadata(), **ending()}
        engine.copy(select, made, parameters=parameters, metadata=metadata, tell=tell)
        return Trace(made)

    def copied(self, select: str, folder: Path, tell: Tell | None = None) -> Trace:
        """The same in place of this one, which is closed; ``folder`` takes it."""
        with contextlib.closing(self), contextlib.closing(Engine(folder)) as engine:
            other = self.copy(engine, select, folder, {}, tell)
        other.damage, other.notes = self.damage, self.notes
        return other

    def close(self) -> None:
        self.engine.close()

    def _continues(self, one: Span, later: Span | None) -> bool:
        """Whether rows follow each other in a group: the harness sorts them."""
        return (
            later is not None
            and (later.groups[0].file, later.first_ms) == (one.groups[-1].file, one.first_ms)
            and not self.damage.headless
        )

    def _metadata(self, file: Path) -> dict[str, str]:
        """The key-value metadata of a file.

        Raises:
            TraceError: it is not a Parquet file, or cut.
        """
        size = file.stat().st_size
        with file.open("rb") as opened:
            opened.seek(max(0, size - _TAIL_BYTES))
            tail = opened.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > min(size, _MOST_METADATA_BYTES):
            raise TraceError("it has no metadata at its end")
        pairs = self.engine.rows(
            "SELECT key, value FROM parquet_kv_metadata($files)", {"files": [str(file)]}
        )
        return {
            key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in pairs
        }

    def _note(self, notes: str) -> None:
        with contextlib.suppress(orjson.JSONDecodeError):
            said = orjson.loads(notes)
            if isinstance(said, list):
                self.notes += (str(note)[:_MOST_NOTED] for note in said[:_MOST_NOTES])

    def _note_damage(self, error: TraceError) -> None:
        self.damage.reason = self.damage.reason or str(error)

    def _require_columns(self) -> None:
        described = dict(
            self.engine.rows(
                "SELECT column_name, column_type "
                "FROM (DESCRIBE SELECT * FROM read_parquet($files))",
                {"files": [self.files[0]]},
            )
        )
        missing = [name for name in COLUMNS if name not in described]
        if missing:
            raise TraceError(f"it has no column {missing[0]}")
        self.properties = _names_in(described.get(PROPERTIES, ""))
        self.shows_rows = MOVED in described

    def _found(self) -> list[Group]:
        """The groups of rows in the order of the files.

        Without statistics, rows may have any instant.
        """
        found = self.engine.rows(GROUPS, {"files": [*self.files]})
        groups: list[Group] = []
        for file, rows, first_ms, last_ms, values in found:
            before = groups[-1] if groups and groups[-1].file == file else None
            first = 0 if before is None else before.first + before.rows
            last_ms = LATEST_MS if last_ms is None else last_ms
            if rows > 0:
                whole = Group(file, first, rows, first_ms or 0, last_ms, max(1, values))
                groups += whole.read_at_once()
        return groups

    def _head(self, heads: Sequence[TraceHead]) -> TraceHead:
        # Clocks of workers differ, and the entries of a log are not in order.
        first_ms = self.first_ms // 1000 * 1000
        properties = ",".join(self.properties)
        if not heads:
            return TraceHead(started_ms=first_ms, source="unknown", properties=properties)
        head = functools.reduce(TraceHead.joined, heads)
        started_ms = min(head.started_ms, first_ms) if self._groups else head.started_ms
        return dataclasses.replace(head, properties=properties, started_ms=started_ms)

    def _batch(self, one: Span, since_ms: int | None) -> Batch:
        place = one.place
        columns = self.engine.columns(READ, place)
        at, took = columns["at"], columns["took"]
        for name in MOST:
            values = columns[name]
            if len(values):
                require_numbers(
                    name, int(np.sum(np.ma.getmaskarray(values))), values.min(), values.max()
                )
        if not len(at) or (since_ms is not None and at.min() < since_ms + self.head.started_ms):
            raise TraceError("its rows are not those of its statistics")
        order = None
        if (np.diff(at) < 0).any():
            order = np.argsort(at, kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
            at, took = columns["at"], columns["took"]
        at = at - self.head.started_ms
        hashes = columns["shape"].tolist()
        try:
            shapes = list(map(self._shapes.__getitem__, hashes))
        except KeyError:
            self._learn(place)
            shapes = list(map(self._shapes.__getitem__, hashes))
        details: list[Detail] = [None] * len(at)
        texts: list[str | None] = [None] * len(at)
        if self.properties:
            texts = self._columns(values_of(self.properties), place, order)["properties"].tolist()
        if any(shape.kind in _DETAILED for shape in set(shapes)):
            found = self._columns(details_of(self.properties), place, order)
            try:
                details = [*map(detail_in, found["query"].tolist(), found["parts"].tolist(), texts)]
            except (KeyError, TypeError, ValueError) as error:
                raise TraceError(f"the detail of an operation is {error!r}") from error
        return Batch(
            at_ms=at.tolist(),
            done_ms=(at + took).tolist(),
            shapes=shapes,
            partition_keys=columns["key"].tolist(),
            row_keys=columns["row"].tolist(),
            entities=columns["entities"].tolist(),
            returned=columns["returned"].tolist(),
            bytes_sent=columns["sent"].tolist(),
            bytes_received=columns["received"].tolist(),
            details=details,
            properties=_read_values(texts),
        )

    def _columns(
        self, sql: str, place: dict[str, Any], order: np.ndarray[Any, Any] | None
    ) -> dict[str, np.ndarray[Any, Any]]:
        columns = self.engine.columns(sql, place)
        if order is not None:
            columns = {name: values[order] for name, values in columns.items()}
        return columns

    def _learn(self, place: dict[str, Any]) -> None:
        """Make the shapes of a span."""
        if self._answers > _MOST_ANSWERS:
            self._shapes, self._answers = {}, 0
        for number, *fields in self.engine.rows(_SHAPES, place):
            if number not in self._shapes:
                shape = self._shapes[number] = shape_of(*fields)
                self._answers += len(shape.attempts)


def files_of(path: Path) -> list[Path]:
    """The Parquet files of a trace, in their order; empty if there is none in a folder."""
    if not path.is_dir():
        return [path]
    # As other programs do, it takes no hidden files.
    return sorted(file for file in path.glob(f"*{ENDING}") if file.name[0] not in "._")


def _read_values(texts: Sequence[str | None]) -> list[RecordedValues]:
    """The values in JSON; equal ones are one object."""
    known = {text: values_in(text) for text in set(texts)}
    return list(map(known.__getitem__, texts))


def _names_in(struct: str) -> tuple[str, ...]:
    """The names of the fields of a structure of texts, by its type; none of another type."""
    match = _STRUCT.fullmatch(struct)
    return tuple(re.findall(r'"?(\w+)"? VARCHAR', match[1])) if match else ()


def _most_waiting(groups: Sequence[Group]) -> int:
    """The most rows that are held because earlier ones may follow."""
    events = sorted(
        itertools.chain.from_iterable(
            ((one.first_ms, 0, one.rows), (one.last_ms, 1, -one.rows)) for one in groups
        )
    )
    return max(itertools.accumulate((rows for _, _, rows in events)), default=0)


def _split(
    waiting: list[tuple[Batch, int]], until_ms: int | None
) -> tuple[list[Batch], list[tuple[Batch, int]]]:
    """The operations before an instant, and the batches that have others."""
    ready, later = [], []
    for batch, start in waiting:
        end = len(batch) if until_ms is None else bisect.bisect_left(batch.at_ms, until_ms)
        if end > start:
            ready.append(batch.part(start, end))
        if end < len(batch):
            later.append((batch, max(start, end)))
    return ready, later


def _joined(batches: Sequence[Batch]) -> Batch:
    """One batch with the operations of all, in order; equal instants keep their order."""
    columns = [
        list(itertools.chain.from_iterable(parts))
        for parts in zip(*(batch.columns() for batch in batches), strict=True)
    ]
    at = columns[0]
    order = sorted(range(len(at)), key=at.__getitem__)
    return Batch(*(list(map(column.__getitem__, order)) for column in columns))
