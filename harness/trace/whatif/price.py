"""What a key scheme costs the operations of a trace."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class Price:
    """What a scheme costs, in operations and entities of the trace.

    Attributes:
        unknown: Operations whose new PartitionKey cannot be told, because the trace lacks a key.
        unmatched: Operations whose keys no regular expression of the scheme matches; they keep
            their keys.
        split: Transactions whose parts would be in several partitions.
        spread: Queries that would become several, of a partition or of a range of them each.
        needed: Queries that these would become, added up.
        most_needed: Queries that one of them would become.
        ranged: Queries of one partition before that would need a range of partitions.
        scans: Queries of fewer partitions before that would have to read the whole table.
        unbounded: Queries of a range of RowKeys that would have to read the whole partition.
        unvalued: Operations on rows of which the trace does not show a property that the scheme
            needs; they keep their keys.
        refused: Operations with a key that the service refuses. Their load counts nevertheless.
        walked: Entities that the queries would walk.
        walked_is_lower_bound: They may walk more, because rows that were there before the trace,
            and that no operation showed, may be in what they read.
    """

    operations: int = 0
    unknown: int = 0
    unmatched: int = 0
    transactions: int = 0
    split: int = 0
    queries: int = 0
    spread: int = 0
    needed: int = 0
    most_needed: int = 0
    ranged: int = 0
    scans: int = 0
    unbounded: int = 0
    unvalued: int = 0
    refused: int = 0
    walked: int = 0
    walked_is_lower_bound: bool = False
