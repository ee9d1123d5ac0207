"""What the master decides before a run and every worker is told. Holds no secret."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from typing import Any, Self

from harness.endpoint.connection import Endpoint
from harness.endpoint.table_names import new_table_name
from harness.model.errors import SetupError
from harness.model.target import EndpointKind
from harness.profile.load import NamedProfile, parse
from harness.profile.scenarios import fingerprint
from harness.profile.schema import Profile

OPTION = "aztables_run"
"""Key of the plan among Locust's parsed options, which Locust sends to workers by itself."""

CLOCKS_WITHIN_S = 5.0
"""So far the clocks of workers may be from the master's, the way of a message included."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One run.

    Attributes:
        run_id: UTC time and 8 hex digits.
        table: The table that is stressed.
        tables: Endings of the names of all its tables; most have one, without an ending.
        scenario_hash: Of a user's own scenario file; a worker that has another refuses.
        own_table: True where the run made the table and deletes it.
        session: Which kind of session sends.
        fingerprint: Of endpoint and account; a worker that finds another refuses.
        remote: True where the endpoint is not on this machine.
        embedded: True where the endpoint is the Azurite that the harness started. Credentials of
            the environment have nothing to do with it.
        throttled: True where the harness's own gateway stands before that Azurite.
    """

    run_id: str
    profile_name: str
    profile: Profile
    table: str
    tables: tuple[str, ...]
    scenario_hash: str
    own_table: bool
    session: str
    fingerprint: str
    remote: bool
    embedded: bool
    throttled: bool

    @property
    def table_names(self) -> tuple[str, ...]:
        """Whole names of all its tables."""
        return tuple(self.table + ending for ending in self.tables)

    def to_options(self) -> dict[str, Any]:
        """The plan in the types that Locust can send."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        content["profile"] = self.profile.model_dump(mode="json", exclude_unset=True)
        return content

    @classmethod
    def from_options(cls, content: dict[str, Any]) -> Self:
        """What `to_options` gave."""
        profile = parse(content["profile"], source=content["profile_name"])
        return cls(**{**content, "profile": profile, "tables": tuple(content["tables"])})


def new_plan(
    named: NamedProfile,
    now: dt.datetime,
    *,
    session: str | None,
    table: str | None,
    tables: tuple[str, ...],
    endpoint: Endpoint,
    embedded: bool,
) -> RunPlan:
    """The plan of a run that is prepared at ``now``, UTC.

    Args:
        session: Which kind of session sends; None is the profile's.
        table: An existing table; None is one of the run's own, with a name of its own.
        tables: Endings of the names of all tables that the workload has.
        embedded: True where the endpoint is the harness's own Azurite.

    Raises:
        SetupError: an existing table is to be used, but the workload has several; or the file of
            a scenario cannot be read.
    """
    if table is not None and tables != ("",):
        raise SetupError(
            f"--table names one table, and profile {named.name} has {len(tables)}: leave it out, "
            "and the run makes its own"
        )
    # Two runs of the same seed must not get one name.
    chance = random.SystemRandom()
    return RunPlan(
        run_id=f"{now:%Y%m%dT%H%M%SZ}-{chance.getrandbits(32):08x}",
        profile_name=named.name,
        profile=named.profile,
        table=new_table_name(now, chance) if table is None else table,
        tables=tables,
        scenario_hash=fingerprint(named.profile.scenario),
        own_table=table is None,
        session=session or named.profile.session.kind,
        fingerprint=endpoint.fingerprint,
        remote=endpoint.remote,
        embedded=embedded,
        throttled=endpoint.kind is EndpointKind.GATEWAY,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One worker's part of a run; sent again whenever it changes. Times are UTC seconds.

    Attributes:
        rank: Number of the worker among ``count``, dense.
        budget: Billable transactions it may make in all; None is without bound.
        epoch_s: When the schedule began.
        from_s: Seconds of the schedule from which on it holds, for every worker the same.
        hold: From when on, in seconds of the schedule, the rate of all workers together is
            another, and which; None is the profile's.
        window: The measured window; None while it is not open.
        told_s: When the master said so.
    """

    run_id: str
    rank: int
    count: int
    budget: int | None
    epoch_s: float
    from_s: float
    hold: tuple[float, float] | None
    window: tuple[float, float] | None
    told_s: float

    def clock_problem(self, now_s: float) -> str | None:
        """Why the clock of who hears it at ``now_s``, UTC, cannot be used, as a sentence, or None.

        What workers count is put together by the second, and they begin and end by the clock.
        """
        ahead_s = now_s - self.told_s
        if abs(ahead_s) <= CLOCKS_WITHIN_S:
            return None
        way = "ahead of" if ahead_s > 0 else "behind"
        return (
            f"its clock is {abs(ahead_s):,.0f} s {way} the master's, and seconds are put "
            "together by the clock; let both machines keep the time (NTP)"
        )

    def to_message(self) -> dict[str, Any]:
        """The share in the types that Locust can send."""
        return dataclasses.asdict(self)

    @classmethod
    def from_message(cls, content: dict[str, Any]) -> Self:
        """What `to_message` gave."""
        pairs = {
            name: None if content[name] is None else tuple(content[name])
            for name in ("hold", "window")
        }
        return cls(**{**content, **pairs})
