"""Burst capacity: what a physical partition did not use serves a burst later.

Source: "Burst capacity in Azure Cosmos DB": a physical partition with less than 3,000 RU/s keeps
its idle throughput of up to 300 s, and may use it at up to 3,000 RU/s. The service does not
guarantee it, and has it only where it is switched on. Off unless asked for.
"""

from __future__ import annotations

from harness.gateway.limits import RequestUnitLimits
from harness.model.request_units import RU


class BurstCapacity:
    """What one physical partition keeps; amounts are in hundredths of an RU."""

    __slots__ = ("_kept", "_per_s", "_seconds")

    def __init__(self, limits: RequestUnitLimits) -> None:
        self._seconds = limits.burst_capacity_s
        self._per_s = round(limits.burst_ru_per_s * RU)
        self._kept = 0

    def keep(self, unused: int, share: int) -> None:
        """Keep what was left of the ``share`` of earlier seconds."""
        most = round(self._seconds * share) if share < self._per_s else 0
        self._kept = min(most, self._kept + unused)

    def serves(self, used: int) -> bool:
        """Whether something is left for a request, after ``used`` was charged in this second."""
        return self._kept > 0 and used < self._per_s

    def draw(self, debt: int, used: int) -> int:
        """Take what pays for a debt, as far as there is enough, and return it."""
        if used > self._per_s:
            return 0
        drawn = min(debt, self._kept)
        self._kept -= drawn
        return drawn
