"""Pass conditions: what can be written, and what it compares."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.verdict.conditions import ConditionResult, Extent, parse_condition
from harness.measure.verdict.quantities import FORMS, NO_FACTS, Facts, Form, Unit, near_first
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Scope
from tests.support.evidence import scanned
from tests.support.results import done

START = 1_700_000_000
BUSY = Attempt(
    status=503,
    sent_s=START,
    latency_s=0.1,
    error_code="ServerBusy",
    scope=Scope.PARTITION,
    request_charge=38,
)
OK = Attempt(status=204, sent_s=START, latency_s=0.1, request_charge=1000)


def a_name(form: Form) -> str:
    """A name that its quantity can have."""
    if form.by == "kind":
        return "500" if form.metric == "failed_attempts_ratio" else "timeout"
    return "a"


def measured() -> Snapshot:
    """Ten seconds: 400 entities in a, 100 in b, 1 of 100 attempts throttled, 50 ms each.

    Of 110 due operations 11 were dropped; of 99 done ones 2 failed, another lost a race.
    """
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for _ in range(110):
        ledger.note_due()
    for _ in range(11):
        ledger.note_dropped(START + 1.0)
    for number in range(99):
        key, entities = ("a", 5) if number < 80 else ("b", 5 if number < 98 else 10)
        kind = Kind.UPSERT_MERGE if number < 98 else Kind.DELETE
        outcome = Outcome.THROTTLED if number in (20, 30) else Outcome.SUCCESS
        outcome = Outcome.CONFLICT if number == 10 else outcome
        attempts = (BUSY, OK) if number == 0 else (OK,)
        asked = Operation(kind=kind, partition_key=key, row_key="r")
        more = {"outcome": outcome, "attempts": attempts, "entities": entities}
        ledger.add(done(asked, START + 1.0, 0.05, **more))
    return ledger.snapshot(start=START, end=START + 10)


FACTS = Facts(lost_writes=0, held_ratio=0.98)
MEASURED = measured()
NOTHING = Ledger().snapshot(start=START, end=START + 10)


@pytest.mark.parametrize(
    ("text", "value", "passed"),
    [
        ("throttled_ratio < 1%", 0.01, False),
        ("throttled_ratio < 1.1%", 0.01, True),
        ("throttled_ratio<0.02", 0.01, True),
        ("throttled_ratio > 0", 0.01, True),
        ("entities_per_s(partition) > 39", 40.0, True),
        ("entities_per_s(partition) > 40", 40.0, False),
        ("entities_per_s(account) > 49.9", 50.0, True),
        ("  entities_per_s( account )<50 ", 50.0, False),
        ("p99(service) < 51ms", 50.0, True),
        ("p99(service) < 0.051 s", 50.0, True),
        ("p50(service) < 40", 50.0, False),
        ("p90(response) < 100ms", None, None),
        # The bound itself: below, above, and up to it.
        ("throttled_ratio <= 1%", 0.01, True),
        ("throttled_ratio >= 1%", 0.01, True),
        ("throttled_ratio == 1%", 0.01, True),
        ("held_rate == 57%", 0.57, True),
        ("throttled_ratio == 0", 0.01, False),
        ("entities_per_s(partition) >= 40", 40.0, True),
        # By scope, and of one partition, in any quotes.
        ("throttled_ratio(partition) > 0.9%", 0.01, True),
        ("throttled_ratio(account) == 0", 0.0, True),
        ('throttled_ratio(partition="a") < 1.3%', 1 / 81, True),
        ("throttled_ratio(partition='b') == 0", 0.0, True),
        ('entities_per_s(partition="b") > 9', 10.0, True),
        ("entities_per_s( partition = 'b' )>10", 10.0, False),
        ('p99(service, partition="b") < 60ms', 50.2, True),
        ("p99(partition='b', service) < 60ms", 50.2, True),
        # Of one kind of operation.
        ('p50(service, op="delete") > 40ms', 50.0, True),
        ("entities_per_s(op='delete') > 0.9", 1.0, True),
        # Request units: 38 hundredths of a refusal and 1,000 of every other attempt.
        ("ru_per_s < 99.1", 99.038, True),
        ("ru_per_s(account) < 99", 99.038, False),
        ("ru_per_s(partition) > 80", 80.038, True),
        ("ru_per_s(partition='b') <= 19", 19.0, True),
        ("ru_per_s(op='delete') == 1", 1.0, True),
        ("ru(op='delete') == 10", 10.0, True),
        ("ru(op='upsert_merge') < 10.004", 10.00388, True),
        # Of the whole run.
        ("failed_ratio < 3%", 2 / 99, True),
        ("failed_ratio < 2%", 2 / 99, False),
        ("dropped_ratio <= 10%", 0.1, True),
        ("dropped_ratio < 10%", 0.1, False),
        ("lost_writes == 0", 0.0, True),
        ("lost_writes < 1", 0.0, True),
        ("held_rate > 99%", 0.98, False),
        ("held_rate > 0.97", 0.98, True),
    ],
)
def test_conditions_compare_what_they_say(
    text: str, value: float | None, passed: bool | None
) -> None:
    """Units are converted; what was not measured is neither passed nor failed."""
    facts = Facts(lost_writes=0, held_ratio=0.57 if "57" in text else 0.98)
    result = parse_condition(text).evaluate(MEASURED, facts)
    assert result.text == text.strip()
    assert result.passed is passed
    assert result.value == (None if value is None else pytest.approx(value, rel=2e-3))


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("p99(service) < 51ms", True),
        ("p99(service) <= 50.5ms", True),
        ("p99(service) < 49ms", None),
        ("p50(service, op='delete') <= 40ms", None),
        ("p99(service) > 49ms", None),
        ("p99(service) > 51ms", False),
        ("p99(service) == 49ms", None),
        ("p90(response) < 100ms", None),
        ("throttled_ratio < 0.1%", False),
        ("entities_per_s(account) > 49.9", True),
    ],
)
def test_what_a_busy_machine_measured_decides_nothing_about_latency(
    text: str, passed: bool | None
) -> None:
    """A latency is at most what was measured; other quantities are decided as always."""
    doubt = "the machine was saturated in 79% of the seconds"
    condition = parse_condition(text)
    result = condition.evaluate(MEASURED, Facts(latency_doubt=doubt))
    assert result.passed is passed
    if passed is None and result.value is not None:
        assert (result.note, result.certain) == (doubt, False)
    extent = Extent(window_s=10, operations=99)
    failed = condition.cannot_hold_any_more(MEASURED, Facts(latency_doubt=doubt), extent)
    assert not failed or condition.form.unit is not Unit.LATENCY


@pytest.mark.parametrize("quantity", ["ru_per_s", "ru_per_s(partition)", "ru(op='upsert_merge')"])
def test_a_service_without_request_units_is_unknown(quantity: str) -> None:
    """Storage charges none: the condition is neither passed nor failed, and says why."""
    ledger = Ledger()
    ledger.add(done(Operation(kind=Kind.UPSERT_MERGE, partition_key="a"), START))
    result = parse_condition(f"{quantity} < 1").evaluate(
        ledger.snapshot(start=START, end=START + 1)
    )
    assert (result.value, result.passed) == (None, None)
    assert "only Cosmos DB" in result.note


@pytest.mark.parametrize("quantity", [form.written(a_name(form)) for form in FORMS])
def test_nothing_measured_is_unknown(quantity: str) -> None:
    """A run that sent nothing satisfies no condition, breaks none, and says why."""
    result = parse_condition(f"{quantity} < 1").evaluate(NOTHING)
    assert (result.value, result.passed) == (None, None)
    assert result.note


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("p99(service, partition='c') < 1s", "there was no partition 'c', but 'a', 'b'"),
        ("entities_per_s(partition='aa') > 1", "there was no partition 'aa', but 'a', 'b'"),
        ("throttled_ratio(partition='') < 1", "there was no partition '', but 'a', 'b'"),
        (
            "p50(service, op='upsert_mergee') < 1s",
            "there was no operation 'upsert_mergee', but 'upsert_merge', 'delete'",
        ),
        ("p99(response, op='delete') < 1s", "needs an open load; a closed loop has no due times"),
        ("lost_writes == 0", "the run was not audited"),
        ("held_rate > 99%", "a closed loop without a cap"),
    ],
)
def test_what_there_was_not_is_unknown_and_says_what_there_was(text: str, note: str) -> None:
    """A condition on a partition or an operation that never came names those that did."""
    result = parse_condition(text).evaluate(MEASURED)
    assert (result.value, result.passed) == (None, None)
    assert note in result.note


def test_near_spellings_come_first() -> None:
    """Of many names five are shown: those that were probably meant, then the others in order."""
    known = [f"part{number:03d}" for number in range(50)] + ["stock"]
    named = near_first("stok", known)
    assert named.startswith("'stock', 'part000', ")
    assert named.endswith("and 46 more")
    assert near_first("x", ["y"]) == "'y'"


def test_a_key_that_gave_up_its_place_is_noted() -> None:
    """Where partitions are folded, a missing one may be among them; an inexact one says so."""
    ledger = Ledger(cap=2)
    ledger.open_window(START, START + 10)
    for key in ("a", "b", "c"):
        insert = Operation(kind=Kind.INSERT, partition_key=key, row_key="r")
        ledger.add(done(insert, START + 1.0, 0.05, entities=20))
    master = Ledger(cap=2)
    for source in ("w1", "w2"):
        delta = ledger.drain()
        delta.source = source
        delta.folding = True
        master.merge(delta)
    snapshot = master.snapshot(start=START, end=START + 10)
    missing = parse_condition("entities_per_s(partition='c') > 1").evaluate(snapshot)
    assert "'c' is not one of those counted separately" in missing.note
    kept = parse_condition("entities_per_s(partition='a') > 1").evaluate(snapshot)
    assert (kept.value, kept.passed) == (2.0, True)
    assert "was not counted separately for the whole run" in kept.note
    assert parse_condition("entities_per_s(partition='a') < 3").evaluate(snapshot).passed is None


@pytest.mark.parametrize("of", ["account", "partition", 'partition="p0"', 'op="partition_scan"'])
def test_a_lower_bound_shows_that_a_rate_was_high_and_not_that_it_was_low(of: str) -> None:
    """What some queries scanned is not known: the rate may be higher than what was counted."""

    def passed(condition: str, *, estimated: bool) -> bool | None:
        snapshot = scanned(estimated=estimated)
        return parse_condition(f"entities_per_s({of}) {condition}").evaluate(snapshot).passed

    assert [passed(one, estimated=False) for one in ("< 3000", "> 3000", "> 2000")] == [
        True,
        False,
        True,
    ]
    assert [passed(one, estimated=True) for one in ("< 3000", "> 3000", "== 2500")] == [None] * 3
    assert passed("< 2000", estimated=True) is False
    assert passed("> 2000", estimated=True) is True


@given(st.text(st.characters(exclude_characters="\\"), max_size=20), st.sampled_from("'\""))
def test_any_key_can_be_named(key: str, quote: str) -> None:
    """What is written in quotes is the key that is looked for."""
    written = key.replace(quote, "\\" + quote)
    condition = parse_condition(f"entities_per_s(partition={quote}{written}{quote}) > 0")
    assert condition.name == key


def test_units_are_those_of_values() -> None:
    """Shares, rates, milliseconds and counts are told apart for those who show them."""
    units = {
        text: parse_condition(f"{text} < 1").form.unit
        for text in ("held_rate", "entities_per_s(account)", "p50(service)", "lost_writes")
    }
    assert list(units.values()) == [Unit.SHARE, Unit.RATE, Unit.LATENCY, Unit.COUNT]


def test_a_latency_of_a_partition_is_open_where_its_own_operations_were_refused() -> None:
    """What was lost to throttling of another partition says nothing about it."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for number in range(200):
        key, lost = ("hot", number % 2 == 0) if number < 100 else ("calm", False)
        asked = Operation(kind=Kind.INSERT, partition_key=key, row_key="r")
        refused = {"outcome": Outcome.THROTTLED, "attempts": (BUSY,), "entities": 0}
        ledger.add(done(asked, START + 1.0, 0.05, **(refused if lost else {})))
    snapshot = ledger.snapshot(start=START, end=START + 10)

    def evaluated(name: str) -> ConditionResult:
        return parse_condition(f"p99(service{name}) < 200ms").evaluate(snapshot)

    assert evaluated(', partition="calm"').passed is True
    hot = evaluated(', partition="hot"')
    assert (hot.passed, hot.note) == (None, "up to 50% of these operations failed")
    assert evaluated("").passed is None
    # Each lost operation was refused several times.
    for _ in range(20):
        few = Operation(kind=Kind.INSERT, partition_key="few", row_key="r")
        ledger.add(done(few, START + 1.0, 0.05, attempts=(BUSY, BUSY, BUSY, OK)))
    snapshot = ledger.snapshot(start=START, end=START + 10)
    few_of = evaluated(', partition="few"')
    assert (few_of.passed, few_of.note) == (None, "up to 100% of these operations failed")


