"""The part of a record about a watched application."""

from __future__ import annotations

from typing import Annotated

import pydantic

from harness.measure.record.findings import RecordPart

_Count = Annotated[int, pydantic.Field(ge=0)]
_Percent = Annotated[float, pydantic.Field(ge=0)]


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
        passed: Requests that reached the endpoint.
        others: Requests that are not about entities, such as the creation of a table.
        over_budget: Requests that the budget of billable transactions refused.
        unjoined: Failed requests without ``x-ms-client-request-id``. If one was sent again, that
            was counted as another operation.
        succeeded_after: Operations that succeeded, by their number of attempts, from 2.
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
    clients: tuple[ClientPart, ...] = ()
    gateway_cpu_percent: _Percent = 0.0
    gateway_busy_share: _Percent = 0.0
