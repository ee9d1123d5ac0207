"""Results are counted several together; nobody who looks sees that, and little is kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from harness.measure.counts.ledger import Ledger
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result
from tests.support.results import done

START = 1_790_000_000


class Value:
    """Something that was read."""


def result(second: float = 0.0, moved: int = 100, value: object = None, code: str = "") -> Result:
    """A point query that was answered so many seconds after the start."""
    status = 503 if code else 200
    sent_s = START + second - 0.01
    return done(
        Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"),
        sent_s,
        outcome=Outcome.THROTTLED if code else Outcome.SUCCESS,
        attempts=(Attempt(status=status, sent_s=sent_s, latency_s=0.01, error_code=code),),
        bytes_received=moved,
        value=value,
    )


def merged(ledger: Ledger) -> int:
    """What another ledger has after this one was drained into it."""
    other = Ledger()
    other.add(result())
    other.merge(ledger.drain())
    return other.counts.operations - 1


LOOKS: dict[str, Callable[[Ledger], int]] = {
    "counts": lambda ledger: ledger.counts.operations,
    "drain": lambda ledger: ledger.drain().tally.counts.operations,
    "merge": merged,
    "snapshot": lambda ledger: ledger.snapshot(start=START, end=START + 9).counts.operations,
    "latencies": lambda ledger: dict(ledger.latencies())["point_query.service"].count,
    "overall": lambda ledger: ledger.overall("service").count,
    "errors": lambda ledger: len(ledger.errors()[0]),
}


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("look", LOOKS)
def test_whoever_looks_sees_all_that_was_added(look: str, count: int) -> None:
    """Each way to look at a ledger counts first what was added."""
    ledger = Ledger()
    ledger.open_window(START, START + 9)
    for _ in range(count):
        ledger.add(result(code="ServerBusy" if look == "errors" else ""))
    seen = LOOKS[look](ledger)
    assert seen == count if look != "errors" else 1 <= seen <= count


def test_the_window_holds_for_what_was_added_while_it_was_open() -> None:
    """A window that opens or closes later changes nothing about earlier results."""
    ledger = Ledger()
    ledger.add(result(1.0))
    ledger.open_window(START, START + 9)
    ledger.add(result(2.0))
    ledger.add(result(8.0))
    ledger.close_window(START + 5)
    ledger.add(result(4.0))
    ledger.add(result(6.0))
    assert ledger.overall("service").count == 3


@pytest.mark.parametrize(("moved", "kept"), [(100, True), (10_000_000, False)])
def test_what_was_read_is_not_kept_where_it_is_large(moved: int, kept: bool) -> None:
    """A small value may live until the next count, a large one is let go at once."""
    ledger, value = Ledger(), Value()
    seen = weakref.ref(value)
    ledger.add(result(moved=moved, value=value))
    del value
    gc.collect()
    assert (seen() is not None) == kept
    assert ledger.counts.operations == 1
    assert seen() is None
