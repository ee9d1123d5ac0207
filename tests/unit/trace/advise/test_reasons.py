"""What is said of keys: figures that are lower bounds, and shares below the noise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from harness.gateway.limits import GatewayLimits, Rate, load_limits
from harness.measure.record.advice import KeyAnswer
from harness.measure.record.whatif import FirstLimitPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import price_of, savings_of
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.report.terminal.page import Page
from harness.report.whatif import whatif_text
from harness.trace.advise.advise import Question, advise
from harness.trace.advise.judging import TODAY, Trial
from harness.trace.advise.reasons import KeyEvidence, conclusion, of_failed
from harness.trace.advise.traffic import QueriedPart, TableTraffic
from tests.support.traced import trace_of, traced
from tests.unit.trace.whatif.test_simulation import calculated, of_hot_partition, recorded, steady

TRAFFIC = TableTraffic(
    table="",
    operations=1500,
    entities=1500,
    unknown=0,
    transactions=0,
    failed=0,
    peak_per_s=300.0,
    seconds=5.0,
    keys=(("hot", "r"),),
)


def bounded(part: SchemePart) -> SchemePart:
    price = dataclasses.replace(part.price, scanned_is_lower_bound=True)
    first = FirstLimitPart(factor=2.0, per_s=600.0, rule="server", partition="hot")
    return part.model_copy(update={"price": price, "first_limit": first})


def said(found: WhatIfRecord) -> str:
    today, best = (Trial(found, part) for part in found.schemes)
    told = conclusion(KeyEvidence(traffic=TRAFFIC, today=today, best=best))
    return "\n".join([told["headline"], *told["reason"]])


def test_a_lower_bound_is_said_in_each_sentence() -> None:
    """Rates, shares of limits and of throttled requests, and that a limit may be met earlier."""
    found = of_hot_partition()
    assert "nothing throttled instead of 60%" in said(found)
    assert "≥" not in said(found)
    text = said(found.model_copy(update={"schemes": (*map(bounded, found.schemes),)}))
    assert "≥ 0% throttled instead of ≥ 60%" in text
    assert "has ≥ 300 entities/s on average, ≥ 300% of what one serves" in text
    assert "the first limit is met at x 2 or before, that of a server" in text
    assert "and takes ~100% of the load" in text
    assert "Figures with ≥ are lower bounds" in text
    assert "--rows says how many a table had" in text
    part = bounded(found.schemes[0])
    given = KeyEvidence(traffic=TRAFFIC, today=Trial(found, part), rows_said=True)
    assert "--rows" not in " ".join(conclusion(given)["reason"])


def test_what_may_cost_more_or_less_is_said_so() -> None:
    """A lower bound is a price for certain beside a smaller exact figure only, and never a gain."""
    part = of_hot_partition().schemes[0]
    few, many = (
        part.model_copy(update={"price": dataclasses.replace(part.price, scanned=scanned)})
        for scanned in (300, 900)
    )
    assert price_of(bounded(many), few) == ["≥ 900 entities scanned in place of 300"]
    for mine, other, said in (
        (bounded(few), few, "≥ 300 in place of 300"),
        (bounded(few), many, "≥ 300 in place of 900"),
        (many, bounded(few), "900 in place of ≥ 300"),
    ):
        assert price_of(mine, other) == [f"perhaps more entities scanned ({said})"]
    assert savings_of(few, many) == ["300 entities scanned in place of 900"]
    assert savings_of(few, bounded(many)) == ["300 entities scanned in place of ≥ 900"]
    assert savings_of(bounded(few), many) == savings_of(few, bounded(few)) == []


def test_queries_over_a_range_of_partitions_are_a_price() -> None:
    """They were over one partition before."""
    part = of_hot_partition().schemes[0]
    ranged = dataclasses.replace(part.price, queries=4, ranged=3)
    more = part.model_copy(update={"price": ranged})
    assert price_of(more, part) == ["75% of the queries over a range of partitions"]


def test_throughput_that_is_used_up_is_named_and_no_key(tmp_path: Path) -> None:
    """400 point reads a second of 20 keys, and 100 RU/s: `whatif` and `advise` say the same."""
    rows = [
        traced(Kind.POINT_QUERY, f"p{at % 20}", f"r{at}", at_ms=at * 5 // 2) for at in range(2000)
    ]
    trace = trace_of(tmp_path / "even.parquet", rows)
    (tmp_path / "few.toml").write_text(
        "[cosmos]\nprovisioned_ru_per_s = 100\nphysical_partitions = 1\n"
    )
    question = Question(limits=load_limits(tmp_path / "few.toml"), limits_name="few")
    (tmp_path / "scratch").mkdir()
    advice = advise(trace, question, tmp_path / "scratch", name="made")
    [table] = advice.tables
    assert table.headline == (
        "No key helps: the provisioned throughput is what limits this traffic."
    )
    assert "and 100 are provisioned. Provision more" in table.reason[-1]
    assert "20% of what one serves" in table.reason[0]
    whole = question.asked(trace, [TODAY], False, True)
    assert "The keys are not what limits it: the busiest 10 s ask for" in whatif_text(
        whole, Page(width=1000)
    )


def test_one_hot_row_is_named_before_the_throughput(tmp_path: Path) -> None:
    """Of 400 reads a second 240 are of one row: two physical partitions are hardly used."""
    keys = ["hot" if at % 5 < 3 else f"p{at % 50}" for at in range(2000)]
    rows = [traced(Kind.POINT_QUERY, key, "r", at_ms=at * 5 // 2) for at, key in enumerate(keys)]
    trace = trace_of(tmp_path / "uneven.parquet", rows)
    (tmp_path / "few.toml").write_text(
        "[cosmos]\nprovisioned_ru_per_s = 300\nphysical_partitions = 3\n"
    )
    question = Question(limits=load_limits(tmp_path / "few.toml"), limits_name="few")
    (tmp_path / "scratch").mkdir()
    [table] = advise(trace, question, tmp_path / "scratch", name="made").tables
    assert table.headline == "No key helps: one row takes 60% of the load."
    assert table.reason[-1].startswith("Besides, the busiest 10 s ask for")


def test_one_row_is_not_said_to_have_more_than_its_partition() -> None:
    """Of a long trace, its share is that of the busiest seconds."""
    found = of_hot_partition()
    today = Trial(found, found.schemes[0])
    for operations, said in ((1500, "the load."), (3000, "the load in the busiest seconds.")):
        traffic = dataclasses.replace(TRAFFIC, operations=operations)
        told = conclusion(
            KeyEvidence(traffic=traffic, today=today, each_row=today, each_row_helps=False)
        )
        assert told["headline"] == f"No key helps: one row takes 100% of {said}"


def test_less_than_the_noise_is_not_nothing() -> None:
    """Of 100,000 requests one is throttled."""
    found = of_hot_partition()
    recorded_keys, best = found.schemes
    once = dataclasses.replace(best.once, attempts=100_000, by_rule={"partition": 1})
    best = best.model_copy(update={"once": once})
    text = said(found.model_copy(update={"schemes": (recorded_keys, best)}))
    assert "less than 0.10% throttled instead of 60%" in text
    assert Trial(found, best).throttled == 0


def test_of_aliases_it_is_not_said_that_no_key_helps() -> None:
    """The parts of the real keys may help; only what does not depend on them is said."""
    found = of_hot_partition()
    today = Trial(found, found.schemes[0])
    for aliased, answer in ((False, KeyAnswer.NO_KEY), (True, KeyAnswer.UNKNOWN)):
        told = conclusion(KeyEvidence(traffic=TRAFFIC, today=today, aliased=aliased))
        assert told["answer"] is answer, told["headline"]


def test_the_headline_says_the_limit_that_the_reason_says(tmp_path: Path) -> None:
    """Also where the account is met before any partition is."""
    found = calculated(recorded(tmp_path, steady(60, 5, ["hot"])))
    firsts = {"partition": 1.6, "account": 3.0}
    parts = [
        part.model_copy(
            update={"first_limit": FirstLimitPart(factor=factor, per_s=1, rule=rule, partition="p")}
        )
        for part, (rule, factor) in zip(found.schemes, firsts.items(), strict=True)
    ]
    text = said(found.model_copy(update={"schemes": tuple(parts)}))
    assert "the first limit is met at about x 3 instead of at about x 1.6" in text
    assert "the first limit is met at about x 3, that of the account" in text


def test_the_headline_says_what_only_a_burst_passes() -> None:
    """The asked traffic is over the limit of the account, and too short to meet it."""
    found = of_hot_partition()
    first = FirstLimitPart(factor=0.5, per_s=1, rule="account", partition="p")
    today, best = found.schemes
    assert not best.once.throttled
    best = best.model_copy(update={"first_limit": first})
    headline = said(found.model_copy(update={"schemes": (today, best)})).splitlines()[0]
    assert "nothing throttled instead of 60%, but only because a burst passes" in headline
    assert headline.endswith("if it lasts, the limit of the account is met at about x 0.5.")
    # Where queries may scan more, it is met earlier.
    best = bounded(best).model_copy(update={"first_limit": first})
    headline = said(found.model_copy(update={"schemes": (today, best)})).splitlines()[0]
    assert headline.endswith("if it lasts, the limit of the account is met at x 0.5 or before.")


def test_it_is_said_how_far_keys_hold_that_none_replaces(tmp_path: Path) -> None:
    """Nothing is throttled, and no key helps: the first limit is what there is to know."""
    found = calculated(recorded(tmp_path, steady(60, 5, ["hot"])), most_factor=100.0)
    told = conclusion(KeyEvidence(traffic=TRAFFIC, today=Trial(found, found.schemes[0])))
    assert told["answer"] is KeyAnswer.NO_KEY
    assert "the first limit is met at about x 1.7, that of a partition." in told["reason"][0]


def test_keys_that_no_other_ones_can_replace_are_no_defect(tmp_path: Path) -> None:
    """Longer PartitionKeys than these are refused by the service, so that no key is calculated."""
    longest = ["x" * 1024, "y" * 1024]
    rows = [traced(Kind.UPSERT_MERGE, key, "r", at_ms=at) for at in range(3000) for key in longest]
    trace = trace_of(tmp_path / "long.parquet", rows)
    limits = GatewayLimits(partition=Rate(entities_per_s=100))
    (tmp_path / "scratch").mkdir()
    question = Question(limits=limits, limits_name="made")
    [table] = advise(trace, question, tmp_path / "scratch", name="made").tables
    assert table.answer is KeyAnswer.NO_KEY
    assert not table.proposals


def test_keys_of_operations_that_failed_when_recorded_are_not_called_fine(tmp_path: Path) -> None:
    """A fifth was throttled, at a rate far below all limits: another limit was met."""
    rows = [
        traced(
            Kind.UPSERT_MERGE,
            "p",
            f"r{at}",
            at_ms=at * 100,
            outcome=Outcome.SUCCESS if at % 5 else Outcome.THROTTLED,
        )
        for at in range(500)
    ]
    trace = trace_of(tmp_path / "failed.parquet", rows)
    (tmp_path / "scratch").mkdir()
    question = Question(limits=GatewayLimits(), limits_name="made")
    found = advise(trace, question, tmp_path / "scratch", name="made")
    assert found.tables[0].answer is KeyAnswer.UNKNOWN
    assert "20% of the operations failed when recorded" in found.tables[0].headline


def test_what_stays_throttled_is_a_bound_where_that_is_one() -> None:
    """Beside it stands what queries read, where that is most of the load."""
    found = of_hot_partition()
    best = Trial(found, found.schemes[0])
    query = QueriedPart(whole=False, compared=(), count=10, scanned=1_200, returned=1_200)
    for trial, queries, said in (
        (best, (), "60% of the requests are still throttled, by the limit of a partition."),
        (
            Trial(found, bounded(best.part)),
            (query,),
            "≥ 60% of the requests are still throttled, by the limit of a partition: queries read "
            "80% of all entities, 120 each.",
        ),
    ):
        traffic = dataclasses.replace(TRAFFIC, queries=queries)
        told = conclusion(KeyEvidence(traffic=traffic, today=best, best=trial))
        assert told["stays_bad"][0] == said


def test_no_key_helps_is_not_said_where_transactions_are_in_the_way() -> None:
    """Buckets by row would help, whatever the account or single rows need besides."""
    found = of_hot_partition()
    today = Trial(found, found.schemes[0])
    by_account = dataclasses.replace(today.part.once, by_rule={"account": 900})
    short = Trial(
        found.model_copy(update={"account_per_s": 200.0, "schemes": found.schemes[:1]}),
        today.part.model_copy(update={"once": by_account}),
    )
    evidence = KeyEvidence(traffic=TRAFFIC, today=today, each_row=short, each_row_helps=False)
    assert conclusion(evidence)["headline"].startswith("No key helps: the account")
    traffic = dataclasses.replace(TRAFFIC, transactions=10)
    told = conclusion(dataclasses.replace(evidence, traffic=traffic, splitting=short))
    assert "No key helps" not in told["headline"]
    assert told["reason"][-1].startswith("Besides, the busiest second asks for 300 entities/s")


def test_recorded_failures_show_a_lower_limit_only_where_nothing_is_throttled() -> None:
    """Traffic that the calculation throttles too may have met the calculated limit."""
    [told] = of_failed(3, 100)
    assert told.startswith("3 operations (3.0%) got an error or no answer when recorded.")
    condition, inferred = told.rsplit(". ", 1)[1].split(", ")
    assert condition == "If they were throttled where this calculation throttles nothing"
    assert "a limit was met that is lower than its own" in inferred
    assert of_failed(0, 100) == []
