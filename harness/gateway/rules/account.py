"""An account serves 20,000 entities a second.

Source: performance checklist, "Entities per second (storage account)".
"""

from __future__ import annotations

from harness.gateway.limits import Rate
from harness.gateway.rules.bucket import Bucket


class AccountRule:
    """One bucket for everything."""

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._bucket = Bucket(rate.entities_per_s, rate.burst_s, now_s)

    def allows(self, entities: int, now_s: float) -> bool:
        """Whether the account may serve so many now."""
        return self._bucket.allows(entities, now_s)

    def take(self, entities: int, now_s: float) -> None:
        """The account serves so many."""
        self._bucket.take(entities, now_s)
