"""Ramp against burst, and the kinds of refusal, in simulated time."""

from __future__ import annotations

import collections
import random

import pytest

from harness.gateway.limits import GatewayLimits, Rate, RefusalSettings, limits_path, load_limits
from harness.gateway.model import Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.model.outcome import Scope
from tests.support.asked import about_entity

TOP_PER_S = 400.0


def upsert(key: str) -> Asked:
    return about_entity("PUT", key)


def refused_shares(model: Model, ramp_s: float, hold_s: float) -> tuple[float, float]:
    """The share of refusals while the rate rises to its top and in the last five seconds."""
    rng = random.Random(5)
    at_s, offered, refused = 0.0, [0, 0], [0, 0]
    while at_s < ramp_s + hold_s:
        rate = TOP_PER_S * min(1.0, at_s / ramp_s) if ramp_s else TOP_PER_S
        at_s += 1.0 / max(rate, 5.0)
        asked = upsert(f"p{rng.randrange(100):02d}")
        phase = int(at_s > ramp_s + hold_s - 5.0)
        offered[phase] += 1
        if not model.decide(asked, at_s).rule:
            model.answered(asked, Answered(status=204), at_s)
        else:
            refused[phase] += 1
    return refused[0] / offered[0], refused[1] / offered[1]


def test_a_slow_ramp_is_served_and_a_burst_is_refused() -> None:
    """The same top rate: by ramp next to no refusals, by jump many, until servers were added."""
    limits = load_limits(limits_path("ramping"))
    ramped, ramped_late = refused_shares(Model(limits, 0.0), ramp_s=45.0, hold_s=15.0)
    jumped, jumped_late = refused_shares(Model(limits, 0.0), ramp_s=0.0, hold_s=30.0)
    assert ramped < 0.01
    assert jumped > 0.1
    assert ramped_late < 0.01
    assert jumped_late < 0.05


def test_growing_keys_get_no_more_servers() -> None:
    """Append-only keys reach one server however long they are written."""
    model = Model(load_limits(limits_path("ramping")), 0.0)
    passed = 0
    for number in range(12_000):
        asked, at_s = upsert(f"{number:06d}"), number / 400.0
        if not model.decide(asked, at_s).rule:
            model.answered(asked, Answered(status=204), at_s)
            passed += 1
    assert passed == pytest.approx(100 * 30, rel=0.1)


REFUSAL = RefusalSettings(status=429, retry_after_ms=250)


@pytest.mark.parametrize(
    ("scope", "limits"),
    [
        (Scope.PARTITION, GatewayLimits(partition=Rate(entities_per_s=1), refusal=REFUSAL)),
        (Scope.ACCOUNT, GatewayLimits(account=Rate(entities_per_s=1), refusal=REFUSAL)),
    ],
)
def test_refusals_are_of_the_status_that_the_limits_say(
    scope: Scope, limits: GatewayLimits
) -> None:
    """429 with a wait in place of 503, for a partition and for the account."""
    model = Model(limits, 0.0)
    model.decide(upsert("p"), 0.0)
    decision = model.decide(upsert("p"), 0.0)
    assert decision.rule
    assert decision.scope is scope
    assert (decision.status, decision.retry_after_ms) == (429, 250)


def test_time_outs_are_of_each_status_that_the_limits_say() -> None:
    """500 and 504 come about equally often, late, and only for a partition."""
    refusal = RefusalSettings(timeout_share=0.5, timeout_statuses=(500, 504), timeout_after_s=2.0)
    model = Model(GatewayLimits(partition=Rate(entities_per_s=1), refusal=refusal), 0.0)
    refused = [model.decide(upsert("p"), 0.0) for _ in range(4001)][1:]
    assert {decision.scope for decision in refused} == {Scope.PARTITION}
    counts = collections.Counter((decision.status, decision.delay_s) for decision in refused)
    assert counts[503, 0.0] / 4000 == pytest.approx(0.5, abs=0.05)
    assert counts[500, 2.0] / 4000 == pytest.approx(0.25, abs=0.05)
    assert counts[504, 2.0] / 4000 == pytest.approx(0.25, abs=0.05)
