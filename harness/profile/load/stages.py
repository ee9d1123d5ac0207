"""Stages, one after the other: of a rate, which is open, or of users, who are closed loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

import pydantic
from pydantic import Field

from harness.model.figures import counted, number
from harness.model.services.service import CountedUnit, Service
from harness.profile.load.closed import ClosedLoad
from harness.profile.load.model import Load, LoadModel, Replay
from harness.profile.settings.parts import MOST_RATE, TWO_WEEKS_S, Part
from harness.workload.pacing import RateStage, Schedule

_StageRate = Annotated[float, Field(ge=0, le=MOST_RATE)]


class Stage(Part):
    """A ramp to a rate or to a number of users; a hold where nothing changes."""

    for_s: Annotated[float, Field(gt=0, le=TWO_WEEKS_S)]
    """Length of the stage."""
    to_entities_per_s: _StageRate | None = None
    """Open load: entities due per second, at its end."""
    to_operations_per_s: _StageRate | None = None
    """Open load: operations due per second, at its end."""
    to_users: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Closed load: users at its end."""
    jump: bool = False
    """Go to the new rate at once and hold it: a burst, a stair."""

    @property
    def unit(self) -> str | None:
        """The name of the setting that is given; None if it is not exactly one."""
        names = ("to_entities_per_s", "to_operations_per_s", "to_users")
        given = [name for name in names if getattr(self, name) is not None]
        return given[0] if len(given) == 1 else None

    @pydantic.model_validator(mode="after")
    def _one_unit(self) -> Self:
        if self.unit is None:
            raise ValueError(
                "a stage has one of to_entities_per_s, to_operations_per_s and to_users"
            )
        return self

    @property
    def to(self) -> float:
        """The rate, or the number of users, at its end."""
        value: float = getattr(self, self.unit or "to_users")
        return value


class _Stages(LoadModel):
    """What stages of rates and of users share: their length is that of the window."""

    run_time_setting = None
    steady = False

    def __init__(self, load: Load, replay: Replay | None, stages: Sequence[Stage]) -> None:
        super().__init__(load, replay)
        self.stages = stages
        before = (0.0, *(stage.to for stage in stages))
        self.jumps = [
            (rate, stage.to)
            for rate, stage in zip(before, stages, strict=False)
            if stage.jump and stage.to > rate
        ]

    def problems(self) -> Iterator[str]:
        if len({stage.unit for stage in self.stages}) > 1:
            yield "stage: all stages must change the same quantity: entities, operations or users"
        if not any(stage.to for stage in self.stages):
            yield "stage: every stage goes to 0; nothing would be sent"
        if self.load.rate_per_s is not None:
            yield "stage and load: the stages set the rate; leave it out of [load]"
        yield from super().problems()

    @property
    def window_s(self) -> int:
        return math.ceil(sum(stage.for_s for stage in self.stages))


class StagesOfRates(_Stages):
    """Ramps, holds and jumps of a rate, which begin when all users are up."""

    starts_with_window = True

    def __init__(self, load: Load, replay: Replay | None, stages: Sequence[Stage]) -> None:
        super().__init__(load, replay, stages)
        self.by_operation = stages[0].unit == "to_operations_per_s"
        self.rate_per_s = max(stage.to for stage in stages)
        self.setting = f"stage.{stages[0].unit}"

    def words(self, unit: CountedUnit) -> str:
        named = "operations/s" if self.by_operation else unit.rate
        rates = f"{counted(len(self.stages), 'stage')} of up to {number(self.rate_per_s)} {named}"
        return f"{rates} on a schedule"

    @property
    def schedule(self) -> Schedule:
        return Schedule.of(
            RateStage(
                for_s=stage.for_s, to_per_s=stage.to, from_per_s=stage.to if stage.jump else None
            )
            for stage in self.stages
        )

    def most_requests(self, kind: Service) -> float:
        if self.replay is not None:
            return super().most_requests(kind)
        return self.schedule.due_by(self.window_s)


class StagesOfUsers(_Stages, ClosedLoad):
    """Users come and go while each waits for its answers; ``load.users`` are there before."""

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.replay is not None:
            yield "replay and stage: a replay needs stages of rates; use to_operations_per_s"

    def users_at(self, at_s: float) -> int:
        users = float(self.load.users)
        for stage in self.stages:
            if at_s < stage.for_s:
                part = 1.0 if stage.jump else max(0.0, at_s) / stage.for_s
                return math.floor(users + (stage.to - users) * part)
            at_s -= stage.for_s
            users = stage.to
        return math.floor(users)

    def users_words(self, users: int) -> str:
        counts = [self.load.users, *(round(stage.to) for stage in self.stages)]
        most, stages = counted(max(counts), "user"), counted(len(self.stages), "stage")
        return f"{min(counts):,} to {most} ({stages})"
