"""How it is sent, in the words of a profile: load, retries, session, limits."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field

from harness.profile.settings.part import Part

_Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
_MOST_RATE = 10_000_000
_LEAST_RATE = 0.001
"""One in 1,000 s; what is slower never comes in the time that a run takes."""
_Rate = Annotated[float, Field(ge=_LEAST_RATE, le=_MOST_RATE, allow_inf_nan=False)]


def _no_cap_or_a_rate(cap: float) -> float:
    if _MOST_RATE < cap < math.inf:
        raise ValueError(f"a cap is at most {_MOST_RATE:,}, or inf, which is no cap")
    return cap


_Cap = Annotated[float, Field(ge=_LEAST_RATE), pydantic.AfterValidator(_no_cap_or_a_rate)]
_StageRate = Annotated[float, Field(ge=0, le=_MOST_RATE, allow_inf_nan=False)]
_StageUsers = Annotated[int, Field(ge=0, le=100_000)]


class Load(Part):
    """How many users send, how fast, and for how long.

    Without a rate the load is closed: each user waits for its answer, and the caps bound what
    comes of it. With ``entities_per_s`` or ``operations_per_s`` it is open: a schedule that does
    not wait for answers says when each operation is due, and users only bound how many are on
    the way at once.
    """

    users: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=20, description="how many send at once; each waits for its answer"
    )
    spawn_rate_per_s: Annotated[float, Field(ge=_LEAST_RATE, le=1000, allow_inf_nan=False)] = Field(
        default=10.0, description="users started a second; an open load ramps up in the same time"
    )
    settle_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = Field(
        default=3.0, description="seconds after the ramp, before measuring"
    )
    run_time_s: Annotated[int, Field(ge=1, le=14 * 24 * 3600)] = Field(
        default=30,
        description="length of the measured window; stages have their own, a search has most_s",
    )
    entities_per_s: _Rate | None = Field(
        default=None, description="open load: entities due a second, all users together"
    )
    operations_per_s: _Rate | None = Field(
        default=None, description="open load: operations due a second, all users together"
    )
    arrivals: Literal["constant", "poisson"] = Field(
        default="constant", description="open load: evenly spaced, or at random with the same mean"
    )
    give_up_after_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = Field(
        default=30.0, description="open load: what is later than this is dropped, and counted"
    )
    max_entities_per_s: _Cap | None = Field(
        default=None, description="closed load: at most so many entities a second; inf is no cap"
    )
    emulator_max_entities_per_s: _Cap = Field(
        default=500.0, description="closed load: the same on an emulator, which shares the machine"
    )

    @pydantic.model_validator(mode="after")
    def _one_unit(self) -> Self:
        if self.entities_per_s is not None and self.operations_per_s is not None:
            raise ValueError("entities_per_s and operations_per_s: a load has one of them")
        return self


class Stage(Part):
    """A ramp to a rate or to a number of users; a hold where nothing changes."""

    for_s: Annotated[float, Field(gt=0, le=14 * 24 * 3600, allow_inf_nan=False)] = Field(
        description="how long it takes"
    )
    to_entities_per_s: _StageRate | None = Field(
        default=None, description="entities due a second, at its end"
    )
    to_operations_per_s: _StageRate | None = Field(
        default=None, description="operations, in their place"
    )
    to_users: _StageUsers | None = Field(default=None, description="closed load: users at its end")
    jump: bool = Field(
        default=False, description="go to the new rate at once and hold it: a burst, a stair"
    )

    @property
    def unit(self) -> str | None:
        """Which of the three is given; None where it is not exactly one."""
        given = [
            name
            for name in ("to_entities_per_s", "to_operations_per_s", "to_users")
            if getattr(self, name) is not None
        ]
        return given[0] if len(given) == 1 else None

    @pydantic.model_validator(mode="after")
    def _one_unit(self) -> Self:
        if self.unit is None:
            raise ValueError(
                "a stage goes to one of to_entities_per_s, to_operations_per_s and to_users"
            )
        return self

    @property
    def to(self) -> float:
        """The rate, or the number of users, at its end."""
        value: float = getattr(self, self.unit or "to_users")
        return value


class Search(Part):
    """Look for the highest rate that is sustained, in steps; entities a second."""

    start_per_s: _Rate = Field(default=200.0, description="rate of the first step")
    max_per_s: _Rate = Field(default=20_000.0, description="no step is higher")
    factor: Annotated[float, Field(gt=1, le=10)] = Field(
        default=1.5, description="each step of the climb is so many times the one before"
    )
    settle_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=3.0, description="of each step, before it is looked at"
    )
    hold_s: Annotated[float, Field(ge=2, le=3600)] = Field(
        default=10.0, description="how long each step is looked at"
    )
    confirm_s: Annotated[float, Field(ge=2, le=24 * 3600)] = Field(
        default=30.0, description="the same for the step that confirms the rate that was found"
    )
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.03, description="the search ends when the gap to the failure is this share"
    )
    throttled_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.01, description="a step passes up to this share of throttled attempts"
    )
    p99_ms: Annotated[float, Field(gt=0)] = Field(
        default=1000.0, description="a step passes up to this p99 of response latency"
    )
    most_steps: Annotated[int, Field(ge=2, le=200)] = Field(
        default=30, description="bound of the search"
    )
    most_s: Annotated[int, Field(ge=1, le=14 * 24 * 3600)] | None = Field(
        default=None,
        description="bound of the search in seconds, as -t gives it; what was found until then "
        "counts. Default: most_steps alone",
    )

    @pydantic.model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.max_per_s < self.start_per_s:
            raise ValueError(
                f"search.max_per_s ({self.max_per_s:g}) is below search.start_per_s "
                f"({self.start_per_s:g})"
            )
        return self


class Audit(Part):
    """After the run, look every acknowledged write up again."""

    enabled: bool = Field(
        default=False, description="compare what is stored with what was acknowledged"
    )
    most_rows: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=200_000, description="of more rows a sample of this size is looked up"
    )


class Loading(Part):
    """What happens between loading the table and the load."""

    settle_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = Field(
        default=2.0, description="rest between loading and load"
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="transactions of 100 on the way at once"
    )


class Retry(Part):
    """When an operation is sent again."""

    strategy: Literal["none", "fixed", "exponential", "schedule"] = Field(
        default="exponential",
        description="none, the same wait, a growing one, or the waits of a list",
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(default=3, description="at most so many")
    backoff_s: _Seconds = Field(
        default=0.5, description="the fixed wait; z of the exponential formula"
    )
    minimum_s: _Seconds = Field(default=0.1, description="exponential: added to every wait")
    maximum_s: _Seconds = Field(
        default=8.0,
        description="no wait of exponential is longer, nor one that the service asks for",
    )
    delays_s: tuple[_Seconds, ...] = Field(
        default=(2.0, 4.0, 10.0, 30.0), description="schedule: the waits, one a retry"
    )


class Session(Part):
    """How requests are sent."""

    kind: Literal["sdk", "wire", "sdk-default"] = Field(
        default="sdk",
        description="azure-data-tables tuned for load, its requests without it, or as it comes",
    )
    connections: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=500, description="at most so many connections of a process"
    )
    connect_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = Field(
        default=5.0, description="for each address of the host"
    )
    read_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = Field(
        default=30.0, description="for each wait for more of an answer"
    )


class Limits(Part):
    """What a run may cost, and when it stops itself."""

    billable_transactions: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="budget of requests, loading and cleaning included; reaching it ends a run",
    )
    stop_on_account_throttling: bool = Field(
        default=True, description="end a run against a real account when the account is throttled"
    )
