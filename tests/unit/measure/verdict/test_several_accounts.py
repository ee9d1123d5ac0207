"""The verdict of a run against several accounts is one about each of them."""

from __future__ import annotations

import pytest

from harness.measure.record.record import RunRecord
from harness.measure.record.record_builder import measured_fields
from harness.measure.verdict.conditions import Extent, parse_condition
from harness.measure.verdict.quantities import NO_FACTS
from harness.measure.verdict.verdict import judge
from harness.model.outcome import Scope
from harness.model.partition import account_of
from harness.model.services.service import PUBLISHED
from tests.support.evidence import evidence, recorded, snapshot_of

ACCOUNTS = ("east", "west")
KEYS = [f"p{number:02d}" for number in range(40)]
EAST = [key for key in KEYS if account_of(key, 2) == 0]
WEST = [key for key in KEYS if account_of(key, 2) == 1]


def test_a_load_over_one_target_is_within_the_targets_of_two() -> None:
    """Together they served more than one account should; each of them did not."""
    snapshot = snapshot_of(dict.fromkeys(KEYS[:20], 1500), accounts=ACCOUNTS)
    assert snapshot.entities_per_s.mean > PUBLISHED.account
    verdict = judge(evidence(snapshot))
    assert verdict.result == "within_target"
    assert ", the busiest of 2, " in verdict.sentence
    assert "of 20,000)" in verdict.sentence


def test_one_account_over_its_target_is_named() -> None:
    """The sum would be within the targets of both: the spread is uneven, and the advice says so."""
    rates = dict.fromkeys(EAST[:11], 1900) | {WEST[0]: 1100}
    verdict = recorded(evidence(snapshot_of(rates, accounts=ACCOUNTS))).verdict
    assert verdict.result == "over_target"
    assert "account east, the busiest of 2, 20,900 (104% of 20,000)" in verdict.sentence
    assert "account east might throttle in production" in verdict.sentence
    texts = [f"{part.text} {part.why}" for part in verdict.advice]
    assert any("spread the data over several accounts" in text for text in texts)
    assert any("Account east took 95% of the load of 2" in text for text in texts)


def test_the_account_that_throttled_is_named() -> None:
    """Not the busiest one, but the one whose own limit throttled."""
    rates = {EAST[0]: 1500, EAST[1]: 1500, WEST[0]: 1000}
    snapshot = snapshot_of(
        rates,
        throttled_per_s=2,
        scope=Scope.ACCOUNT,
        accounts=ACCOUNTS,
        throttled=[WEST[0]],
    )
    verdict = judge(evidence(snapshot))
    assert (verdict.result, verdict.limited_by) == ("throttled", "account")
    assert "all of them for account west (1,000 entities/s)" in verdict.sentence
    assert "Account west throttled 20 of 220 attempts by its own limit." in verdict.evidence
    assert not any(line.startswith("Account east throttled") for line in verdict.evidence)


def test_a_throttled_partition_is_named_with_its_account() -> None:
    """The same key is in no other account."""
    snapshot = snapshot_of({WEST[0]: 1000}, throttled_per_s=2, accounts=ACCOUNTS)
    verdict = judge(evidence(snapshot))
    assert verdict.limited_by == "partition"
    assert f"partition {WEST[0]!r} of account west" in verdict.sentence


def test_the_busiest_and_the_least_busy_account_are_evidence() -> None:
    """An account without any load is one of them."""
    verdict = judge(evidence(snapshot_of({EAST[0]: 1000}, accounts=ACCOUNTS)))
    line = (
        "Account east was the busiest of 2: 1,000 entities/s, 5.0% of its target; account west "
        "was the least busy: 0 entities/s, 0% of its target."
    )
    assert line in verdict.evidence


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
