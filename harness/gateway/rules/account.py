"""The limit of an account: 20,000 entities/s.

Source: performance checklist, "Entities per second (storage account)".
"""

from __future__ import annotations

from harness.gateway.limits import Rate
from harness.gateway.rules.bucket import Bucket


class AccountRule:
    """One bucket for all requests."""

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._bucket = Bucket(rate.entities_per_s, rate.burst_s, now_s)

    def allows(self, entities: int, now_s: float) -> bool:
        """Whether the account may serve ``entities`` now."""
        return self._bucket.allows(entities, now_s)

    def take(self, entities: int, now_s: float) -> None:
        """Take ``entities`` from the bucket."""
        self._bucket.take(entities, now_s)

    def give_back(self, entities: int, now_s: float) -> None:
        """Give back ``entities`` to the bucket."""
        self._bucket.give_back(entities, now_s)
