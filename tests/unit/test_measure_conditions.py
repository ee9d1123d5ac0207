"""Pass conditions: what can be written, and what it compares."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.conditions import parse_condition
from harness.measure.ledger import Ledger
from harness.measure.snapshot import Snapshot
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result, Scope

START = 1_700_000_000
BUSY = Attempt(
    status=503, sent_s=START, latency_s=0.1, error_code="ServerBusy", scope=Scope.PARTITION
)
OK = Attempt(status=204, sent_s=START, latency_s=0.1)


def measured() -> Snapshot:
    """Ten seconds: 400 entities in a, 100 in b, 1 of 100 attempts throttled, 50 ms each."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for number in range(99):
        key, entities = ("a", 5) if number < 80 else ("b", 5 if number < 98 else 10)
        ledger.add(
            Result(
                operation=Operation(kind=Kind.UPSERT_MERGE, partition_key=key, row_key="r"),
                outcome=Outcome.SUCCESS,
                sent_s=START + 1.0,
                done_s=START + 1.05,
                attempts=(BUSY, OK) if number == 0 else (OK,),
                entities=entities,
            )
        )
    return ledger.snapshot(start=START, end=START + 10)


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
    ],
)
def test_conditions_compare_what_they_say(
    text: str, value: float | None, passed: bool | None
) -> None:
    """Units are converted; what was not measured is neither passed nor failed."""
    result = parse_condition(text).evaluate(MEASURED)
    assert result.text == text.strip()
    assert result.passed is passed
    assert result.value == (None if value is None else pytest.approx(value, rel=2e-3))


@pytest.mark.parametrize("metric", ["throttled_ratio", "entities_per_s(partition)", "p99(service)"])
def test_nothing_measured_is_unknown(metric: str) -> None:
    """A run that sent nothing satisfies no condition, and breaks none."""
    assert parse_condition(f"{metric} < 1").evaluate(NOTHING).passed is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no condition; write for example"),
        ("throttled_ratio", "is no condition"),
        ("throttled_ratio <= 1%", "is no condition"),
        ("throttled_ratio < -1%", "is no condition"),
        ("throttled_ratio < 1% and more", "is no condition"),
        ("p99(service) < 1e3", "is no condition"),
        ("p98(service) < 100ms", r"compares something unknown; known are throttled_ratio, "),
        ("p99 < 100ms", "compares something unknown"),
        ("p99(servce) < 100ms", "compares something unknown"),
        ("throttled_ratio < 100ms", "has unit 'ms'; throttled_ratio takes no unit or %"),
        ("entities_per_s(account) > 5%", "has unit '%'; entities_per_s takes no unit"),
        ("p99(service) < 5%", "has unit '%'; p99 takes no unit or ms or s"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, message: str) -> None:
    """The sentence says what is wrong and what could be written."""
    with pytest.raises(ValueError, match=message):
        parse_condition(text)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_sentence(text: str) -> None:
    """No text leads to anything but a condition or a ValueError."""
    with contextlib.suppress(ValueError):
        assert parse_condition(text).text == text.strip()
