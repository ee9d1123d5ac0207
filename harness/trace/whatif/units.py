"""What the operations of a trace ask of the limits: entities, or request units of Cosmos DB.

Limits in entities take the recorded entity counts. Request units are estimated: a trace holds no
charges, because it may be that of another service. The sizes of entities follow from the recorded
bytes; how many properties an entity has is not recorded.
"""

from __future__ import annotations

import bisect
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.gateway.demand import Place
from harness.gateway.limits import GatewayLimits, RequestUnitLimits
from harness.model.entity import MAX_PAGE_ENTITIES, key_problem, of_sort_key, sort_key
from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.partition import Partition
from harness.model.request_units import MISSING, QUERY_PAGE, RU, UNKNOWN_BYTES, charge
from harness.trace.head import TraceHead
from harness.trace.operations import (
    ASSUMED_PROPERTIES,
    Batch,
    Detail,
    TracedParts,
    TracedShape,
    part_bytes,
    read_bytes,
    sent_bytes,
)
from harness.trace.whatif.rows import Effects, Known

_KEPT = 50_000
"""Charges that are remembered."""
_QUERY, _POINT_QUERY, _TRANSACTION = Kind.QUERY, Kind.POINT_QUERY, Kind.TRANSACTION
_INSERT, _DELETE = Kind.INSERT, Kind.DELETE


class Scanned(int):
    """The entities that an operation takes, although it asks for one: the gateway cannot know more.

    They are those that a query scans, and none if an operation found nothing to write.
    """

    __slots__ = ()


NOTHING = Scanned(0)


