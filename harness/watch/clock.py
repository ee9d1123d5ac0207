"""The clock of a watch: one for all of its processes."""

from __future__ import annotations

import time


class SteadyClock:
    """UTC seconds by the monotonic clock, so that a step of the machine's time moves nothing.

    Processes of one machine with the same ``epoch_s`` read the same time.

    Args:
        epoch_s: UTC seconds at zero of the monotonic clock; None takes the machine's time of now.
    """

    def __init__(self, epoch_s: float | None = None) -> None:
        self.epoch_s = time.time() - time.monotonic() if epoch_s is None else epoch_s

    def __call__(self) -> float:
        return self.epoch_s + time.monotonic()
