"""Autoscale: what is billed follows the load, between a tenth of the maximum and the maximum.

Source: "Create Azure Cosmos DB containers and databases with autoscale throughput": the throughput
scales at once between 10 % of the maximum and the maximum, according to the physical partition that
uses most of its share, and each hour is billed with the highest RU/s of that hour. Requests are
refused by the shares of the maximum, as without autoscale. Off unless asked for.
"""

from __future__ import annotations

from harness.gateway.limits import RequestUnitLimits

_LEAST_SHARE = 0.1


def scaled_to_ru_per_s(limits: RequestUnitLimits, busiest: float) -> float | None:
    """The RU/s that the stand-in scaled to, or None without autoscale.

    Args:
        busiest: The most that a physical partition used in one second, as a share of its own.
    """
    if not limits.autoscale:
        return None
    return limits.provisioned_ru_per_s * min(1.0, max(_LEAST_SHARE, busiest))
