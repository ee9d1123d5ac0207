"""A trace that is counted by groups has the counts of its operations, one by one."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import WHOLE_TABLE, Kind, Operation, transaction
from harness.model.outcome import Attempt, Outcome, Result, Scope
from harness.trace import counting
from harness.trace.counting import TraceCounts
from harness.trace.head import TraceHead
from harness.trace.reader import Trace
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from tests.support.examples import examples
from tests.support.results import add_all
from tests.support.traced import result_of

EXAMPLES = Path(__file__).parents[3] / "examples"
START = 1_700_000_000
ANSWERS = (
    (204, "", Scope.NONE),
    (404, "ResourceNotFound", Scope.NONE),
    (503, "ServerBusy", Scope.PARTITION),
    (500, "InternalError", Scope.NONE),
    (500, "OperationTimedOut", Scope.PARTITION),
    (0, "connection_reset", Scope.NONE),
)


def one_by_one(path: Path) -> Snapshot:
    """The counts of a trace by the ledger of a run that counts every partition."""
    trace = Trace(path)
    start_s = trace.head.started_ms / 1000
    results = [result_of(row, start_s) for row in trace.rows()]
    start = min(int(result.sent_s) for result in results)
    return counted_alone(results, start, 1 + max(int(result.done_s) for result in results))


def counted_alone(results: Iterable[Result], start: int, end: int) -> Snapshot:
    """The counts of results by the ledger of a run."""
    ledger = Ledger(cap=10_000)
    ledger.open_window(0.0, inf)
    add_all(ledger, results)
    return ledger.snapshot(start=start, end=end)


@contextlib.contextmanager
def counted(path: Path) -> Iterator[TraceCounts]:
    with (
        contextlib.closing(Trace(path)) as trace,
        contextlib.closing(TraceCounts(trace, path.name)) as counts,
    ):
        counts.count()
        yield counts


def by_groups(path: Path) -> Snapshot:
    with counted(path) as counts:
        return counts.snapshot()


@pytest.mark.parametrize("name", ["hot-tenant", "append-only-log"])
def test_examples_have_the_same_counts(name: str) -> None:
    """Every figure, chart and percentile of a record."""
    path = EXAMPLES / name / f"{name}.parquet"
    assert by_groups(path) == one_by_one(path)


def test_of_many_partitions_the_heaviest_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are folded into one row; all sums are as before."""
    monkeypatch.setattr(counting, "EXACT_PARTITIONS", 100)
    path = EXAMPLES / "even-spread" / "even-spread.parquet"
    whole, folded = one_by_one(path), by_groups(path)
    known = {part.key: part for part in whole.partitions}
    assert len(folded.partitions) == 100 < len(known)
    assert all(part == known[part.key] for part in folded.partitions)
    least = min(part.entities for part in folded.partitions)
    kept = {part.key for part in folded.partitions}
    assert all(part.entities <= least for key, part in known.items() if key not in kept)

    def others(found: Snapshot) -> Snapshot:
        return dataclasses.replace(found, partitions=(), folded=None, heat=None)

    assert others(folded) == others(whole)
    assert folded.heat is not None
    assert sum(sum(one.entities) for one in folded.heat.ranges) == whole.counts.entities


@st.composite
def results(draw: st.DrawFn) -> Result:
    """An operation of any kind, with up to three attempts."""
    key = draw(st.sampled_from(["", "a", "b", "ß", WHOLE_TABLE]))
    table = draw(st.sampled_from(["", "Orders"]))
    # Others are in no trace.
    kind = draw(st.sampled_from([kind for kind in Kind if kind.on_rows]))
    if key == WHOLE_TABLE:
        kind = Kind.QUERY
    if kind is Kind.TRANSACTION:
        rows = draw(st.integers(2, 5))
        operation = transaction(
            tuple(
                Operation(kind=Kind.INSERT, partition_key=key, row_key=f"r{row}", table=table)
                for row in range(rows)
            )
        )
    else:
        row_key = "" if kind is Kind.QUERY else draw(st.sampled_from(["r1", "r2"]))
        operation = Operation(kind=kind, partition_key=key, row_key=row_key, table=table)
    # Eighths of a second are exact as floats.
    sent_s = START + draw(st.integers(0, 400)) / 8
    answers = draw(st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=3))
    step_s = draw(st.integers(0, 80)) / 8
    outside_s = draw(st.integers(0, 80)) / 8 if len(answers) > 1 else 0.0
    sent = [sent_s + place * step_s for place in range(len(answers))]
    sent[-1] += outside_s
    return Result(
        operation=operation,
        outcome=draw(st.sampled_from(list(Outcome))),
        sent_s=sent_s,
        done_s=sent[-1] + step_s,
        outside_s=outside_s,
        attempts=tuple(
            Attempt(status=status, sent_s=at_s, latency_s=step_s, error_code=code, scope=scope)
            for at_s, (status, code, scope) in zip(sent, answers, strict=True)
        ),
        entities=draw(st.integers(0, 3)),
        entities_returned=draw(st.integers(0, 3)),
        estimated=draw(st.booleans()),
        bytes_sent=draw(st.integers(0, 10_000)),
        bytes_received=draw(st.integers(0, 10_000)),
    )


def latencies(of: Snapshot) -> list[object]:
    """The figures over time and the percentiles of operations, not those of single attempts."""
    named = {part.kind: (part.service_ms, part.entities_per_s) for part in of.operations}
    keyed = {part.key: (part.service_ms, part.entities_per_s) for part in of.partitions}
    return [of.service_ms, of.service_over_time, named, keyed, of.counts, of.outcomes]


@examples(15)
@given(st.lists(results(), min_size=1, max_size=40))
def test_groups_come_to_the_counts_of_their_operations(made: list[Result]) -> None:
    """Whatever outcomes, attempts, waits and times there are, also as the run itself counts."""
    with tempfile.TemporaryDirectory() as folder:
        path, recorder = Path(folder) / "made.parquet", Recorder()
        for result in made:
            recorder.add(result, "app")
        with TraceWriter(path, TraceHead(started_ms=START * 1000, source="run")) as writer:
            writer.append(recorder.drain(0.0, final=True))
        found = by_groups(path)
        assert found == one_by_one(path)
    assert latencies(found) == latencies(counted_alone(made, found.start, found.end))