def test_a_lost_write_is_lost_whoever_limited_the_rate() -> None:
    """Only a count of lost writes means the same in a run that was too weak."""
    depends = {
        text: parse_condition(f"{text} < 1").evaluate(MEASURED, FACTS).depends
        for text in ("lost_writes", "throttled_ratio", "p99(service)", "held_rate")
    }
    assert [name for name, value in depends.items() if not value] == ["lost_writes"]


@pytest.mark.parametrize(
    ("text", "attempts", "certain"),
    [
        ("throttled_ratio < 1%", 20, True),
        ("throttled_ratio(partition) <= 99%", 88, True),
        # It held, too few attempts say so, or more load would only help.
        ("throttled_ratio <= 100%", 88, False),
        ("throttled_ratio < 1%", 19, False),
        ("throttled_ratio > 100%", 88, False),
        ("failed_ratio < 1%", 88, False),
    ],
)
def test_too_much_throttling_is_certain(text: str, attempts: int, certain: bool) -> None:
    """No faster and no longer run is throttled less: attempts alone prove it."""
    ledger = Ledger()
    busy = Attempt(
        status=503, error_code="ServerBusy", scope=Scope.PARTITION, sent_s=1.0, latency_s=0.1
    )
    write = Operation(kind=Kind.INSERT, partition_key="p", row_key="r")
    for _ in range(attempts):
        ledger.add_attempt(write, busy)
    result = parse_condition(text).evaluate(ledger.snapshot(start=0, end=10))
    assert result.certain is certain


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_sentence(text: str) -> None:
    """No text leads to anything but a condition or a ValueError."""
    with contextlib.suppress(ValueError):
        assert parse_condition(text).text == text.strip()


