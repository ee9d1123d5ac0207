"""Keys alone, of a list or of recorded operations, and what the practices see of them.

Memory does not grow with the number of keys: what keys look like is that of a sample, and large
numbers of different keys are estimates.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from datasketches import frequent_items_error_type, frequent_strings_sketch

from harness.measure.counts.heavy_hitters import SKETCH_LOG2
from harness.measure.counts.key_sample import KeySample
from harness.measure.record.behaviour import WritesPart
from harness.measure.record.findings import PredictionPart
from harness.model.entity import MAX_KEY_CHARACTERS, characters, key_problem
from harness.model.errors import SetupError, cut
from harness.model.key_notations import SortOrder, TokenKind
from harness.model.key_shapes import needs_escaping, shapes_of
from harness.model.key_tokens import tokens_of
from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.partition import Partition
from harness.model.services import USUAL
from harness.profile.checks.seen import Seen, TableSeen
from harness.trace.operations import UNKNOWN, Batch, TracedParts
from harness.trace.sources import Tell, opened

SAMPLE = 4_096
"""Different keys that are looked at. Above it their number is an estimate, about 2 % exact."""
MOST_TABLES = 20
_MOST_LINE = 4 * 1024 * 1024
"""Characters; an entity has 1 MiB at most."""
_MOST_FIELD = 1024 * 1024
_MOST_NAMED = 5
_LOOKED_AT = 64 * 1024
_OWN = 0.95
"""Share of rows with a PartitionKey of their own: both numbers may be estimates."""
_SEPARATOR = "\0"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"PAR1")


@dataclasses.dataclass(slots=True)
class KeyColumn:
    """The PartitionKeys, or the RowKeys, of one table.

    Attributes:
        escaped: Keys that have to be escaped in an address, with ``foreign`` that are not ASCII.
        refused: Keys that the service refuses; ``problem`` says why and where of the first.
    """

    sample: KeySample = dataclasses.field(default_factory=lambda: KeySample(size=SAMPLE))
    count: int = 0
    longest: int = 0
    escaped: int = 0
    foreign: int = 0
    refused: int = 0
    problem: str = ""

    def add(self, key: str, where: str) -> None:
        self.count += 1
        length = characters(key)
        self.longest = max(self.longest, length)
        if needs_escaping(key):
            self.escaped += 1
            self.foreign += not key.isascii()
            self._refuse(key, where)
        elif length > MAX_KEY_CHARACTERS:
            self._refuse(key, where)
        # A longer key is refused, and would take memory.
        self.sample.add(key[:MAX_KEY_CHARACTERS])

    def _refuse(self, key: str, where: str) -> None:
        if (problem := key_problem(key)) is not None:
            self.refused += 1
            self.problem = self.problem or f"{cut(key)!r}{where} {problem}"

    @property
    def distinct(self) -> int:
        """Number of different keys; above `SAMPLE` an estimate."""
        return self.sample.partitions

    @property
    def keys(self) -> list[str]:
        """The sample, in order."""
        return sorted(self.sample.ranks)


@dataclasses.dataclass(slots=True)
class ListedTable:
    """The keys of one table.

    Attributes:
        uses: Rows of the list, or operations.
    """

    uses: int = 0
    partition_keys: KeyColumn = dataclasses.field(default_factory=KeyColumn)
    row_keys: KeyColumn = dataclasses.field(default_factory=KeyColumn)
    _rows: KeySample = dataclasses.field(default_factory=lambda: KeySample(size=SAMPLE))
    _often: frequent_strings_sketch = dataclasses.field(
        default_factory=lambda: frequent_strings_sketch(SKETCH_LOG2)
    )

    def add(self, partition_key: str, row_keys: Iterable[str], where: str = "") -> None:
        """Count a use of a partition, and the rows that it names."""
        self.uses += 1
        kept = partition_key[:MAX_KEY_CHARACTERS]
        # The sketch takes UTF-8, which has no halves of surrogate pairs.
        self._often.update(kept if kept.isascii() else kept.encode("utf-8", "replace").decode())
        self.partition_keys.add(partition_key, where)
        for row_key in row_keys:
            self.row_keys.add(row_key, where)
            row = f"{partition_key}{_SEPARATOR}{row_key}".encode("utf-8", "surrogatepass")
            self._rows.add(hashlib.blake2b(row, digest_size=12).hexdigest())

    @property
    def rows(self) -> int:
        """Number of different rows; 0 if no RowKeys are known."""
        return self._rows.partitions

    @property
    def own_partitions(self) -> bool:
        """Whether nearly each row has a partition of its own."""
        return self.rows > 1 and self.partition_keys.distinct >= _OWN * self.rows

    @property
    def hottest(self) -> tuple[str, float, bool]:
        """The most frequent PartitionKey, its share of the uses, and whether that is exact.

        Else it is a lower bound.
        """
        items = self._often.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
        key, _, least, most = max(items, key=lambda item: item[2], default=("", 0, 0, 0))
        return key, least / (self.uses or 1), least == most

    @property
    def growth(self) -> int | None:
        """Where new rows go, by what PartitionKeys begin with, as in a `TableSeen`.

        A sequence is told by its numbers, which have hardly any gaps, one for each row.
        """
        token = tokens_of(self.partition_keys.keys).leading
        if token is None:
            return None
        if token.timed:
            return {SortOrder.LATER: 1, SortOrder.EARLIER: -1}.get(token.order)
        if token.kind in (TokenKind.GUID, TokenKind.HASH, TokenKind.RANDOM):
            return 0
        if token.kind is TokenKind.NUMBER and token.order is SortOrder.LATER:
            span = int(token.examples[-1]) - int(token.examples[0]) + 1
            if self.own_partitions and span <= 2 * self.partition_keys.distinct:
                return 1
        return None if self.own_partitions or not self.rows else 0


@dataclasses.dataclass(slots=True, kw_only=True)
class ListedKeys:
    """The keys of a list or of recorded operations.

    Attributes:
        source: ``keys.csv``, or the name of another file.
        unit: What was counted: ``row`` or ``operation``.
        tables: By name; of a list one with an empty name.
        notes: Sentences about what was left out.
    """

    source: str
    unit: str = "row"
    tables: dict[str, ListedTable] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    bad: int = 0
    _bad_named: list[str] = dataclasses.field(default_factory=list)
    _left_out: int = 0

    def table(self, name: str) -> ListedTable | None:
        """The table of this name; None for the ones beyond `MOST_TABLES`."""
        if name not in self.tables and len(self.tables) == MOST_TABLES:
            self._left_out += 1
            return None
        return self.tables.setdefault(name, ListedTable())

    def reject(self, line: int, why: str) -> None:
        """Count a row that cannot be read."""
        self.bad += 1
        if self.bad <= _MOST_NAMED:
            self._bad_named.append(f"line {line:,} {why}")

    def ended(self) -> None:
        """Say what was left out; a `SetupError` if nothing is left."""
        if self.bad:
            more = f", and {self.bad - _MOST_NAMED:,} more" if self.bad > _MOST_NAMED else ""
            self.notes.append(f"Left out: {'; '.join(self._bad_named)}{more}.")
        if self._left_out:
            self.notes.append(
                f"{self._left_out:,} operations on further tables than {MOST_TABLES} were left out."
            )
        if not self.tables:
            notes = [f"{self.source} holds no keys.", *self.notes]
            raise SetupError(" ".join(notes).removesuffix("."))

    def seen(self) -> Seen:
        """What the practices are compared with."""
        uses = sum(table.uses for table in self.tables.values())
        name, table = max(self.tables.items(), key=lambda item: item[1].hottest[1] * item[1].uses)
        hottest, share, _ = table.hottest
        repeated = any(part.uses > part.partition_keys.distinct for part in self.tables.values())
        stored = self.unit == "row" and table.rows
        return Seen(
            keys_only=True,
            profile=None,
            service=USUAL,
            shares=PredictionPart(
                hottest=Partition(name, hottest).name,
                hottest_share=share * table.uses / uses if repeated else 0.0,
                ranges=(),
                hottest_range=None,
                hottest_range_share=0.0,
                over_partitions_share=0.0,
            ),
            operations=uses,
            reads=0,
            labels=frozenset(),
            tables=tuple(_table_seen(*item) for item in self.tables.items()),
            queries=(),
            writes=WritesPart(),
            requested=0.0,
            loaded_entities=table.rows if stored else None,
            loaded_partitions=table.partition_keys.distinct if stored else None,
            largest=round(share * table.uses) if stored else 0,
            pointing=None,
            entity_bytes=None,
        )


def _table_seen(name: str, table: ListedTable) -> TableSeen:
    columns = (table.partition_keys, table.row_keys)
    partition_keys, row_keys = (column.keys for column in columns)
    count = sum(column.count for column in columns)
    shapes = shapes_of(partition_keys, row_keys) | {
        "longest_key": max(column.longest for column in columns),
        "escaped": sum(column.escaped for column in columns) / count,
        "foreign": sum(column.foreign for column in columns) / count,
    }
    return TableSeen(
        table=name,
        whole=True,
        operations=table.uses,
        partitions=table.partition_keys.distinct,
        writing=table.uses,
        growth=table.growth,
        keys=(*partition_keys, *row_keys),
        refused=sum(column.refused for column in columns),
        refusal=next((column.problem for column in columns if column.problem), ""),
        **shapes,
    )


def read_keys(path: Path | None, standard_input: IO[bytes], tell: Tell) -> ListedKeys:
    """The keys in a file: a list, a trace, a log or a folder with logs; None is standard input.

    Raises:
        SetupError: it cannot be read; the message is the reason.
    """
    if path is None:
        return _list_of(standard_input, ListedKeys(source="standard input"))
    listed = ListedKeys(source=cut(path.name))
    try:
        start = b""
        if not path.is_dir():
            with path.open("rb") as file:
                start = file.read(_LOOKED_AT)
            if _heads(start):
                with path.open("rb") as file:
                    return _list_of(file, listed)
        return _traced(path, listed, tell)
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    except SetupError:
        if not start or b"\0" in start or start.startswith((*_PACKED, b"{", b"[")):
            raise
        with path.open("rb") as file:
            return _list_of(file, listed)


def _list_of(raw: IO[bytes], listed: ListedKeys) -> ListedKeys:
    """Read a CSV file with a header, or a list of PartitionKeys, one a line."""
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    start = buffered.peek(_LOOKED_AT)[:_LOOKED_AT]
    if start.startswith(_PACKED):
        raise SetupError(f"{listed.source} is packed: unpack it first")
    wide = start.startswith(_UTF16)
    if not wide and b"\0" in start:
        raise SetupError(f"{listed.source} is not a text file")
    # Bytes that are not UTF-8 become halves of surrogate pairs, so that their line can be named.
    encoding = "utf-16" if wide else "utf-8-sig"
    text = io.TextIOWrapper(buffered, encoding, errors="surrogateescape", newline="")
    heads = _heads(start)
    try:
        if heads:
            _read_csv(text, heads, listed)
        else:
            _read_lines(text, listed)
    except UnicodeError as error:
        raise SetupError(f"{listed.source} is damaged: {cut(str(error))}") from error
    finally:
        text.detach()
    listed.ended()
    return listed


def _heads(start: bytes) -> str:
    """The delimiter of a CSV file whose first line names a column PartitionKey; else empty."""
    encoding = "utf-16" if start.startswith(_UTF16) else "utf-8-sig"
    first = start.decode(encoding, "replace").partition("\n")[0]
    return next((one for one in ",;\t" if "partitionkey" in _names(first.split(one))), "")


def _names(cells: Iterable[str]) -> list[str]:
    return [cell.strip(' "\r').replace("_", "").lower() for cell in cells]


def _lines(text: io.TextIOWrapper, source: str) -> Iterator[str]:
    number = 0
    while line := text.readline(_MOST_LINE):
        number += 1
        if len(line) == _MOST_LINE:
            raise SetupError(f"{source}: line {number:,} has more than {_MOST_LINE:,} characters")
        yield line


def _read_csv(text: io.TextIOWrapper, delimiter: str, listed: ListedKeys) -> None:
    csv.field_size_limit(_MOST_FIELD)
    rows = csv.reader(_lines(text, listed.source), delimiter=delimiter)
    names = _names(next(rows))
    place = names.index("partitionkey")
    row_place = names.index("rowkey") if "rowkey" in names else None
    needed = max(place, -1 if row_place is None else row_place) + 1
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            listed.reject(line, f"cannot be read ({error})")
            continue
        if not row:
            continue
        if len(row) < needed:
            listed.reject(line, f"has {len(row)} of {needed} columns")
            continue
        _add(listed, line, row[place], () if row_place is None else (row[row_place],))


def _read_lines(text: io.TextIOWrapper, listed: ListedKeys) -> None:
    for number, line in enumerate(_lines(text, listed.source), 1):
        key = line.rstrip("\r\n")
        if number == 1 and any(mark in key for mark in ",;\t"):
            raise SetupError(
                f"{listed.source}: line 1 has several columns, and none is named PartitionKey. "
                "Name the columns PartitionKey and RowKey in the first line"
            )
        if key:
            _add(listed, number, key, ())


def _add(listed: ListedKeys, line: int, key: str, row_keys: tuple[str, ...]) -> None:
    if not key.isascii() and any("\udc80" <= one <= "\udcff" for one in "".join((key, *row_keys))):
        listed.reject(line, "is not UTF-8")
    elif (table := listed.table("")) is not None:
        table.add(key, row_keys, f" (line {line:,})")


def _traced(path: Path, listed: ListedKeys, tell: Tell) -> ListedKeys:
    """Read the keys of recorded operations."""
    listed.unit = "operation"
    with opened(path, tell) as trace:
        if trace.head.keys:
            raise SetupError(
                f"{listed.source} has aliases in place of keys: what keys look like is unknown"
            )
        for batch in trace.batches():
            _add_batch(batch, listed)
    listed.ended()
    return listed


def _add_batch(batch: Batch, listed: ListedKeys) -> None:
    columns = (batch.partition_keys, batch.row_keys, batch.shapes, batch.details)
    for key, row_key, shape, detail in zip(*columns, strict=True):
        if key is None or key in (WHOLE_TABLE, UNKNOWN):
            continue
        row_keys: tuple[str | None, ...] = (row_key,)
        if isinstance(detail, TracedParts):
            row_keys = detail.row_keys
        elif shape.kind in (Kind.QUERY, Kind.TRANSACTION):
            row_keys = ()
        if (table := listed.table(shape.table)) is not None:
            table.add(key, [one for one in row_keys if one is not None and one != UNKNOWN])
