"""The limit of an account: 20,000 entities/s.

Source: performance checklist, "Entities per second (storage account)".
"""

from __future__ import annotations

from harness.gateway.limits import Rate
from harness.gateway.rules.bucket import Bucket


class AccountRule(Bucket):
    """One bucket for all requests."""

    __slots__ = ()

    def __init__(self, rate: Rate, now_s: float) -> None:
        super().__init__(rate.entities_per_s, rate.burst_s, now_s)
