"""Every report of a worker arrives and counts once, whatever the connection loses."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.model.process import this_process_runs_on
from harness.swarm.messages import WorkerReport, WorkerState
from harness.swarm.worker.worker_run import REPEATED_AFTER_S, Reports


class Connection:
    """A connection between a worker and its master that loses and repeats messages.

    Attributes:
        counted: Numbers of the reports that the master counted.
        now_s: The worker's clock.
    """

    def __init__(self, seed: int, lost: float) -> None:
        self.counted: list[int] = []
        self.now_s = 0.0
        self._rng = random.Random(seed)
        self._lost = lost
        self._underway: list[WorkerReport] = []
        self.reports = Reports(self._underway.append, lambda: self.now_s)

    def pass_time(self) -> None:
        """Let a second pass: what is underway arrives late, or never."""
        self.now_s += 1.0
        for report in list(self._underway):
            if self._rng.random() < 0.5:
                self._underway.remove(report)
                if self._rng.random() >= self._lost:
                    self._arrive(report)

    def _arrive(self, report: WorkerReport) -> None:
        # As `MasterRun.take_report` does it.
        if report.number == len(self.counted) + 1:
            self.counted.append(report.number)
        if self._rng.random() >= self._lost:
            self.reports.confirm(report.number)


def report(number: int) -> WorkerReport:
    """An empty one."""
    ledger = Ledger("worker")
    return WorkerReport(
        run_id="r",
        number=number,
        machine=this_process_runs_on(),
        delta=ledger.drain(),
        samples=(),
        state=WorkerState(),
    )


@given(seed=st.integers(0, 10_000), lost=st.floats(0.0, 0.7))
def test_every_report_counts_once_and_in_order(seed: int, lost: float) -> None:
    """Reports and confirmations get lost or arrive late and twice; no report is skipped."""
    connection = Connection(seed, lost)
    for _ in range(2_000):
        connection.pass_time()
        if not connection.reports.all_confirmed:
            connection.reports.repeat()
        elif connection.reports.next_number <= 10:
            connection.reports.send(report(connection.reports.next_number))
        else:
            break
    assert connection.counted == list(range(1, 11))


def test_a_report_is_repeated_only_when_it_is_late() -> None:
    """A confirmation usually needs less than a second."""
    sent: list[WorkerReport] = []
    now_s = 0.0
    reports = Reports(sent.append, lambda: now_s)
    reports.send(report(1))
    now_s = REPEATED_AFTER_S - 0.1
    reports.repeat()
    assert len(sent) == 1
    now_s = REPEATED_AFTER_S
    reports.repeat()
    assert [one.number for one in sent] == [1, 1]
    reports.confirm(1)
    now_s += REPEATED_AFTER_S
    reports.repeat()
    assert len(sent) == 2
