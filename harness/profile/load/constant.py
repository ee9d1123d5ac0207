"""The constant rate: as many units are due in every second, after a ramp."""

from __future__ import annotations

from harness.model.figures import number
from harness.model.services.service import CountedUnit
from harness.profile.load.model import Load, LoadModel, Replay
from harness.workload.pacing import RateStage, Schedule

_SHORTEST_RAMP_S = 0.1


class ConstantRate(LoadModel):
    """The rate of ``[load]``, which is reached while the users start.

    Sudden load is throttled until the service has balanced it (performance checklist, "Targets for
    data operations").
    """

    lasting = True

    def __init__(self, load: Load, replay: Replay | None = None) -> None:
        super().__init__(load, replay)
        self.by_operation = load.operations_per_s is not None
        self.rate_per_s = load.rate_per_s or 0.0
        self.setting = f"load.{'operations' if self.by_operation else 'entities'}_per_s"

    def words(self, unit: CountedUnit) -> str:
        return f"{self.rated(unit)} ({self.load.arrivals} arrivals)"

    def rated(self, unit: CountedUnit) -> str:
        """The rate, without the order of arrivals."""
        named = "operations/s" if self.by_operation else unit.rate
        return f"{number(self.rate_per_s)} {named} on a schedule"

    @property
    def schedule(self) -> Schedule:
        ramp_s = max(self.load.ramp_s, _SHORTEST_RAMP_S)
        return Schedule.of([RateStage(for_s=ramp_s, to_per_s=self.rate_per_s)])
