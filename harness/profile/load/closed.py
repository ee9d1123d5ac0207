"""The closed load: every user sends its next operation when the last was answered."""

from __future__ import annotations

import random

from harness.model.figures import number
from harness.model.services.service import Service
from harness.profile.load.model import LoadModel
from harness.workload.pacing import ClosedLoop


class ClosedLoad(LoadModel):
    """As fast as answers arrive, up to a cap in entities/s."""

    scheduled = False
    setting = "load.max_entities_per_s"

    def pacer(self, kind: Service, arrivals: random.Random) -> ClosedLoop:
        return ClosedLoop(self.highest_per_s(kind))

    def highest_per_s(self, kind: Service, entities: float = 1.0) -> float | None:
        return self.load.cap(emulated=kind.emulated)

    def due_within(self, seconds: float, kind: Service) -> float | None:
        cap = self.highest_per_s(kind)
        return None if cap is None else cap * seconds

    def rate_words(self, kind: Service) -> str:
        cap = self.highest_per_s(kind)
        if cap is None:
            return "as fast as answers arrive"
        target = "target of one partition; " * kind.documented
        setting = f"{target}set load.max_entities_per_s for more"
        if cap == self.load.max_entities_per_s:
            setting = self.setting
        elif kind.emulated:
            setting = "load.emulator_max_entities_per_s"
        return f"at most {number(cap)} {kind.unit.rate} ({setting})"
