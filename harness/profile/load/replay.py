"""A replay: operations of a trace are due in their order at a rate, or at the recorded instants."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import PurePath

from harness.model.services.service import CountedUnit, Service
from harness.profile.load.constant import ConstantRate
from harness.profile.load.model import Load, Replay
from harness.profile.settings.parts import TWO_WEEKS_S
from harness.workload.pacing import Pacer, RecordedOrder, Schedule


class ReplayAtRate(ConstantRate):
    """The rate is that of ``[load]``; the load ends with the trace, or at a run time."""

    replay: Replay

    def __init__(self, load: Load, replay: Replay) -> None:
        super().__init__(load, replay)
        self.trace = PurePath(replay.trace).name

    def words(self, unit: CountedUnit) -> str:
        return f"{self.trace} in its order, {self.rated(unit)}"

    @property
    def window_s(self) -> int:
        if self.replay.found is None:
            return super().window_s
        late_s = math.ceil(self.load.give_up_after_s)
        whole_s = math.ceil(min(self.trace_s or 0.0, TWO_WEEKS_S)) + late_s
        if "run_time_s" not in self.load.model_fields_set:
            return whole_s
        return min(self.load.run_time_s, whole_s)

    @property
    def expected_window_s(self) -> float:
        return min(float(self.window_s), max(1.0, (self.trace_s or 0.0) - self.before_s))


class ReplayAtInstants(ReplayAtRate):
    """The instants are the recorded ones, and nothing is sent before the window."""

    starts_with_window = True
    steady = False

    def __init__(self, load: Load, replay: Replay) -> None:
        super().__init__(load, replay)
        self.settle_s = 0.0
        self.speed = replay.speed
        self.setting = "replay.speed"
        if replay.found is not None:
            self.rate_per_s = replay.found.peak_entities_per_s * replay.speed

    def words(self, unit: CountedUnit) -> str:
        times = "" if self.speed == 1.0 else f", {self.speed:g} times as fast"
        return f"{self.trace} at its recorded instants{times}"

    def problems(self) -> Iterator[str]:
        if self.load.arrivals != "constant":
            yield (
                "replay and load.arrivals: the recording says when operations arrive; leave it out"
            )

    @property
    def trace_s(self) -> float:
        return self.replay.content.seconds / self.replay.speed

    @property
    def schedule(self) -> Schedule:
        """The mean: the pacer follows the instants."""
        return Schedule.constant(self.replay.content.units / max(self.trace_s, 1.0))

    def pacer(self, kind: Service, arrivals: random.Random) -> Pacer:
        """The unit is a millisecond of the trace."""
        content = self.replay.content
        milliseconds = content.last_ms - content.first_ms + 1
        return RecordedOrder(Schedule.constant(1000.0 * self.replay.speed), milliseconds)
