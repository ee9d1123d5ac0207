"""What a condition can still come to: certain failures are seen, and no passing run is stopped."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.verdict.conditions import Extent, parse_condition, reachable
from harness.measure.verdict.quantities import FORMS, NO_FACTS, Facts, Form
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result, Scope

START = 1_700_000_000
WINDOW_S = 8


@dataclasses.dataclass(frozen=True)
class Event:
    """One operation: when it was due in the window, how long it took, and what it met.

    It is done in the same second, or dropped after having waited for some.
    """

    second: int
    latency_s: float = 0.05
    entities: int = 10
    refusals: tuple[Scope, ...] = ()
    failed: bool = False
    dropped: bool = False
    waits_s: int = 0
    kind: Kind = Kind.UPSERT_MERGE
    key: str = "a"


def snapshot_of(events: list[Event], so_far_s: int) -> Snapshot:
    """What a ledger knows after ``so_far_s`` seconds of the window."""
    if so_far_s == WINDOW_S:
        # What still waits when the window ends is dropped before the run does.
        events = [dataclasses.replace(event, waits_s=0) for event in events]
    ledger = Ledger()
    ledger.open_window(START, START + WINDOW_S)
    for event in events:
        if event.second >= so_far_s:
            continue
        ledger.note_due()
        if event.dropped:
            if event.second + event.waits_s < so_far_s:
                ledger.note_dropped(float(START + event.second))
            continue
        ledger.note_sent()
        at_s = float(START + event.second)
        attempts = [
            Attempt(status=503, sent_s=at_s, latency_s=0.01, scope=scope, request_charge=38)
            for scope in event.refusals
        ]
        if not event.failed:
            ok = Attempt(status=204, sent_s=at_s, latency_s=0.01, request_charge=event.entities * 7)
            attempts.append(ok)
        ledger.add(
            Result(
                operation=Operation(kind=event.kind, partition_key=event.key, row_key="r"),
                outcome=Outcome.SERVER_ERROR if event.failed else Outcome.SUCCESS,
                due_s=at_s - event.latency_s,
                sent_s=at_s,
                done_s=at_s + event.latency_s / 200,
                attempts=tuple(attempts),
                entities=0 if event.failed else event.entities,
            )
        )
    return ledger.snapshot(start=START, end=START + so_far_s, latencies=False)


def extent_of(events: list[Event], bounded: bool, slack: int = 0) -> Extent:
    if not bounded:
        return Extent(window_s=WINDOW_S)
    attempts = sum(len(event.refusals) + (not event.failed) for event in events)
    return Extent(window_s=WINDOW_S, operations=len(events) + slack, attempts=attempts + slack)


def most(**counts: int) -> Extent:
    """What there can be in the window."""
    return Extent(window_s=WINDOW_S, **counts)


REFUSED = Event(second=0, refusals=(Scope.PARTITION,))
FINE = Event(second=0)
LATE = Event(second=0, latency_s=0.5)
FAILED = Event(second=0, failed=True)
DROPPED = Event(second=0, dropped=True)


@pytest.mark.parametrize(
    ("text", "events", "extent", "expected"),
    [
        # Once throttled, never none any more.
        ("throttled_ratio == 0", [REFUSED], most(), True),
        ("throttled_ratio <= 0%", [REFUSED], most(), True),
        ("throttled_ratio == 0", [FINE], most(), False),
        ("throttled_ratio(account) == 0", [REFUSED], most(), False),
        ("throttled_ratio(partition) == 0", [REFUSED], most(), True),
        # However large the share is, enough good attempts would make it small.
        ("throttled_ratio < 1%", [REFUSED] * 50, most(), False),
        # 50 of the 5,000 attempts that there can be are 1 %, of 5,001 they are less.
        ("throttled_ratio < 1%", [REFUSED] * 50, most(attempts=5000), True),
        ("throttled_ratio < 1%", [REFUSED] * 50, most(attempts=5001), False),
        ("throttled_ratio <= 1%", [REFUSED] * 50, most(attempts=5000), False),
        # One that succeeded keeps the share below all, and far below it where few can come.
        ("throttled_ratio >= 100%", [FINE], most(), True),
        ("throttled_ratio > 50%", [FINE], most(), False),
        ("throttled_ratio > 50%", [FINE] * 5, most(attempts=10), True),
        ("throttled_ratio >= 50%", [FINE] * 5, most(attempts=10), False),
        # Failed and dropped operations alike.
        ("failed_ratio == 0", [FAILED], most(), True),
        ("failed_ratio < 10%", [FAILED], most(operations=10), True),
        ("failed_ratio < 10%", [FAILED], most(operations=11), False),
        ("dropped_ratio == 0", [DROPPED], most(), True),
        ("dropped_ratio == 0", [FINE], most(), False),
        # What waits can still be dropped, so that all that was due may be.
        (
            "dropped_ratio >= 100%",
            [Event(second=0, dropped=True, waits_s=1)],
            most(operations=1),
            False,
        ),
        ("dropped_ratio >= 100%", [FINE], most(operations=9), True),
        # 80 entities are 10 a second of the window of 8 s, whatever comes.
        ("entities_per_s(account) < 10", [FINE] * 8, most(), True),
        ("entities_per_s(account) < 10", [FINE] * 7, most(), False),
        ("entities_per_s(account) <= 10", [FINE] * 8, most(), False),
        ("entities_per_s(op='upsert_merge') < 10", [FINE] * 8, most(), True),
        ("entities_per_s(op='insert') < 10", [FINE] * 8, most(), False),
        # A rate that is too low can rise, and a partition can lose its row.
        ("entities_per_s(account) > 1000", [], most(), False),
        ("entities_per_s(partition) < 10", [FINE] * 80, most(), False),
        ("entities_per_s(partition='a') < 10", [FINE] * 80, most(), False),
        ("throttled_ratio(partition='a') == 0", [REFUSED], most(), False),
        # Three above the bound are too many for the 99th percentile of 299, and not for 300.
        (
            "p99(response) < 100ms",
            [LATE] * 3 + [FINE] * 97,
            most(operations=299),
            True,
        ),
        (
            "p99(response) < 100ms",
            [LATE] * 3 + [FINE] * 97,
            most(operations=300),
            False,
        ),
        ("p99(response) < 100ms", [LATE] * 100, most(), False),
        ("p99(response) < 600ms", [LATE] * 100, most(operations=100), False),
        ("p99(response, op='insert') < 1ms", [LATE], most(operations=1), False),
        ("p99(service, partition='a') < 1ms", [LATE], most(operations=1), False),
        ("held_rate > 99%", [], most(operations=0, attempts=0), False),
    ],
)
def test_only_what_is_certain_stops_a_run(
    text: str, events: list[Event], extent: Extent, expected: bool
) -> None:
    """After one second: whether nothing that may come makes the condition hold."""
    condition = parse_condition(text)
    snapshot = snapshot_of(events, 1)
    assert condition.cannot_hold_any_more(snapshot, NO_FACTS, extent) is expected


@pytest.mark.parametrize(
    ("lost", "text", "expected"),
    [
        (1, "lost_writes == 0", True),
        (0, "lost_writes == 0", False),
        (None, "lost_writes == 0", False),
        (1, "lost_writes < 1", True),
        (1, "lost_writes < 2", False),
        (2, "lost_writes < 2", True),
        (2, "lost_writes <= 2", False),
        (5, "lost_writes > 100", False),
    ],
)
def test_lost_writes_are_not_found_again(lost: int | None, text: str, expected: bool) -> None:
    """Their count only grows."""
    condition = parse_condition(text)
    facts = Facts(lost_writes=lost)
    extent = most()
    assert condition.cannot_hold_any_more(snapshot_of([], 1), facts, extent) is expected


def test_request_units_that_were_used_remain() -> None:
    """A mean rate ends at least at what is used, spread over the whole window; a cost anywhere."""
    snapshot, extent = snapshot_of([FINE], 1), Extent(window_s=WINDOW_S)
    least = FINE.entities * 7 / 100 / WINDOW_S
    for form in (Form("ru_per_s"), Form("ru_per_s", "account"), Form("ru_per_s", by="op")):
        low, high = reachable(form, FINE.kind, snapshot, NO_FACTS, extent)
        assert low == pytest.approx(least)
        assert high == math.inf
    for form in (Form("ru", by="op"), Form("ru_per_s", "partition")):
        found = reachable(form, FINE.kind, snapshot, NO_FACTS, extent)
        assert found == (-math.inf, math.inf)


def test_a_quantity_that_is_not_named_stops_no_run() -> None:
    """A metric that only `FORMS` knows can end anywhere; whoever watches goes on."""
    snapshot, extent = snapshot_of([FINE], 1), Extent(window_s=WINDOW_S, operations=1)
    assert reachable(Form("new_metric"), "", snapshot, NO_FACTS, extent) == (-math.inf, math.inf)


events_lists = st.lists(
    st.builds(
        Event,
        second=st.integers(0, WINDOW_S - 1),
        latency_s=st.sampled_from([0.003, 0.05, 0.2, 1.5]),
        entities=st.integers(0, 30),
        refusals=st.lists(st.sampled_from([Scope.PARTITION, Scope.ACCOUNT]), max_size=2).map(tuple),
        failed=st.booleans(),
        dropped=st.booleans(),
        waits_s=st.integers(0, 3),
        kind=st.sampled_from([Kind.UPSERT_MERGE, Kind.DELETE]),
        key=st.sampled_from(["a", "b"]),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(
    events=events_lists,
    so_far_s=st.integers(1, WINDOW_S),
    form=st.sampled_from(list(FORMS)),
    compare=st.sampled_from(["<", "<=", ">", ">=", "=="]),
    aim=st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.1, 2.0]),
    bounded=st.booleans(),
    slack=st.integers(0, 3),
)
def test_a_run_that_passes_in_the_end_is_never_stopped(
    events: list[Event],
    so_far_s: int,
    form: Form,
    compare: str,
    aim: float,
    bounded: bool,
    slack: int,
) -> None:
    """Whatever a run has done so far: it is only stopped if its end would not have passed."""
    kind = "500" if form.metric == "failed_attempts_ratio" else "server_error"
    name = {"partition": "a", "op": "delete", "kind": kind}.get(form.by, "")
    end = snapshot_of(events, WINDOW_S)
    facts = Facts(lost_writes=len(events), held_ratio=0.5)
    value = parse_condition(f"{form.written(name)} > 0").evaluate(end, facts).value or 0.0
    bound = value * aim
    if form.metric.endswith("_ratio"):
        bound = min(bound, 1.0)
    condition = dataclasses.replace(
        parse_condition(f"{form.written(name)} {compare} 0"), bound=bound
    )
    if condition.evaluate(end, facts).passed:
        early = Facts(lost_writes=len(events) // 2, held_ratio=0.9)
        now = snapshot_of(events, so_far_s)
        extent = extent_of(events, bounded, slack)
        assert not condition.cannot_hold_any_more(now, early, extent)
