"""What has to be known of a whole trace before it is replayed, and the rows that it needs.

Reads the trace twice, see `harness.trace.replay.initial_rows`.
Memory grows with the number of different entities, about 200 bytes each.

Operations are put into the order in which they took effect. A trace is in the order of sending.
Where a write and a query of its partition overlapped, the query did not see a write that was
answered after it, as a rule. Such a write is moved behind the query.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.measure.record.origin import LeftOut, ReplayedKind, ReplayPart
from harness.model.entity import MAX_TRANSACTION_BYTES, MAX_TRANSACTION_OPERATIONS, key_problem
from harness.model.errors import SetupError, cut
from harness.model.figures import counted, listed
from harness.model.operation import WHOLE_TABLE, Kind, Operation, transaction
from harness.trace.engine import Tell
from harness.trace.operations import TracedOperation, read_bytes, written_bytes
from harness.trace.reader import Trace
from harness.trace.replay.initial_rows import InitialRows
from harness.trace.replay.operations import OperationMaker, count_is_assumed, units_of
from harness.trace.replay.selection import Selection
from harness.trace.row_properties import RowProperties, moves
from harness.trace.whatif.scheme import Rows, Scheme, require_properties, require_table
from harness.workload.operation_factory import PART_OVERHEAD_BYTES

_LONGEST_S, _MOST_NAMES = 60 * 86_400, 1000
_LONGEST_MS = 5000
"""Writes that took longer stay where they are: the operations of this time are held in memory."""
_QUERY = Kind.QUERY
_READ_AT_ONCE = 1024 * 1024
_MOST_COMPARED = 50
_TABLE_ENDING_CHARACTERS = 24
_POINT_QUERY = Kind.POINT_QUERY


@dataclasses.dataclass(slots=True, eq=False)
class _Held:
    """A place in the order.

    Attributes:
        key: Table and PartitionKey of a write that queries may move.
        behind: The last query that did not see this write.
        moved: The writes that come after this query.
    """

    row: TracedOperation
    key: tuple[str, str | None] | None = None
    behind: _Held | None = None
    moved: list[TracedOperation] = dataclasses.field(default_factory=list)


def in_order_of_effect(rows: Iterable[TracedOperation]) -> Iterator[TracedOperation]:
    """The operations of a trace, in order of their instants; a moved one has that of its query."""
    held: collections.deque[_Held] = collections.deque()
    writes: dict[tuple[str, str | None], list[_Held]] = {}
    for row in rows:
        while held and (held[0].key is None or held[0].row.done_ms < row.at_ms):
            yield from _released(held.popleft(), writes)
        kind, (table, key) = row.shape.kind, (row.shape.table, row.partition_key)
        moves_rows = not (kind.reads or kind.updates)
        if not held and not moves_rows:
            yield row
            continue
        one = _Held(row)
        if kind is _QUERY:
            keys = [of for of in writes if of[0] == table] if key == WHOLE_TABLE else [(table, key)]
            for write in itertools.chain.from_iterable(writes.get(of, ()) for of in keys):
                if write.row.done_ms > row.done_ms:
                    write.behind = one
        elif moves_rows and row.done_ms - row.at_ms <= _LONGEST_MS:
            one.key = table, key
            writes.setdefault(one.key, []).append(one)
        held.append(one)
    for one in held:
        yield from _released(one, writes)


def _released(
    one: _Held, writes: dict[tuple[str, str | None], list[_Held]]
) -> Iterator[TracedOperation]:
    """What comes at a place that no later query can change."""
    if one.key is not None:
        of_key = writes[one.key]
        of_key.remove(one)
        if not of_key:
            del writes[one.key]
    if one.behind is not None:
        one.behind.moved.append(one.row._replace(at_ms=one.behind.row.at_ms))
    else:
        yield one.row
        yield from one.moved


def fingerprint(path: Path, tell: Tell = lambda done, total: None) -> str:
    """Hash of a file, or of all files of a folder; a `SetupError` if it cannot be read."""
    digest = hashlib.sha256()
    try:
        files = [path]
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        total, done = sum(file.stat().st_size for file in files), 0
        for file in files:
            with file.open("rb") as opened:
                while part := opened.read(_READ_AT_ONCE):
                    digest.update(part)
                    done += len(part)
                    tell(done, total)
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    return digest.hexdigest()[:16]


@dataclasses.dataclass(slots=True)
class _Sizes:
    """Bytes and number of the entities that were read from a table, or written to it."""

    bytes: int = 0
    entities: int = 0

    def add(self, size: int, entities: int = 1) -> None:
        self.bytes += size
        self.entities += entities

    @property
    def mean(self) -> int:
        return self.bytes // self.entities if self.entities else 0


class Preparation:
    """The result: ``part`` for every process, and the rows to load.

    Args:
        entity_bytes: Size of a loaded entity as sent, where the trace does not tell one.
        scheme: Makes other keys; None for the recorded ones.
        into_one_table: All operations are for the only table of the run.

    Raises:
        SetupError: nothing of the trace can be replayed, or not into one table.
    """

    def __init__(
        self,
        trace: Trace,
        name: str,
        fingerprint: str,
        *,
        entity_bytes: int,
        scheme: Scheme | None = None,
        into_one_table: bool = False,
        tell: Tell = lambda done, total: None,
    ) -> None:
        self._trace = trace
        self._selection = selection = Selection(trace.head, scheme)
        self._left_out: collections.Counter[str] = collections.Counter()
        self._kinds: dict[tuple[str, Kind], ReplayedKind] = {}
        self._read: dict[str, _Sizes] = collections.defaultdict(_Sizes)
        self._written: dict[str, _Sizes] = collections.defaultdict(_Sizes)
        self._default_bytes = entity_bytes
        self.entities_by_s = array.array("q")
        tables: dict[str, str] = {}
        compared: dict[str, dict[str, None]] = {}
        contents = InitialRows(trace.head)
        properties = RowProperties()
        first_ms = last_ms = -1
        failed = unmatched = unvalued = assumed = assumed_entities = 0
        for row in self._kept(tell):
            shape = row.shape
            table = tables.setdefault(shape.table.lower(), shape.table)
            if max(len(tables), len(self._kinds)) > _MOST_NAMES:
                raise SetupError(
                    f"{cut(name)} has more than {_MOST_NAMES:,} tables, or names of operations: "
                    "that is no traffic to replay"
                )
            if first_ms < 0:
                first_ms = row.at_ms
            last_ms = row.at_ms
            if last_ms - first_ms >= 1000 * _LONGEST_S:
                raise SetupError(
                    f"{cut(name)} spans more than {_LONGEST_S // 86_400} days, and what is due in "
                    "every second would be in memory: replay a part of it"
                )
            failed += shape.outcome.wanted_again
            if shape.outcome.succeeded and count_is_assumed(row, trace.head):
                assumed += 1
                assumed_entities += row.entities
            if scheme is not None:
                unmatched += not selection.matches(row)
                unvalued += selection.lacks_values(row)
                properties.learn(row)
            if shape.kind is _QUERY and row.detail is not None:
                names = compared.setdefault(table, {})
                for name_of in getattr(row.detail, "compared", ()):
                    if len(names) < _MOST_COMPARED:
                        names[name_of] = None
            for sent in selection.sent(row):
                self._count(sent, table, (row.at_ms - first_ms) // 1000)
            contents.add(table, row)
        if not self._kinds:
            raise SetupError(
                f"{cut(name)} has no operation that can be replayed: {self._reasons()}"
            )
        moved = 0
        if scheme is not None:
            require_table(scheme, tables.values())
            require_properties(scheme, trace.properties)
            moved = moves(trace, scheme)
        # By the recorded name.
        self._endings = _endings([*tables.values()], into_one_table=into_one_table)
        contents.learned()
        for row in self._kept(tell, again=True):
            contents.add(tables[row.shape.table.lower()], row)
        self.rows, inexact = contents.filled()
        recorded_rows = _number(self.rows)
        if scheme is not None:
            self.rows = _rekeyed(self.rows, scheme, properties)
        loaded = _number(self.rows)
        self._contents = contents
        self._sums = array.array("q", itertools.accumulate(self.entities_by_s, initial=0))
        sums = self._kinds.values()
        written = _Sizes()
        for sizes in self._written.values():
            written.add(sizes.bytes, sizes.entities)
        self.part = ReplayPart(
            trace=name,
            fingerprint=fingerprint,
            source=trace.head.recorded,
            run_id=trace.head.run_id,
            first_ms=first_ms,
            last_ms=last_ms,
            operations=sum(one.operations for one in sums),
            entities=sum(one.entities for one in sums),
            units=sum(self.entities_by_s),
            peak_entities_per_s=max(self.entities_by_s),
            counts_whole=trace.head.counts_whole,
            left_out=tuple(
                LeftOut(reason=reason, operations=count) for reason, count in self._left_out.items()
            ),
            failed=failed,
            # Under other keys queries find what they find.
            inexact=0 if scheme is not None else inexact + contents.contradictory,
            assumed=0 if scheme is not None else assumed,
            assumed_entities=0 if scheme is not None else assumed_entities,
            keys="" if scheme is None else scheme.name,
            tables={lower: self._endings[table] for lower, table in tables.items()},
            compared={self._endings[table]: tuple(names) for table, names in compared.items()},
            kinds=tuple(sums),
            entity_bytes=written.mean,
            loaded_entities=loaded,
            loading_requests=sum(1 for _ in self._batches()),
            notes=(
                *trace.notes,
                *trace.damage.sentences(),
                *_of_scheme(scheme, unmatched, unvalued, moved, recorded_rows - loaded),
            ),
        )

    def _reasons(self) -> str:
        if not self._left_out:
            said = [*self._trace.notes, *self._trace.damage.sentences()]
            return " ".join(said).rstrip(".") or "it has none"
        return ", ".join(f"{count:,} because {why}" for why, count in self._left_out.items())

    def _kept(self, tell: Tell, *, again: bool = False) -> Iterator[TracedOperation]:
        """The operations that are sent; the others are counted, the first time."""
        selection = self._selection
        for row in in_order_of_effect(self._read_rows(tell, again=again)):
            if not (reason := selection.why_left_out(row)):
                yield row
            elif not again:
                self._left_out[reason] += 1

    def _read_rows(self, tell: Tell, *, again: bool) -> Iterator[TracedOperation]:
        trace = self._trace
        done = trace.operations if again else 0
        for batch in trace.batches():
            yield from batch.rows()
            done += len(batch)
            tell(done, 2 * trace.operations)

    def _count(self, row: TracedOperation, table: str, second: int) -> None:
        shape = row.shape
        name = shape.label, shape.kind
        if (sums := self._kinds.get(name)) is None:
            sums = self._kinds[name] = ReplayedKind(label=shape.label, kind=shape.kind)
        sums.operations += 1
        sums.entities += row.entities
        sums.attempts += len(shape.attempts)
        sums.bytes_sent += row.bytes_sent
        sums.bytes_received += row.bytes_received
        if second >= len(self.entities_by_s):
            self.entities_by_s.extend([0] * (second + 1 - len(self.entities_by_s)))
        self.entities_by_s[second] += units_of(row)
        if not shape.outcome.succeeded:
            return
        read = read_bytes(row.bytes_received, len(shape.attempts), self._trace.head)
        if shape.kind is _POINT_QUERY:
            self._read[table].add(read)
        elif shape.kind is _QUERY:
            self._read[table].add(read, row.returned)
        elif shape.kind.stores:
            self._written[table].add(written_bytes(row, self._trace.head))

    def asked_per_s(self, start_s: float, end_s: float, speed: float) -> float:
        """Mean entities/s that are due between two instants of the schedule at a speed.

        Whole seconds behind the last operation do not count: what is sent then is late, and the
        time that it takes asks for no lower rate.
        """
        last_s = self.part.seconds / speed
        if start_s < last_s:
            end_s = min(end_s, start_s + math.ceil(last_s - start_s))
        return (self._due_by(end_s * speed) - self._due_by(start_s * speed)) / (end_s - start_s)

    def _due_by(self, trace_s: float) -> float:
        """Entities that are due in the first seconds of the recording."""
        sums = self._sums
        second = min(max(trace_s, 0.0), len(sums) - 1.0)
        whole = int(second)
        more = sums[min(whole + 1, len(sums) - 1)] - sums[whole]
        return sums[whole] + more * (second - whole)

    # The rows that are loaded.

    def partitions(self) -> Iterator[str]:
        """Names of the partitions of the trace, as `Operation.partition` gives them."""
        for table, ending in self._endings.items():
            keys = {*self.rows.get(table, ())}
            if self._selection.scheme.identity:
                keys.update(self._contents.partitions(table))
            for key in sorted(keys):
                yield f"{ending}/{key}" if ending else key

    def loaded_partitions(self) -> Iterator[str]:
        """Names of those with rows that are loaded."""
        for table, ending in self._endings.items():
            for key in self.rows.get(table, ()):
                yield f"{ending}/{key}" if ending else key

    def loading(self, make: OperationMaker) -> Iterator[Operation]:
        for table, key, rows in self._batches():
            ending, size = self._endings[table], self._loaded_bytes(table)
            parts = tuple(make.loaded(ending, key, row, size) for row in rows)
            yield transaction(parts) if len(parts) > 1 else parts[0]

    def _batches(self) -> Iterator[tuple[str, str, list[str]]]:
        for table, partitions in self.rows.items():
            size = self._loaded_bytes(table)
            fitting = MAX_TRANSACTION_BYTES // (size + PART_OVERHEAD_BYTES)
            most = max(1, min(MAX_TRANSACTION_OPERATIONS, fitting))
            for key, rows in partitions.items():
                for start in range(0, len(rows), most):
                    yield table, key, rows[start : start + most]

    def _loaded_bytes(self, table: str) -> int:
        """Size of a loaded entity: that of one that was read, else of one that was written."""
        return self._read[table].mean or self._written[table].mean or self._default_bytes


def _endings(tables: Sequence[str], *, into_one_table: bool) -> dict[str, str]:
    """What the names of the tables of the run end in, by the recorded name.

    Raises:
        SetupError: one of them is too long, or there are several for one table.
    """
    if into_one_table:
        if len(tables) > 1:
            names = cut(listed([*map(repr, tables)]))
            raise SetupError(
                f"the trace has {len(tables)} tables ({names}), and --table names one: leave "
                "--table out, and the run creates a table for each and deletes it at the end"
            )
        return dict.fromkeys(tables, "")
    for recorded in tables:
        if len(recorded) > _TABLE_ENDING_CHARACTERS:
            raise SetupError(
                f"the name of table {recorded} has over {_TABLE_ENDING_CHARACTERS} characters: "
                "the names of the tables of a run, which end in it, would be too long"
            )
    return {table: table for table in tables}


def _number(rows: Rows) -> int:
    return sum(len(found) for partitions in rows.values() for found in partitions.values())


def _of_scheme(
    scheme: Scheme | None, unmatched: int, unvalued: int, moved: int, merged: int
) -> Iterator[str]:
    """What a reader has to know of other keys."""
    names = "" if scheme is None else listed(scheme.properties)
    if unvalued:
        yield (
            f"{counted(unvalued, 'operation')} with the recorded keys: on rows of unknown {names}."
        )
    if moved:
        yield (
            f"{counted(moved, 'write')} of a row with another {names}: written under the new key, "
            "and not deleted under the old one."
        )
    if unmatched:
        yield (
            f"{counted(unmatched, 'operation')} with the recorded keys, because the key scheme "
            "does not match them."
        )
    if merged:
        yield (
            f"{counted(merged, 'entity', 'entities')} not loaded, because under the key scheme "
            "another entity has the same keys."
        )


def _rekeyed(rows: Rows, scheme: Scheme, known: RowProperties) -> Rows:
    """The rows under new keys; of several with the same keys, one."""
    found: dict[str, dict[str, set[str]]] = {table: {} for table in rows}
    for table, _, keys in scheme.new_rows(rows, known):
        if not any(map(key_problem, keys)):
            found[table].setdefault(keys[0], set()).add(keys[1])
    return {
        table: {key: sorted(rows) for key, rows in sorted(partitions.items())}
        for table, partitions in found.items()
    }