def failing(failed: int, throttled: int = 0) -> Snapshot:
    """1,000 operations, so many of which ended with 500 InternalError at once, or after a 503."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    error = Attempt(status=500, sent_s=START, latency_s=0.1, error_code="InternalError")
    for number in range(1000):
        operation = Operation(kind=Kind.UPSERT_MERGE, partition_key="a")
        attempts: tuple[Attempt, ...] = (OK,)
        outcome = Outcome.SUCCESS
        if number < failed:
            attempts, outcome = (error,), Outcome.SERVER_ERROR
        elif number < failed + throttled:
            attempts = (BUSY, OK)
        ledger.add(done(operation, START, 0.1, attempts=attempts, outcome=outcome, entities=1))
    return ledger.snapshot(start=START, end=START + 10)


@pytest.mark.parametrize(
    ("text", "snapshot", "passed"),
    [
        # Failures dilute the ratio, and make latencies those of failures.
        ("throttled_ratio < 1%", failing(500, 5), None),
        ("p99(service) < 1s", failing(500), None),
        ("entities_per_s(account) > 10", failing(500), None),
        # What is throttled in spite of them is certain.
        ("throttled_ratio < 1%", failing(500, 50), False),
        # Failures are what these count.
        ("failed_ratio < 60%", failing(500), True),
        ("failed_ratio < 40%", failing(500), False),
        ("failed_ratio(kind='server_error') < 40%", failing(500), False),
        ("failed_ratio(kind='timeout') < 40%", failing(500), True),
        ("failed_attempts_ratio < 40%", failing(500), False),
        ("failed_attempts_ratio(kind='500 InternalError') < 40%", failing(500), False),
        ("failed_attempts_ratio(kind='500') < 40%", failing(500), False),
        ("failed_attempts_ratio(kind='502') == 0", failing(500), True),
        # Too few failures to matter.
        ("throttled_ratio < 1%", failing(0, 5), True),
    ],
)
def test_a_failing_endpoint_decides_conditions_on_failures_alone(
    text: str, snapshot: Snapshot, passed: bool | None
) -> None:
    """Nothing else that it measured is what a sound endpoint would have done."""
    result = parse_condition(text).evaluate(snapshot)
    assert result.passed is passed
    assert (result.note.endswith("of the attempts failed")) == (passed is None)


@pytest.mark.parametrize(
    ("lost", "text", "passed"),
    [
        (5, "p99(service) < 1s", True),
        (500, "p99(service) < 1s", None),
        (500, "p50(service) < 1ms", None),
        (500, "entities_per_s(account) > 10", True),
        (500, "throttled_ratio < 1%", False),
        (500, "failed_ratio < 1%", False),
    ],
)
def test_quick_refusals_decide_nothing_about_latency(
    lost: int, text: str, passed: bool | None
) -> None:
    """Operations that were throttled every time are no answers that an application waits for."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    operation = Operation(kind=Kind.UPSERT_MERGE, partition_key="p0")
    for number in range(1000):
        refused = number < lost
        outcome = Outcome.THROTTLED if refused else Outcome.SUCCESS
        attempts = (BUSY if refused else OK,)
        ledger.add(done(operation, START, 0.1, attempts=attempts, outcome=outcome, entities=1))
    result = parse_condition(text).evaluate(ledger.snapshot(start=START, end=START + 10))
    assert result.passed is passed
    assert (result.note == "50% of the operations failed") == (passed is None)
    # So that the conditions about latency do not hide it.
    assert result.certain is (passed is False)


@pytest.mark.parametrize(("name", "passed"), [("insert", None), ("upsert_merge", False)])
def test_what_was_lost_of_other_operations_leaves_a_latency_certain(
    name: str, passed: bool | None
) -> None:
    """Only where it is certain, a run may end early."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for number in range(1000):
        refused = number < 100
        kind = Kind.INSERT if refused else Kind.UPSERT_MERGE
        outcome = Outcome.THROTTLED if refused else Outcome.SUCCESS
        attempts = (BUSY if refused else OK,)
        operation = Operation(kind=kind, partition_key="p0")
        ledger.add(done(operation, START, 0.1, attempts=attempts, outcome=outcome, entities=1))
    snapshot = ledger.snapshot(start=START, end=START + 10)
    condition = parse_condition(f"p99(service, op='{name}') < 1ms")
    result = condition.evaluate(snapshot)
    assert result.passed is passed
    assert (result.note == "100% of these operations failed") == (passed is None)
    ended = condition.cannot_hold_any_more(snapshot, NO_FACTS, Extent(window_s=10, operations=1000))
    assert ended is (passed is False)
