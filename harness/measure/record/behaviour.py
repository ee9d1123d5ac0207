"""The part of a record about how an application uses tables: counts, and no text of a key."""

from __future__ import annotations

from typing import Annotated

import pydantic

from harness.measure.record.findings import RecordPart

_Count = Annotated[int, pydantic.Field(ge=0)]
_Share = Annotated[float, pydantic.Field(ge=0, le=1)]


class QueriesPart(RecordPart):
    """Answered queries of one name to one table.

    Attributes:
        name: As in an `OperationPart`.
        unbounded: Queries that name no range of keys.
        single: Queries that scanned one entity at most.
        filtered: Queries that compare a property other than the keys.
        limited: Queries with a ``$top``.
        unselected: Queries without a ``$select``, which returned ``unselected_entities`` in
            ``unselected_bytes`` of answers.
        full: Queries that returned 1,000 entities, the most in one answer, or more.
        entities: Entities that were scanned.
        exact: Queries of which it is known how many entities were scanned: ``exact_entities``, of
            which ``exact_returned`` were returned. Of the others ``entities`` is a lower bound.
    """

    name: str
    table: str = ""
    count: _Count = 0
    over_partitions: _Count = 0
    unbounded: _Count = 0
    single: _Count = 0
    filtered: _Count = 0
    limited: _Count = 0
    unselected: _Count = 0
    unselected_entities: _Count = 0
    unselected_bytes: _Count = 0
    full: _Count = 0
    entities: _Count = 0
    entities_returned: _Count = 0
    exact: _Count = 0
    exact_entities: _Count = 0
    exact_returned: _Count = 0


class TableBehaviourPart(RecordPart):
    """The keys of one table, and what is done to its rows.

    What keys look like is that of a sample: some hundred PartitionKeys, and as many written rows.

    Attributes:
        partitions: Number of PartitionKeys; above 256 an estimate, about 6 % exact.
        writing: Operations that insert or upsert.
        inserted: Rows inserted, in transactions or not.
        upserted: Rows inserted or updated, in transactions or not.
        batches: Transactions that only insert, 10 rows or more.
        touched: Point queries, updates, upserts and deletes, and transactions with one of them.
        hottest_row: Operations that name the busiest row and were not refused, at least.
        growth: 1 if inserts and upserts go to ever later PartitionKeys, -1 if to ever earlier
            ones, 0 if to several places, None if there were too few.
        dates: Whether PartitionKeys begin with a date.
        row_guids: Whether RowKeys of written rows are GUIDs.
        unpadded: Whether numbers in PartitionKeys have different widths, with ``row_unpadded``.
        longest_key: Characters.
        escaped: Keys that have to be escaped in an address, as a share.
        foreign: Keys that are not ASCII, as a share.
    """

    table: str = ""
    operations: _Count = 0
    partitions: _Count = 0
    writing: _Count = 0
    inserted: _Count = 0
    upserted: _Count = 0
    batches: _Count = 0
    touched: _Count = 0
    hottest_row: _Count = 0
    growth: Annotated[int, pydantic.Field(ge=-1, le=1)] | None = None
    dates: bool = False
    guids: bool = False
    row_guids: bool = False
    unpadded: bool = False
    row_unpadded: bool = False
    longest_key: _Count = 0
    escaped: _Share = 0.0
    foreign: _Share = 0.0


class WritesPart(RecordPart):
    """How writes follow one another.

    Attributes:
        singles: Writes of one entity in a request.
        together: Of these, writes to different rows of one partition from one client in the same
            second.
        saved: Requests that transactions of up to 100 would have saved among ``together``.
        transactions: Entity group transactions, with ``batched`` writes.
        read_first: Unconditional writes of an entity that the client had read in the second before.
        read_first_conditional: The same with an ETag.
        updates: Updates and deletes of one entity, of which ``unconditional`` with any ETag.
    """

    singles: _Count = 0
    together: _Count = 0
    saved: _Count = 0
    transactions: _Count = 0
    batched: _Count = 0
    read_first: _Count = 0
    read_first_conditional: _Count = 0
    updates: _Count = 0
    unconditional: _Count = 0


class WaitsPart(RecordPart):
    """The waits of retries: from an answer to the next attempt of the same operation, by its id.

    Waits after a connection error, which can be retried at once, are not counted.

    Attributes:
        count: Waits after an answer that can be retried, such as 500, 503 or 429.
        after_throttling: Those after a throttling answer.
        at_once: Waits of less than 0.1 s, with ``at_once_after_throttling``.
        followed: Waits after another wait of the same operation, of which ``longer`` were at least
            a fifth longer.
        in_vain: Requests sent again after an answer that no retry changes, such as 400 or 403.
    """

    count: _Count = 0
    after_throttling: _Count = 0
    median_s: float | None = None
    at_once: _Count = 0
    at_once_after_throttling: _Count = 0
    followed: _Count = 0
    longer: _Count = 0
    in_vain: _Count = 0


class BehaviourPart(RecordPart):
    """How an application uses tables, for the practices that `harness check` compares it with.

    Attributes:
        queries: Those with the most entities first; beyond 60 names they are together.
        tables: Those with the most operations first; beyond 20 they are left out.
    """

    results: _Count = 0
    queries: tuple[QueriesPart, ...] = ()
    tables: tuple[TableBehaviourPart, ...] = ()
    writes: WritesPart = WritesPart()
    waits: WaitsPart = WaitsPart()
