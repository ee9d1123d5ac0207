"""Which of some calculated keys are proposed, and what an alternative has for what."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.measure.record.whatif import FirstLimitPart, PeakPart, PricePart, WhatIfRecord
from harness.trace.advise.candidates import Candidate
from harness.trace.advise.judging import TODAY, Trial, finalists, helps, proposed
from harness.trace.advise.reasons import trade
from tests.unit.trace.whatif.test_simulation import of_hot_partition


def trial(found: WhatIfRecord, key: str, throttled: int, **price: Any) -> Trial:
    """Keys of which so many of 1,000 attempts are throttled, above 40 for the account alone."""
    [part], rule = found.schemes[1:], "account" if throttled > 40 else "server"
    once = dataclasses.replace(part.once, attempts=1000, by_rule={rule: throttled})
    first = FirstLimitPart(factor=3.0, per_s=1.0, rule=rule, partition=key)
    update = {
        "name": key,
        "once": once,
        "first_limit": first,
        "price": PricePart(operations=1000, queries=100, **price),
    }
    candidate = Candidate(key, key, key, "{row_key}", 1, {"keys": {}})
    return Trial(found, part.model_copy(update=update), candidate)


def test_the_least_throttled_keys_are_recommended() -> None:
    """Whatever their order was in the busiest seconds, and however late the limit of others is."""
    found = of_hot_partition()
    later = trial(found, "bucket64", 47, billable=3000, spread=100, needed=6400, most_needed=64)
    less = trial(found, "bucket16", 38, billable=1600, spread=100, needed=1600, most_needed=16)
    proposals = proposed([later, less], Trial(found, found.schemes[0]))
    assert [one.candidate.name for one in proposals] == ["bucket16", "bucket64"]


def test_a_trade_says_what_either_keys_cost() -> None:
    """A figure of the alternative stands first, also where it is the lower one."""
    found = of_hot_partition()
    many = trial(found, "many", 47, billable=3000, spread=100, needed=6400, most_needed=64)
    few = trial(found, "few", 47, billable=1600, spread=100, needed=1600, most_needed=16)
    none = trial(found, "none", 47, billable=3000, scans=3)
    assert trade(few, many) == (
        "1,600 billable requests in place of 3,000 and 100% of the queries in several partitions "
        "(up to 16 each in place of 64)"
    )
    assert trade(many, few) == (
        "3,000 billable requests in place of 1,600 and 100% of the queries in several partitions "
        "(up to 64 each in place of 16)"
    )
    assert trade(none, many) == (
        "no queries in several partitions, but 3.0% of the queries over the whole table"
    )
    assert trade(many, many) == "as good"


def test_keys_that_hold_at_twice_the_traffic_are_finalists() -> None:
    """Of equals; then those that are made of whole parts of today's keys."""
    found = of_hot_partition()
    parts = [trial(found, key, 0, billable=1000) for key in ("{a:bucket4}", "{a:bucket8}", "{a}")]
    today = Trial(found, found.schemes[0], TODAY)
    assert finalists(parts, today, 1, {"{a:bucket8}"})[0].name == "{a:bucket8}"
    assert finalists(parts, today, 1, {"{a:bucket8}", "{a}"})[0].name == "{a}"


def test_keys_that_meet_the_limit_of_the_account_earlier_do_not_help() -> None:
    """Than today's keys meet a limit, because queries scan more, however even the load is."""
    found = of_hot_partition()
    calm = dataclasses.replace(found.schemes[0].once, by_rule={})

    def first_at(factor: float, rule: str, peak: float = 0.01) -> Trial:
        first = FirstLimitPart(factor=factor, per_s=1.0, rule=rule, partition="")
        peaks = (PeakPart(width_s=10, per_s=peak, at_s=0, partition="hot"),)
        update = {"once": calm, "first_limit": first, "partition_peaks": peaks}
        return Trial(found, found.schemes[0].model_copy(update=update))

    today = first_at(18.0, "server")
    assert helps(first_at(26.0, "account"), today)
    assert not helps(first_at(18.5, "account"), today)
    of_account = first_at(5.0, "account", peak=10.0)
    assert helps(first_at(4.9, "account"), of_account)
    assert not helps(first_at(4.0, "account"), of_account)
