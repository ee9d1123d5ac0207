"""What a ledger counts of the messages of queues, and that it merges exactly."""

from __future__ import annotations

import collections

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.generator import GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.measured import MessagesPart
from harness.measure.record.record_builder import series_parts
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from tests.support.results import add_all, done
from tests.support.wire import over_the_wire

KINDS = (Kind.PUT_MESSAGE, Kind.GET_MESSAGES, Kind.PEEK_MESSAGES, Kind.DELETE_MESSAGE)
MESSAGES = st.tuples(
    st.sampled_from(("orders", "mail")),
    st.sampled_from(KINDS),
    st.integers(0, 32),
    st.integers(0, 7 * 24 * 3600),
    st.sampled_from((Outcome.SUCCESS, Outcome.AMBIGUOUS)),
    st.integers(100, 103),
)


def result(
    queue: str, kind: Kind, messages: int, age_s: int, outcome: Outcome, second: int
) -> Result:
    counted = messages if outcome.succeeded else 0
    got = kind is Kind.GET_MESSAGES and counted > 0
    return done(
        Operation(kind=kind, partition_key=queue),
        float(second),
        outcome=outcome,
        entities=counted,
        oldest_s=float(age_s) if got else 0.0,
    )


def of_queues(snapshot: Snapshot) -> dict[str, MessagesPart | None]:
    return {part.key: part.messages for part in snapshot.partitions}


@given(st.lists(MESSAGES, min_size=1, max_size=40), st.integers(1, 4))
def test_queues_of_several_workers_add_up(
    drawn: list[tuple[str, Kind, int, int, Outcome, int]], workers: int
) -> None:
    """Put, got and deleted are sums over workers, the age is the largest; peeks count nowhere.

    So they are second by second, and the backlog is what all seconds until then left.
    """
    results = [result(*one) for one in drawn]
    master = Ledger()
    for number in reversed(range(workers)):
        worker = add_all(Ledger(f"w{number}"), results[number::workers])
        master.merge(over_the_wire(worker.drain()))
    expected: dict[str, collections.Counter[str]] = {}
    for one in results:
        sums = expected.setdefault(one.operation.partition_key, collections.Counter())
        name = {
            Kind.PUT_MESSAGE: "put",
            Kind.GET_MESSAGES: "got",
            Kind.DELETE_MESSAGE: "deleted",
        }.get(one.operation.kind)
        if name is not None:
            sums[name] += one.entities
        sums["oldest_ms"] = max(sums["oldest_ms"], int(one.oldest_s * 1000))
    snapshot = master.snapshot(start=100, end=104)
    found = of_queues(snapshot)
    assert found == {queue: MessagesPart(**sums) for queue, sums in expected.items()}
    assert all(
        part is not None and part.backlog == part.put - part.deleted for part in found.values()
    )
    course = series_parts(
        snapshot.series, GeneratorLog().view(100, 104), messages=snapshot.has_messages
    )
    signs = {Kind.PUT_MESSAGE: 1, Kind.DELETE_MESSAGE: -1}
    for point in course:
        until = [one for one in results if one.done_s < point.t + 1]
        kept = (signs.get(one.operation.kind, 0) * one.entities for one in until)
        assert point.backlog == sum(kept)
        ages = [int(one.oldest_s * 1000) for one in until if one.done_s >= point.t]
        assert point.oldest_ms == max(ages, default=0)


def test_a_table_has_no_messages() -> None:
    """Nothing is recorded where there is no queue, so that records of tables stay as they are."""
    insert = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
    snapshot = add_all(Ledger(), [done(insert, 100.0)]).snapshot(start=100, end=101)
    [part] = snapshot.partitions
    assert not snapshot.has_messages
    assert part.messages is None
    assert "messages" not in part.model_dump(mode="json")
