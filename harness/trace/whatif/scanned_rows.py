"""What a query scans under new keys: entities by range, where they are, and in how many pages."""

from __future__ import annotations

from typing import NamedTuple

from harness.gateway.demand import Place
from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.partition import MADE_UP
from harness.trace.operations import TracedQuery, TracedShape
from harness.trace.replay.initial_rows import QueriedKeys
from harness.trace.whatif.queries import BETWEEN, NewRange, TreatedQuery
from harness.trace.whatif.rows_before import RowsBefore
from harness.trace.whatif.scheme import Scheme
from harness.trace.whatif.stored_rows import Shares, StoredRows
from harness.trace.whatif.units import PagedScan, ScanPage, divided

_MOST_PAGED = 10_000


class ScannedRange(NamedTuple):
    """What a query scans in one of its ranges.

    Attributes:
        shares: Entities by PartitionKey, as far as these are told apart.
        returned: Share of the entities that it returns; 0 if its pages ended at servers already.
        full: As of a `RowScan`.
    """

    one: NewRange
    entities: int
    shares: Shares
    pages: int
    returned: float
    full: bool

    def in_pages(self, page_s: float, table: str) -> PagedScan:
        """The pages, which read partitions one after the other; each takes ``page_s``."""
        shares = (
            tuple(((table, key), rows) for key, rows in self.shares) if self.one.several else ()
        )
        own = max(0, self.entities - sum(rows for _, rows in shares))
        pages = ScanPage(own, shares).divided([0] * self.pages)
        first = self.shares[0][0] if self.shares else self.one.partition_from
        keys = first or "", self.one.partition_before
        returned = self.returned * self.one.several
        return PagedScan.of(tuple(pages), page_s, keys, returned, full=self.full)


class ScannedRows:
    """The rows of a trace under a scheme, and what queries scan of them.

    Args:
        before: The rows before the trace; None if rows are not counted. Then a query scans what it
            did, evenly divided over its ranges.

    Attributes:
        places_before: The partitions that are known to have had rows before the trace, in order.
    """

    def __init__(self, scheme: Scheme, before: RowsBefore | None) -> None:
        self._complete = frozenset[str]() if before is None else before.complete
        self._read = frozenset[QueriedKeys]() if before is None else before.read
        # Of queries whose pages are operations: the entities before each page, and before what
        # follows the last one; by client, table and PartitionKey.
        self._paged: dict[tuple[str, str, str | None, TracedQuery], int] = {}
        self._counts: StoredRows | None = None
        self.places_before: dict[Place, None] = {}
        if before is None:
            return
        self._counts = counts = StoredRows(before.said)
        for table, row_key, new in scheme.new_rows(before.rows, before.properties):
            counts.note(table, BETWEEN.join(new), stays=True)
            self.places_before[table, new[0]] = None
            if MADE_UP in row_key and not scheme.spreads_any_row:
                counts.nowhere(table, new[0])
        counts.began()

    def note(self, table: str, row: str, *, stays: bool, new: bool) -> None:
        """A row is there from now on, or is not; see `StoredRows.note`."""
        if self._counts is not None:
            self._counts.note(table, row, stays=stays, new=new)

    def of(
        self,
        shape: TracedShape,
        partition_key: str | None,
        found: TreatedQuery,
        query: TracedQuery,
        recorded: int,
        returned: int,
    ) -> tuple[list[ScannedRange], bool]:
        """What a query scans, and False if it may scan more.

        Args:
            recorded: What it scanned when it was recorded.
        """
        ranges, counts, table = found.ranges, self._counts, shape.table
        served = shape.outcome.succeeded or not shape.outcome.wanted_again
        sure = not shape.estimated
        if counts is None or not ranges or (served and not found.counted):
            there: list[tuple[int, Shares]] = [(0, ())] * len(ranges)
        else:
            # What an exact query found was there, however many rows there are elsewhere.
            supposed = found.kept or not (found.exact and served)
            there = [counts.in_range(table, one, supposed=supposed) for one in ranges]
        wanted = [number for number, _ in there]
        counted, whole, top = sum(wanted), recorded, query.top
        page = shape.client, table, partition_key, query
        pages_of_it = shape.client, table, partition_key, query._replace(continued_at=None)
        since = 0
        if query.continued_at is not None:
            # What another reading has read already began there as well.
            since = self._paged.get(page, self._paged.get(pages_of_it, 0))
        full = query.full(returned) and found.ordered
        if not ranges:
            whole, sure = 0, sure and not found.narrowed
        elif found.narrowed:
            # Of the rows that it scanned, those of one value: at least those that it returned.
            passes = found.in_keys.issuperset(query.compared)
            full = passes and query.full(returned)
            whole = returned if full else max(returned, counted, min(1, recorded))
            sure = sure and passes and not found.unbounded
        elif not (found.continued or (found.exact and served)):
            whole = max(recorded, counted)
            known = found.exact and (table, partition_key, query.bounds) in self._read
            complete = table in self._complete and (counts is None or table not in counts.doubted)
            sure = complete or known or (found.exact and served and sure)
        elif found.continued or (found.spread and full):
            # Each of them ends after as many, or at its end.
            most = (recorded if full else counted) if served else top or 0
            wanted = [min(most, max(0, number - since)) for number in wanted]
            whole = max(0 if found.continued else recorded, sum(wanted))
        elif not found.kept and not full:
            # Other keys may begin as these do.
            whole = max(recorded, counted)
        if counts is not None and any(one.several for one in ranges):
            sure = sure and not counts.scattered(table)
        parts = divided(whole, wanted)
        share = returned / (whole if found.narrowed else recorded) if recorded and whole else 1.0
        share = min(1.0, share) if query.compared else 1.0
        if served:
            if len(self._paged) >= _MOST_PAGED:
                self._paged.clear()
            self._paged[page] = since
            self._paged[pages_of_it] = since + (recorded if full else whole)
        scanned = []
        for one, part, (number, shares) in zip(ranges, parts, there, strict=True):
            if found.continued and not part:
                continue
            pages, on_servers = max(1, -(-int(part * share) // MAX_PAGE_ENTITIES)), share
            if found.kept:
                # More pages than the rows need ended at servers.
                on_servers = 0.0 if pages_of(shape) > pages else share
                pages = pages_of(shape)
            if part > number > 0:
                shares = [(key, rows * part // number) for key, rows in shares]
            elif part < number and one.several and counts is not None:
                one, shares = counts.section(table, one, since, part)
            ends = full and (found.exact or found.narrowed)
            scanned.append(ScannedRange(one, part, shares, pages, on_servers, ends))
        return scanned, sure


def pages_of(shape: TracedShape) -> int:
    """The pages of a recorded query."""
    return max(1, sum(200 <= answer.status < 300 for answer in shape.attempts))
