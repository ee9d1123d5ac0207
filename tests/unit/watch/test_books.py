"""Attempts of one operation that several processes saw are one operation."""

from __future__ import annotations

import dataclasses
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.counters import GONE, RESET
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import Kind
from harness.watch.books import Books, Joining, Marks, WatchTally, create_marks
from harness.watch.metering import MeteringReport
from harness.watch.observer import Observer
from tests.unit.watch.test_metering import report_of
from tests.unit.watch.test_observer import START_S, busy, counted, end, request, upsert


@contextmanager
def processes(number: int) -> Iterator[list[Observer]]:
    """Observers with one set of marks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "marks"
        create_marks(path)
        yield [Observer(f"gateway-{rank}", marks=Marks(path)) for rank in range(number)]


class Together:
    """The counts of several processes, joined."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = observers
        self.joining = Joining()
        self.ledger = Ledger("watch")
        self.tally = WatchTally()

    def report(self, rank: int, at_s: float) -> None:
        """Take a report of one process, and what it hands over."""
        handed = self.observers[rank].hand_over()
        self.joining.books.latest_s = max(one.books.latest_s for one in self.observers)
        self.joining.take(str(rank), handed, START_S + at_s)
        self.joining.join(len(self.observers))

    def finish(self) -> Snapshot:
        """Take the last reports; the counts then."""
        for rank, observer in enumerate(self.observers):
            self.report(rank, 0.0)
            observer.finish()
        self.joining.finish()
        books: list[Books] = [self.joining.books, *(one.books for one in self.observers)]
        for one in books:
            drained = one.drain(ended=True)
            self.ledger.merge(drained.delta)
            self.tally.merge(drained.tally)
        return self.ledger.snapshot(start=0, end=0)


def test_attempts_of_several_processes_are_one_operation() -> None:
    """The second and the third attempt reach other processes, whose reports come first."""
    with processes(3) as (first, second, third):
        busy(first, upsert(id="a"))
        busy(second, upsert(id="a"), at_s=0.2)
        end(third, upsert(id="a"), "204", at_s=0.4)
        end(third, upsert("other", id="b"), "204", at_s=0.5)
        # Only what concerns several processes is handed over.
        assert third.books.ledger.counts.operations == 1
        together = Together([first, second, third])
        for rank in (2, 1):
            together.report(rank, 1.0)
            assert together.joining.books.ledger.counts.due == 0
        together.report(0, 0.3)
        assert together.joining.books.attempts_in_flight == 2
        together.report(0, 1.0)
        assert len(together.joining.books.pending) == 0
        found = together.finish()
    assert (found.counts.due, found.counts.sent, found.counts.operations) == (2, 2, 2)
    assert (found.counts.attempts, found.counts.attempts_ended) == (4, 4)
    assert together.tally.succeeded_after == {3: 1}
    assert together.tally.requests == 4


@dataclasses.dataclass(frozen=True)
class Step:
    """One request that a process answers, and the report of one that follows it."""

    row: str
    id: str
    sent: str
    answers: int
    reports: int


STEPS = st.lists(
    st.builds(
        Step,
        row=st.sampled_from("12"),
        id=st.sampled_from(("", "a", "b")),
        sent=st.sampled_from(("204", "404", "409", "500", "503", GONE, RESET)),
        answers=st.integers(0, 2),
        reports=st.integers(0, 3),
    ),
    max_size=30,
)


@given(STEPS)
def test_several_processes_count_as_one_would(steps: list[Step]) -> None:
    """Whichever process gets a request, and whenever it reports: the counts are those of one."""
    alone = Observer("alone")
    with processes(3) as observers:
        together = Together(observers)
        for number, step in enumerate(steps):
            for observer in (alone, observers[step.answers]):
                received = upsert(step.row, id=step.id)
                end(observer, received, step.sent, at_s=float(number), count=False)
            if step.reports < 3:
                together.report(step.reports, number + 0.5)
        alone.finish()
        expected, found = counted(alone), together.finish()
    assert found.counts == expected.counts
    assert found.outcomes == expected.outcomes
    assert together.tally == alone.books.tally
    unfinished = len(together.joining.books.pending)
    assert unfinished == len(alone.books.pending)
    assert found.counts.due == found.counts.sent == found.counts.operations + unfinished


def test_what_is_handed_over_is_read_as_it_was_written() -> None:
    """An attempt of a transaction and one of a query pass the pipe unchanged."""
    pipe = io.BytesIO()
    body = (
        b"--batch\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
        b"--c\r\nContent-Type: application/http\r\n\r\n"
        b"PUT /account/orders(PartitionKey='p',RowKey='r') HTTP/1.1\r\n"
        b"Content-Type: application/json\r\n\r\n{}\r\n--c--\r\n--batch--\r\n"
    )
    batch = request(
        "POST",
        "/account/$batch",
        body=body,
        id="a",
        Content_Type="multipart/mixed; boundary=batch",
    )
    assert batch.asked.kind is Kind.TRANSACTION
    select = request("GET", "/account/orders()?$filter=PartitionKey%20eq%20'p'&$select=A", id="b")
    with processes(1) as (observer,):
        for received in (batch, select):
            busy(observer, received)
        report = report_of(observer, final=False)
        assert len(report.handed) == 2
        report.write(pipe)
    pipe.seek(0)
    read = MeteringReport.read(pipe)
    assert read is not None
    assert read.handed == report.handed
    assert read.until_s == report.until_s
