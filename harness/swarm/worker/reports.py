"""The reports of a worker to the master, each of which arrives and counts once.

A connection that breaks loses the messages that are underway. So the master confirms each report,
and until then the worker repeats it and counts on: the next report has all that came since.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.endpoint.http.exchange import Clock
from harness.swarm.messages import WorkerReport

REPEATED_AFTER_S = 2.0
"""A report that is not confirmed in this time is sent again. A lost packet delays it less."""


class Reports:
    """Sends the reports of one run, one after the other."""

    def __init__(self, send: Callable[[WorkerReport], None], clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._number = 0
        self._unconfirmed: WorkerReport | None = None
        self._sent_s = 0.0

    @property
    def next_number(self) -> int:
        return self._number + 1

    @property
    def all_confirmed(self) -> bool:
        """True if the next report may be sent."""
        return self._unconfirmed is None

    def send(self, report: WorkerReport) -> None:
        """Send the next report."""
        self._number = report.number
        # First, because in a local run the confirmation comes while the report is sent.
        self._unconfirmed = report
        self._sent_s = self._clock()
        self._send(report)

    def confirm(self, number: int) -> None:
        """The master has counted the report ``number``."""
        if number == self._number:
            self._unconfirmed = None

    def repeat(self) -> None:
        """Send the last report again, if it was not confirmed in time."""
        if self._unconfirmed is not None and self._clock() >= self._sent_s + REPEATED_AFTER_S:
            self._sent_s = self._clock()
            self._send(self._unconfirmed)
