"""The limits that a gateway held a run to, and the moves of partitions meanwhile."""

from __future__ import annotations

from typing import Annotated

import pydantic

from harness.measure.record.findings import RecordPart

_Rate = Annotated[float, pydantic.Field(gt=0)]


class MovePart(RecordPart):
    """A partition whose range moved to another server and was offline meanwhile.

    Attributes:
        start_s: When it went offline, in seconds from the start of the load.
        key: The partition whose refusal caused the move.
    """

    start_s: float
    offline_s: float
    key: str
    from_server: int
    to_server: int


class EnforcedPart(RecordPart):
    """What a gateway enforced, in entities/s: pages can draw these lines beside the targets."""

    partition_per_s: _Rate
    account_per_s: _Rate
    server_per_s: _Rate
    moves: tuple[MovePart, ...] = ()
