"""Parts of a record about load that was not drawn: a replayed trace, or a watched application.

`ReplayPart` is also what every process of a replay has to know of its trace before the load.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import pydantic

from harness.measure.record.findings import RecordPart
from harness.model.figures import agreed, counted
from harness.model.operation import FOLDED, Kind

_Count = Annotated[int, pydantic.Field(ge=0)]
_Percent = Annotated[float, pydantic.Field(ge=0)]


@dataclasses.dataclass(slots=True, kw_only=True)
class ReplayedKind:
    """The operations of one name that are sent; figures are those of the recording."""

    label: str
    kind: Kind
    operations: _Count = 0
    entities: _Count = 0
    attempts: _Count = 0
    bytes_sent: _Count = 0
    bytes_received: _Count = 0


class LeftOut(RecordPart):
    """Operations of the trace that are not sent; ``reason`` completes "left out, because"."""

    reason: str
    operations: _Count


class ReplayPart(RecordPart):
    """The trace of a replay.

    Attributes:
        fingerprint: Hash of the file. A worker with another file refuses.
        source: What was recorded.
        run_id: The record with the counts of the recording; empty if there is none.
        first_ms: Instant of the first operation that is sent, milliseconds since the start of the
            trace; ``last_ms`` that of the last.
        entities: Their entity count in the recording.
        units: Entities by which an open load at a rate is paced: the recorded count, and at least 1
            for each operation.
        peak_entities_per_s: The recorded entities of the busiest second.
        counts_whole: Whether bytes are those of whole requests and answers, not of their bodies.
        left_out: Operations that are not sent.
        failed: Operations that failed in the recording, by throttling, timeouts or faults. They are
            sent all the same.
        inexact: Queries that cannot be made to find as many rows as in the recording.
        assumed: Queries whose entity count is taken from the recording, because no answer shows it;
            ``assumed_entities`` is the sum of these.
        tables: Ending of the table's name by its recorded name in lower case.
        compared: Names of the properties that filters compare, by ending of the table's name.
        entity_bytes: Mean bytes of a written entity as sent.
        notes: What is known to be missing in the trace, as sentences.
        speed: Multiple of the recorded speed; None in the recorded order at a rate.
        keys: Name of the key scheme; empty for the recorded keys. ``scheme`` is its content.
        share: What stays on one worker: ``key`` or ``client``.
    """

    trace: str
    fingerprint: str = ""
    source: str = ""
    run_id: str = ""
    first_ms: int = 0
    last_ms: int = 0
    operations: _Count = 0
    entities: _Count = 0
    units: _Count = 0
    peak_entities_per_s: _Count = 0
    counts_whole: bool = False
    left_out: tuple[LeftOut, ...] = ()
    failed: _Count = 0
    inexact: _Count = 0
    assumed: _Count = 0
    assumed_entities: _Count = 0
    tables: dict[str, str] = pydantic.Field(default_factory=dict)
    compared: dict[str, tuple[str, ...]] = pydantic.Field(default_factory=dict)
    kinds: tuple[ReplayedKind, ...] = ()
    entity_bytes: _Count = 0
    loaded_entities: _Count = 0
    loading_requests: _Count = 0
    notes: tuple[str, ...] = ()
    speed: float | None = 1.0
    keys: str = ""
    scheme: dict[str, Any] = pydantic.Field(default_factory=dict)
    share: str = "key"

    @property
    def seconds(self) -> float:
        """From the first to the last operation, as recorded."""
        return (self.last_ms - self.first_ms) / 1000

    def sentences(self) -> list[str]:
        """What a reader of the results has to know of the trace."""
        said = [
            f"{counted(one.operations, 'operation')} of the trace left out: {one.reason}."
            for one in self.left_out
        ]
        if self.failed:
            said.append(
                f"{counted(self.failed, 'operation')} failed in the recording (throttling, "
                f"timeouts, faults) and {agreed(self.failed, 'is', 'are')} sent all the same, so "
                "that counts may differ."
            )
        if self.inexact:
            said.append(
                f"{counted(self.inexact, 'query', 'queries')} cannot be made to find as many rows "
                "as in the recording."
            )
        if self.assumed:
            said.append(
                f"{counted(self.assumed, 'query', 'queries')} with a filter "
                f"{agreed(self.assumed, 'counts', 'count')} as many entities as in the recording "
                f"({self.assumed_entities:,}), because an answer does not show how many a filter "
                "read."
            )
        return [*said, *self.notes]


class ClientPart(RecordPart):
    """The requests of one user agent."""

    user_agent: str
    requests: _Count


class WatchedPart(RecordPart):
    """An application, measured by the gateway in front of the endpoint.

    Attributes:
        command: The program; empty if the watch started none.
        ended: How the program ended: ``exit code 0``, ``SIGKILL``; empty without a program.
        requests: All requests of the application, refused ones included.
        others: Requests that are not about entities, such as the creation of a table.
        over_budget: Requests that the budget of billable transactions refused.
        unjoined: Failed requests without an ``x-ms-client-request-id`` that a retry repeats. If one
            was sent again, that was counted as another operation.
        succeeded_after: Operations that succeeded, by their number of attempts, from 2.
        cause: Why no request about entities arrived, in sentences; empty if one did.
        clients: User agents, those with the most requests first; beyond 20 they are summed up.
        gateway_cpu_percent: Mean CPU of the busiest metering process, in percent of one core.
        gateway_busy_share: Share of the seconds in which it used 90 % of a core or more.
    """

    command: str = ""
    ended: str = ""
    requests: _Count = 0
    passed: _Count = 0
    others: _Count = 0
    over_budget: _Count = 0
    unjoined: _Count = 0
    succeeded_after: dict[int, _Count] = pydantic.Field(default_factory=dict)
    cause: str = ""
    clients: tuple[ClientPart, ...] = ()
    gateway_cpu_percent: _Percent = 0.0
    gateway_busy_share: _Percent = 0.0

    @property
    def known_clients(self) -> list[ClientPart]:
        """Those that are not summed up."""
        return [client for client in self.clients if client.user_agent != FOLDED]

    @property
    def senders(self) -> str:
        """How many clients sent requests: ``3 clients``, ``more than 20 clients``."""
        known = len(self.known_clients)
        more = "more than " if known < len(self.clients) else ""
        return f"{more}{counted(known, 'client')}"

    def clients_beyond(self, most: int) -> str:
        """How many clients there are beside the first ``most`` known ones; empty if there are none.

        Those that are summed up are one client or more.
        """
        known = len(self.known_clients)
        more = len(self.clients) - min(known, most)
        least = "at least " if known < len(self.clients) else ""
        return f"{least}{counted(more, 'more client')}" if more else ""
