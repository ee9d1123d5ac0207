"""The trend of many runs: what is typical is said of runs that are alike, and of no others."""

from __future__ import annotations

import re

from harness.report.compare.measures import MEASURES
from harness.report.compare.repeats import trend_text, trends_of
from harness.report.terminal.page import Page
from harness.report.web.compare_page import trend, trend_page
from tests.support.records import altered, kept

FIRST = kept()
LATER = altered(FIRST, run_id="later")
PAGE = Page(width=100)


def test_runs_that_are_alike_have_a_median() -> None:
    """Nothing warns of them."""
    trends, single = trends_of([FIRST, LATER])
    shown = trend_text(trends, single, PAGE)
    assert "median" in shown
    assert "with care" not in shown


def test_runs_with_other_settings_have_none() -> None:
    """Their spread would be that of the settings; every endpoint is named."""
    load = {**FIRST.profile["load"], "users": 7}
    endpoint = altered(FIRST.endpoint, described="another endpoint")
    other = altered(LATER, profile={**FIRST.profile, "load": load}, endpoint=endpoint)
    trends, single = trends_of([FIRST, other])
    shown = trend_text(trends, single, PAGE)
    assert trends[0].sentences[0].startswith("Compare with care")
    assert "median" not in shown
    assert FIRST.endpoint.described in shown
    assert "another endpoint" in shown


def test_every_run_has_a_point_of_its_own() -> None:
    """At its minute; with seconds where a minute has several, and a number where a second has."""

    def names(*started: str) -> list[str]:
        records = [altered(FIRST, started_at=f"2026-11-{one}.500Z") for one in started]
        return list(trend(records, MEASURES)[0].names)

    assert names("23T15:40:01", "24T15:40:01") == ["11-23 15:40", "11-24 15:40"]
    assert names("23T15:40:01", "23T15:40:09") == ["11-23 15:40:01", "11-23 15:40:09"]


def test_request_units_are_of_runs_that_were_charged() -> None:
    """At Cosmos DB table and page have a column for them; at Storage neither names them."""
    charged = kept("run-v1-cosmos.json")
    for first, shown in ((FIRST, False), (charged, True)):
        later = altered(first, run_id="later")
        trends, single = trends_of([first, later])
        page = re.sub(r"<script.*?</script>", "", trend_page(trends, single), flags=re.DOTALL)
        for text in (trend_text(trends, single, PAGE), page):
            assert ("RU/s" in text) is shown


def test_a_trend_follows_the_rule_of_all_comparisons() -> None:
    """What the scatter explains is no change, and latencies of a busy machine decide nothing."""
    assert FIRST.service_ms is not None
    rates = FIRST.account.entities_per_s
    account = altered(FIRST.account, entities_per_s=altered(rates, mean=rates.mean * 1.04))
    busy = altered(FIRST.generator, machine_busy_share=0.5)
    slow = altered(FIRST.service_ms, p50=50.0)
    later = altered(LATER, account=account, generator=busy, service_ms=slow)
    [one], _ = trends_of([FIRST, later])
    assert "Entities/s: 1,692 in the first run, 1,760 in the last (no difference)." in one.sentences
    [median] = [said for said in one.sentences if said.startswith("P50 of service latency")]
    assert "(not judged: in the last run the machine was saturated in 50% of the seconds" in median
