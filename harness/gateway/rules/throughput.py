"""The request units of a physical partition: its even share of what is provisioned, each second.

Source: "Partitioning and horizontal scaling in Azure Cosmos DB", "Physical partitions": provisioned
throughput is divided evenly among the physical partitions, and none can have more than 10,000 RU/s.
A request that arrives when the share of the second is used up is answered with 429. Assumed: shares
begin with each second of UTC, what is left over is lost, and what was charged beyond the share is
taken from the next seconds.

Autoscale, off unless asked for, refuses by the shares of the maximum too. Source: "Create Azure
Cosmos DB containers and databases with autoscale throughput": the throughput scales at once between
10 % of the maximum and the maximum, according to the physical partition that uses most of its
share, and each hour is billed with the highest RU/s of that hour.
"""

from __future__ import annotations

import dataclasses
import math

from harness.gateway.limits import RequestUnitLimits
from harness.gateway.rules.burst_capacity import BurstCapacity
from harness.model.physical_partitions import share_ru_per_s
from harness.model.request_units import RU

_LEAST_SHARE = 0.1


@dataclasses.dataclass(slots=True)
class _Budget:
    """What one physical partition may still use. Amounts are in hundredths of an RU.

    Attributes:
        second: The second that it is about.
        level: Left of the share; negative if more was charged.
        burst: Unused shares of earlier seconds.
        used: Charged in this second.
    """

    second: int
    level: int
    burst: BurstCapacity
    used: int = 0


class ThroughputRule:
    """The budgets of all physical partitions; charges are in hundredths of an RU.

    Attributes:
        busiest: The most that a physical partition used in one second, as a share of its own.
    """

    def __init__(self, limits: RequestUnitLimits) -> None:
        self._limits = limits
        self._budgets: dict[int, _Budget] = {}
        self._share = 0
        self.busiest = 0.0
        self.divide(limits.physical_partitions)

    @property
    def share_ru_per_s(self) -> float:
        """What each physical partition can serve, in RU/s."""
        return self._share / RU

    def divide(self, count: int) -> None:
        """Divide the provisioned throughput among ``count`` physical partitions."""
        per_s = share_ru_per_s(self._limits.provisioned_ru_per_s, count)
        self._share = max(1, round(min(per_s, self._limits.partition_ru_per_s) * RU))

    def allows(self, number: int, now_s: float) -> bool:
        """Whether the physical partition has anything left for a request."""
        budget = self._budget(number, now_s)
        return budget.level > 0 or budget.burst.serves(budget.used)

    def holds(self, number: int, charged: int, now_s: float) -> bool:
        """Whether requests with these charges pass in this second, in whatever order."""
        return self._budget(number, now_s).level >= charged

    def take(self, number: int, charged: int, now_s: float) -> None:
        """Take a charge, whatever is left; a negative one is given back."""
        budget = self._budget(number, now_s)
        budget.used += charged
        budget.level -= charged
        if budget.level < 0:
            budget.level += budget.burst.draw(-budget.level, budget.used)
        self.busiest = max(self.busiest, budget.used / self._share)

    def wait_ms(self, number: int, now_s: float) -> int:
        """Milliseconds until the physical partition has something left."""
        debt = max(0, -self._budget(number, now_s).level)
        wait_s = math.floor(now_s) + 1 - now_s + debt // self._share
        return max(1, math.ceil(wait_s * 1000))

    def _budget(self, number: int, now_s: float) -> _Budget:
        second = math.floor(now_s)
        budget = self._budgets.get(number)
        if budget is None:
            budget = self._budgets[number] = _Budget(
                second, self._share, BurstCapacity(self._limits)
            )
        elif second > budget.second:
            passed = second - budget.second
            # Shares of seconds without a request are unused, but for a debt that they pay.
            unused = max(0, budget.level + (passed - 1) * self._share)
            budget.burst.keep(unused, self._share)
            budget.level = min(self._share, budget.level + passed * self._share)
            budget.second = second
            budget.used = 0
        return budget


def scaled_to_ru_per_s(limits: RequestUnitLimits, busiest: float) -> float | None:
    """The RU/s that the stand-in scaled to, or None without autoscale.

    Args:
        busiest: The most that a physical partition used in one second, as a share of its own.
    """
    if not limits.autoscale:
        return None
    return limits.provisioned_ru_per_s * min(1.0, max(_LEAST_SHARE, busiest))
