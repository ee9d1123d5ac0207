"""A table under load gets more servers over time: a slow ramp is served, a burst is refused.

Source: performance checklist, "Targets for data operations": the service balances the load as the
traffic increases, a burst is throttled until the load is balanced, and "ramping up slowly generally
provides better results". The speed of balancing is not published: all figures are assumed.
"""

from __future__ import annotations

import math

from harness.gateway.limits import Ramping, Servers
from harness.gateway.rules.ranges import Range, Ranges

_RATE_OF_AMOUNT = math.log(2)
"""An amount that halves every second is this many times smaller for each entity a second."""


class RampingRule:
    """Splits ranges that are busy for some time.

    The half of a busy range moves to the least loaded server, so the servers of a table double each
    time. A range of one partition cannot be split.
    """

    def __init__(self, ramping: Ramping, servers: Servers) -> None:
        self.by_load = ramping.split_after_s > 0
        """Whether ranges are split by their load; otherwise by the number of their keys."""
        self._after_s = ramping.split_after_s
        self._busy_per_s = ramping.busy_share * servers.entities_per_s

    def served(self, place: Range, ranges: Ranges, entities: int, now_s: float) -> None:
        if not self.by_load:
            return
        place.recent.add(entities, now_s)
        if place.recent.at(now_s) * _RATE_OF_AMOUNT < self._busy_per_s:
            place.busy_since_s = None
        elif place.busy_since_s is None:
            place.busy_since_s = now_s
        elif now_s - place.busy_since_s >= self._after_s:
            place.busy_since_s = None
            ranges.split(place, now_s)
