"""The verdict of a run against several accounts is one about each of them."""

from __future__ import annotations

import pytest

from harness.measure.record.record import RunRecord
from harness.measure.record.record_builder import measured_fields
from harness.measure.verdict.conditions import Extent, parse_condition
from harness.measure.verdict.quantities import NO_FACTS
from harness.model.outcome import Scope
from harness.model.partition import account_of
from harness.report.headline import headline
from tests.support.evidence import evidence, recorded, snapshot_of

ACCOUNTS = ("east", "west")
KEYS = [f"p{number:02d}" for number in range(40)]
EAST = [key for key in KEYS if account_of(key, 2) == 0]
WEST = [key for key in KEYS if account_of(key, 2) == 1]


def test_an_uneven_spread_over_accounts_is_advised_against() -> None:
    """The sum would be within the targets of both: the spread is uneven, and the advice says so."""
    rates = dict.fromkeys(EAST[:11], 1900) | {WEST[0]: 1100}
    verdict = recorded(evidence(snapshot_of(rates, accounts=ACCOUNTS))).verdict
    texts = [f"{part.text} {part.why}" for part in verdict.advice]
    assert any("spread the data over several accounts" in text for text in texts)
    assert any("Account east took 95% of the load of 2" in text for text in texts)


def test_the_account_that_was_throttled_is_named() -> None:
    """The other ones were not; of several that were, their number."""
    rates = {EAST[0]: 500, WEST[0]: 1000}

    def said(*throttled: str) -> str:
        snapshot = snapshot_of(
            rates, accounts=ACCOUNTS, throttled_per_s=1, scope=Scope.ACCOUNT, throttled=throttled
        )
        return headline(recorded(evidence(snapshot)))

    assert said(WEST[0]) == "Account west was throttled."
    assert said(WEST[0], EAST[0]) == "2 of 2 accounts were throttled."


def test_the_account_that_failed_is_named() -> None:
    """The others answered: the way to them is no cause."""
    answer = (500, "InternalError")

    def said(*failed: str) -> str:
        rates = dict.fromkeys((EAST[0], WEST[0], WEST[1]), 500)
        snapshot = snapshot_of(
            rates, accounts=ACCOUNTS, throttled_per_s=5, answer=answer, throttled=failed
        )
        return headline(recorded(evidence(snapshot)))

    assert said(WEST[0], WEST[1]).startswith("Only requests to account west fail: ")
    assert said(WEST[0]).startswith(f"Only requests to partition {WEST[0]!r} fail: ")
    assert said(EAST[0], WEST[0]).startswith("The endpoint, or the way to it, fails: ")


@pytest.mark.parametrize("bound", ["> 1400", "< 1600"])
def test_a_condition_on_the_account_is_one_on_the_busiest(bound: str) -> None:
    """Its bound is compared with what is compared with the target, also while the run goes on."""
    snapshot = snapshot_of({EAST[0]: 1500, WEST[0]: 1000}, accounts=ACCOUNTS)
    parsed = parse_condition(f"entities_per_s(account) {bound}")
    assert parsed.evaluate(snapshot).passed
    assert not parsed.cannot_hold_any_more(snapshot, NO_FACTS, Extent(window_s=10))


def test_the_record_holds_each_account_with_its_target() -> None:
    """The account as a whole has the targets of all; the parts add up."""
    snapshot = snapshot_of({EAST[0]: 1500, WEST[0]: 1000}, accounts=ACCOUNTS)
    fields = measured_fields(evidence(snapshot), ("a.test", "b.test"))
    east, west = fields["accounts"]
    assert (east.name, east.host, east.target, east.ratio) == ("east", "a.test", 20_000.0, 0.075)
    assert (west.entities_per_s.mean, west.ratio) == (1000.0, 0.05)
    assert (fields["account"].target, fields["account"].ratio) == (40_000.0, 0.0625)
    assert RunRecord.model_fields["accounts"].default == ()