def divided(whole: int, parts: Sequence[int]) -> list[int]:
    """A whole number, divided in proportion to ``parts``; evenly if they are nothing."""
    total = sum(parts)
    if not total:
        each, rest = divmod(whole, len(parts) or 1)
        return [each + (place < rest) for place in range(len(parts))]
    ends = [whole * done // total for done in itertools.accumulate(parts, initial=0)]
    return [end - start for start, end in itertools.pairwise(ends)]


class ScanPage(NamedTuple):
    """What a page of a query takes: of the place that it is sent to, and of other partitions.

    Attributes:
        shares: Places and entities, as far as partitions are told apart.
        firsts: PartitionKeys where the servers begin that it reads; empty for all that are left.
    """

    own: int
    shares: tuple[tuple[Place, int], ...] = ()
    firsts: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.own + sum(count for _, count in self.shares)

    def with_next(self, page: ScanPage) -> ScanPage:
        """One page in place of this one and the next."""
        return ScanPage(self.own + page.own, self.shares + page.shares, self.firsts + page.firsts)

    def divided(self, parts: Sequence[int]) -> list[ScanPage]:
        """Pages in proportion to ``parts``, which read the partitions one after the other."""
        waiting, pages = [*reversed(self.shares)], []
        rooms = divided(self.total - self.own, parts)
        for own, room in zip(divided(self.own, parts), rooms, strict=True):
            shares = []
            while waiting and room > 0:
                place, rows = waiting.pop()
                taken = min(rows, room)
                room -= taken
                shares.append((place, taken))
                if rows > taken:
                    waiting.append((place, rows - taken))
            pages.append(ScanPage(own, tuple(shares), self.firsts))
        return pages


class PagedScan(int):
    """The entities of a query with several pages or partitions, but for those of ``shares``.

    Each page is sent when the one before was answered.

    Attributes:
        pages: The first of them is the next one.
        page_s: How long a page takes.
        keys: The first PartitionKey that it may find, and the end of what it finds.
        returned: Share of its entities that it returns; 0 if it has no pages but those.
        full: As of a `RowScan`.
    """

    pages: tuple[ScanPage, ...]
    page_s: float
    keys: tuple[str, str | None]
    returned: float
    full: bool

    @classmethod
    def of(
        cls,
        pages: tuple[ScanPage, ...],
        page_s: float,
        keys: tuple[str, str | None] = ("", None),
        returned: float = 0.0,
        *,
        full: bool = False,
        own: int | None = None,
    ) -> PagedScan:
        """``own``: what the pages take of their own, if that is known."""
        paged = cls(sum(page.own for page in pages) if own is None else own)
        paged.pages, paged.page_s, paged.keys, paged.returned = pages, page_s, keys, returned
        paged.full = full
        return paged

    @property
    def rest(self) -> PagedScan | None:
        """What follows the next page."""
        pages, (first, before) = self.pages[1:], self.keys
        if not pages:
            return None
        if shares := pages[0].shares:
            first = shares[0][0][1] or ""
        own = int(self) - self.pages[0].own
        return PagedScan.of(pages, self.page_s, (first, before), full=self.full, own=own)

    def cut(self, borders: Sequence[str], missing: Mapping[Place, int]) -> PagedScan:
        """The query whose pages end, too, where the table is on another server.

        A page goes on where it found nothing to return. The entities of partitions that are not
        told apart are taken to be evenly spread over the servers. Rows of partitions that are
        ``missing`` need no page.
        """
        on_servers: list[list[tuple[Place, int]]] = [[] for _ in range(len(borders) + 1)]
        for page in self.pages:
            for share in page.shares:
                key = sort_key(share[0][1] or "")
                on_servers[bisect.bisect_right(borders, key)].append(share)
        pages: list[ScanPage] = []
        ended, full, read = 0.0, round(MAX_PAGE_ENTITIES / self.returned), ScanPage(0)
        firsts = [self.keys[0], *map(of_sort_key, borders)]
        owns = divided(int(self), [0] * len(on_servers))
        for first, own, shares in zip(firsts, owns, on_servers, strict=True):
            scanned = own + sum(max(0, rows - missing.get(place, 0)) for place, rows in shares)
            ended += -(-scanned // full) if scanned > full else 1 - (1 - self.returned) ** scanned
            read = read.with_next(ScanPage(own, tuple(shares), (first,)))
            if (more := round(ended) - len(pages)) > 0:
                last = max(1, read.total - full * (more - 1))
                pages += [read] if more == 1 else read.divided([*[full] * (more - 1), last])
                read = ScanPage(0)
        if read.total:
            before = pages.pop() if pages else ScanPage(0)
            pages.append(before.with_next(read))
        if len(pages) <= len(self.pages):
            return self
        return PagedScan.of(tuple(pages), self.page_s, self.keys, full=self.full)

    def grown(self, own: int, rows: Mapping[Place, int]) -> PagedScan:
        """The query after rows were added or removed, which its last page finds, or does not.

        Args:
            own: Rows of the partition that it is sent to.
            rows: Rows by partition, of a query over several.
        """
        *others, last = self.pages
        left = dict(rows)
        shares = [(place, max(0, count + left.pop(place, 0))) for place, count in last.shares]
        others_left = sorted(left, key=lambda place: sort_key(place[1] or ""))
        shares += [(place, left[place]) for place in others_left if left[place] > 0]
        last = ScanPage(max(0, last.own + own), tuple(shares))
        return PagedScan.of((*others, last), self.page_s, self.keys, self.returned)


class Places(dict[str, Place]):
    """Table and PartitionKey, by the names of partitions in counts. Forgotten names are parsed."""

    def __missing__(self, name: str) -> Place:
        partition = Partition.named(name)
        place = self[name] = partition.table, None if partition.whole_table else partition.key
        return place


def name_of(place: Place) -> str:
    table, key = place
    return Partition(table, WHOLE_TABLE if key is None else key).name


class Loads(NamedTuple):
    """What the operations of a batch ask for, in columns of equal length.

    Attributes:
        instants: Milliseconds.
        amounts: In the unit of the limits.
        origins: Places of the operations in the batch; negative where the effect on rows is not
            known, as of a transaction that is split.
        effects: The effects of the operations on rows; None where they do not matter.
        paged_scans: Places of those that are `PagedScan`.
    """

    instants: Sequence[int]
    names: Sequence[str]
    amounts: Sequence[int]
    origins: Sequence[int]
    effects: Effects | None
    paged_scans: Sequence[int] = ()

    def between(self, start: int, end: int) -> Loads:
        return Loads(
            self.instants[start:end],
            self.names[start:end],
            self.amounts[start:end],
            self.origins[start:end],
            self.effects,
            [at - start for at in self.paged_scans if start <= at < end],
        )

    def later(self, shift_ms: int) -> Loads:
        """The same so many milliseconds later."""
        return self._replace(instants=[at_ms + shift_ms for at_ms in self.instants])

    @property
    def largest(self) -> int:
        """The most that one request takes."""
        most = max(self.amounts)
        for at in self.paged_scans:
            paged = self.amounts[at]
            assert isinstance(paged, PagedScan)
            most = max(most, *(page.total for page in paged.pages))
        return most

    def shares(self) -> Iterator[tuple[int, str, int]]:
        """What paged scans take of partitions besides: instants, names, amounts."""
        for at in self.paged_scans:
            paged = self.amounts[at]
            assert isinstance(paged, PagedScan)
            for page in paged.pages:
                for place, count in page.shares:
                    yield self.instants[at], name_of(place), count


def _up_to(characters: int) -> re.Pattern[str]:
    """Matches keys of so many characters without one that the service refuses."""
    return re.compile(rf"[^/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{characters}}}")


class LoadUnit:
    """What is counted of the operations of one trace: here entities, as Azure Storage does.

    Attributes:
        scale: So many of what is counted are one of what outputs show.
        valid_key: A key that matches is valid. Of another one, `key_problem` says whether it is.
        sure_length: A recorded key of so many characters is valid.
    """

    scale = 1
    valid_key = _up_to(512)
    sure_length = sys.maxsize

    def amounts(self, batch: Batch, known: Sequence[Known]) -> list[int]:
        """What each operation asks for, but for `each_page`.

        ``known``: whether its row was known before, as `KnownRows` has it.
        """
        return batch.entities

    def each_page(self, shape: TracedShape, *, all_partitions: bool) -> int:
        """What a page of a query asks of every partition in addition, or of all together."""
        return 0

    def more_scanned(self, entities: int) -> int:
        """What a query takes for entities that it scans besides those that it scanned."""
        return entities

    def without_row(self, kind: Kind, amount: int) -> int:
        """What an operation takes if its row is not there, in place of ``amount``."""
        return 0 if kind.needs_row else amount

    def key_problem(self, key: str, *, row: bool) -> str | None:
        """Why the service refuses a PartitionKey, or a RowKey; None where it is valid."""
        return key_problem(key)


class RequestUnits(LoadUnit):
    """Charges in hundredths of a request unit; see `harness.model.request_units`.

    Assumed: an upsert replaces an entity that the trace read or wrote before, every page of a query
    asks each of its partitions, and a refused write costs as much as a look at the entity.

    """

    scale = RU

    def __init__(self, limits: RequestUnitLimits, head: TraceHead) -> None:
        # No character takes more than four bytes.
        self.sure_length = min(limits.partition_key_bytes, limits.row_key_bytes) // 4
        self.valid_key = _up_to(self.sure_length)
        self._limits = limits
        self._physical = limits.physical_partitions
        self._head = head
        self._charges: dict[tuple[Kind, int, bool], int] = {}

    def amounts(self, batch: Batch, known: Sequence[Known]) -> list[int]:
        return [
            self._charged(*row)
            for row in zip(
                batch.shapes,
                known,
                batch.entities,
                batch.returned,
                batch.bytes_sent,
                batch.bytes_received,
                batch.details,
                strict=True,
            )
        ]

    def each_page(self, shape: TracedShape, *, all_partitions: bool) -> int:
        if not shape.outcome.charged:
            return 0
        return QUERY_PAGE * (self._physical if all_partitions else 1)

    def more_scanned(self, entities: int) -> int:
        return charge(_QUERY, 0, scanned=entities, physical=0)

    def without_row(self, kind: Kind, amount: int) -> int:
        # An upsert that replaces an entity costs twice as much as one that does not.
        return amount // 2 if kind.upserts else MISSING

    def key_problem(self, key: str, *, row: bool) -> str | None:
        most = self._limits.row_key_bytes if row else self._limits.partition_key_bytes
        length = len(key.encode("utf-8", "surrogatepass"))
        if length > most:
            return f"has {length:,} bytes; Cosmos DB allows {most:,}"
        return key_problem(key)

    def _charged(
        self,
        shape: TracedShape,
        known: Known,
        entities: int,
        returned: int,
        sent: int,
        received: int,
        detail: Detail,
    ) -> int:
        kind, outcome = shape.kind, shape.outcome
        if not outcome.charged:
            return 0
        if outcome.regular:
            return MISSING
        attempts = len(shape.attempts)
        if kind is _QUERY:
            read = read_bytes(received, attempts, self._head)
            # A log does not say how many entities a query returned.
            returned = returned or read // UNKNOWN_BYTES
            found = returned and returned * self._of(_POINT_QUERY, read // returned)
            return found + charge(_QUERY, 0, scanned=max(0, entities - returned), physical=0)
        if kind is _TRANSACTION:
            if not isinstance(detail, TracedParts):
                size = sent_bytes(sent, attempts, self._head) // max(1, entities)
                return max(1, entities) * self._of(_INSERT, size)
            assert isinstance(known, tuple)
            parts = len(detail.kinds)
            return sum(
                self._of(part, part_bytes(whole, parts, attempts, self._head), there)
                for part, whole, there in zip(detail.kinds, detail.sizes, known, strict=True)
            )
        if kind is _POINT_QUERY:
            return self._of(kind, read_bytes(received, attempts, self._head))
        return self._of(kind, sent_bytes(sent, attempts, self._head), bool(known))

    def _of(self, kind: Kind, size: int, replaces: bool = False) -> int:
        if kind is _DELETE:
            size = UNKNOWN_BYTES
        key = kind, size, replaces
        known = self._charges.get(key)
        if known is None:
            if len(self._charges) >= _KEPT:
                self._charges.clear()
            properties = ASSUMED_PROPERTIES if kind.stores else 0
            known = charge(kind, size, properties=properties, replaces=replaces)
            self._charges[key] = known
        return known


ENTITIES = LoadUnit()


def unit_of(limits: GatewayLimits, head: TraceHead) -> LoadUnit:
    """The unit of the limits, for one reading of a trace."""
    return ENTITIES if limits.units is None else RequestUnits(limits.units, head)
