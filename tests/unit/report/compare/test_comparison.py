"""Runs side by side: what differs, which is better on what, and what is a regression."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.measure.record.measured import LatencyPart
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import EntityPart, RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import listed
from harness.model.operation import WHOLE_TABLE
from harness.model.services.blobs import AZURITE_BLOBS
from harness.model.services.queues import AZURITE_QUEUES
from harness.model.services.service import Service
from harness.report.compare.comparison import Comparison, compare, headline, warnings
from harness.report.compare.differences import (
    ASKED,
    UNKNOWN,
    Subject,
    Values,
    judge,
    other_work,
    values_of,
    work_of,
)
from harness.report.compare.measures import MEASURES, Measure, measures_of
from harness.report.compare.outputs import (
    changed,
    comparison_json,
    comparison_markdown,
    side_by_side,
)
from harness.report.compare.regressions import parse_regression
from harness.report.sentences import partition_notes
from harness.report.terminal.page import Page
from harness.report.web.compare_page import courses
from harness.report.web.document import embedded
from tests.support.evidence import evidence, recorded, scanned, snapshot_of
from tests.support.records import (
    altered,
    enforcing,
    kept,
    line_with,
    run,
    subjects,
    with_courses,
    with_heat,
)

RECORD = kept()
BY_NAME = {measure.name: measure for measure in MEASURES}
RATE, P99 = BY_NAME["entities_per_s"], BY_NAME["p99(service)"]
THROTTLED = BY_NAME["throttled_ratio"]


def throttled(partition: int, account: int) -> dict[str, Any]:
    """Parts of a record with so many throttled attempts."""
    return {"throttled": {"partition": partition, "account": account}}


def findings(of: Sequence[Subject]) -> list[str]:
    return compare(of, []).findings


def values(*reached: float) -> Values:
    """What repeats reached that hardly scattered inside."""
    mean = sum(reached) / len(reached)
    return Values(
        mean=mean,
        least=min(reached),
        most=max(reached),
        count=len(reached),
        low=mean * 0.99,
        high=mean * 1.01,
        squares=sum((value - mean) ** 2 for value in reached),
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [("", "", True), ("", "≥", True), ("≥", "", None), ("≥", "≥", None), ("", "≤", None)],
)
def test_a_bound_may_be_far_from_the_true_figure(
    low: str, high: str, expected: bool | None
) -> None:
    """The lower of two figures may be the higher one, if it is a lower bound."""
    one, other = (
        dataclasses.replace(values(mean), sign=sign) for mean, sign in ((1000, low), (3000, high))
    )
    assert judge(RATE, one, other).differ is expected
    assert judge(RATE, other, one).differ is expected


def test_a_bound_has_its_sign_and_decides_nothing() -> None:
    """Scanned entities that were estimated, or a search that ended at its own maximum."""
    scan = altered(RECORD.operations[0], kind="scan", uncertain=3)
    scanned, exact = (
        altered(run(rate, name="a"), operations=(operation,))
        for rate, operation in ((1000, scan), (2400, RECORD.operations[0]))
    )
    found = compare(subjects(scanned, exact), [parse_regression("entities_per_s < 95%")])
    assert not any(one.measure.name == "entities_per_s" for one in found.differences)
    text = side_by_side(found, Page(width=120, colour=False))
    assert "≥1,000" in text
    assert "≤" in line_with(text, "billable /1,000 entities")
    [back] = compare(
        subjects(exact, scanned), [parse_regression("entities_per_s < 95%")]
    ).regressions
    assert back.holds is None
    assert back.sentence.startswith("≥1,000 against 2,400;")
    searched = kept("run-v1-search.json")
    signs = [
        BY_NAME["sustained_per_s"].sign(altered(searched, search={"at_least": bound}))
        for bound in (True, False)
    ]
    assert signs == ["≥", ""]


@pytest.mark.parametrize(
    ("keys", "estimated", "sign"),
    [(("p0", "p1"), True, "~"), (("p0", "p1"), False, ""), (("p0",), True, "")],
)
def test_a_share_of_two_bounds_is_none(keys: tuple[str, ...], estimated: bool, sign: str) -> None:
    """Where both partitions may have more, the share of one may be more or less."""
    record = recorded(evidence(scanned(keys, estimated=estimated)))
    assert BY_NAME["hottest_share"].sign(record) == sign
    # Of a table that is scanned, others have no more of the load than is known.
    for hottest, besides in (("A/p0", "≥"), ("B/p0", "")):
        rates = {"A/p0": 100, "B/p0": 100, f"A/{WHOLE_TABLE}": 300} | {hottest: 500}
        of_tables = recorded(evidence(snapshot_of(rates)))
        assert BY_NAME["hottest_share"].sign(of_tables) == besides
    notes = " ".join(partition_notes(record))
    assert len(keys) == 1 or f"The hottest partition takes {sign}50% of the load." in notes


def test_a_figure_that_is_a_bound_makes_its_ratio_one() -> None:
    """The headline says that the better run may have even more."""
    scan = altered(RECORD.operations[0], kind="scan", uncertain=3)
    more = altered(run(2400, name="a"), operations=(scan,))
    less = altered(run(1000, name="a"), operations=(RECORD.operations[0],))
    found = compare(subjects(more, less), [])
    assert "A serves at least 2.4 times as much as B" in headline(found)
    assert any("(at least 58% less)" in sentence for sentence in found.findings)


def test_a_run_without_load_is_compared_by_nothing() -> None:
    """Where nothing was sent there is no share, no cost and no latency, and no division by 0."""
    counts = altered(RECORD.counts, attempts=0, entities=0)
    empty = run(0.0, counts=counts, partitions=(), service_ms=None)
    names = [name for name, measure in BY_NAME.items() if measure.read(empty) is None]
    assert {"throttled_ratio", "billable_per_1000", "hottest_share", "p99(service)"} <= set(names)
    assert compare(subjects([empty], [empty]), []).exit_code == 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (values(1000), values(1049), False),
        (values(1000), values(1060), True),
        (values(990, 1000, 1010), values(1015, 1025, 1020), False),
        (values(990, 1000, 1010), values(1080, 1090, 1100), True),
        # The means of three repeats are further apart than each scatters, which chance often does.
        (values(990, 1000, 1010), values(1030, 1040, 1050), False),
        (values(990, 1000, 1010, 995, 1005), values(1030, 1040, 1050, 1035, 1045), True),
        (values(990, 1000, 1010), values(1015), False),
        (values(990, 1000, 1010), values(1040), True),
        (values(1000, 1100), values(1170, 1200), True),
        (values(1000, 1100), values(1100, 1190), False),
        (values(1000, 1000, 1000), values(1004, 1004, 1004), False),
        # Far apart, although one of them scatters more than they differ.
        (values(113, 141, 369), values(8, 16, 18), True),
        (values(35, 141, 369), values(8, 16, 18), False),
        (values(0, 0), values(0, 5), False),
        (values(0), values(0), False),
    ],
)
def test_a_difference_is_larger_than_the_scatter(
    one: Values, other: Values, expected: bool
) -> None:
    """Three repeats tell how far they scatter; of fewer the scatter inside of each run counts."""
    assert judge(RATE, one, other) == (expected, ())
    assert judge(RATE, other, one) == (expected, ())


@pytest.mark.parametrize("count", [3, 5])
def test_repeats_of_equal_runs_hardly_ever_differ(count: int) -> None:
    """Less than one time in a hundred; what is five deviations of the means apart does."""
    rng = random.Random(count)

    def repeats(mean: float) -> Values:
        return values(*(rng.gauss(mean, 50) for _ in range(count)))

    assert sum(judge(RATE, repeats(1000), repeats(1000)).differ is True for _ in range(500)) < 5
    assert sum(judge(RATE, repeats(1000), repeats(1500)).differ is True for _ in range(100)) > 80


def test_the_scatter_inside_of_a_run_explains_a_difference() -> None:
    """What both intervals together reach over is none; without intervals nothing is said."""
    one, other = values(1000), values(1200)
    assert judge(RATE, one, other).differ
    wide = dataclasses.replace(one, high=1250.0)
    assert not judge(RATE, wide, other).differ
    assert judge(RATE, dataclasses.replace(one, low=700.0), other).differ
    # A load that asked for no more leaves open what scatter does not explain.
    enough, scattered = (dataclasses.replace(of, asked=True) for of in (one, wide))
    assert judge(RATE, enough, other) == (None, (ASKED,))
    assert judge(RATE, scattered, other).differ is False
    unknown = dataclasses.replace(one, low=None, high=None)
    assert judge(P99, unknown, other) == (None, (UNKNOWN,))
    assert judge(P99, unknown, values(3000)) == (None, (UNKNOWN,))
    sent = BY_NAME["sent_bytes"]
    assert judge(sent, unknown, other) == (None, (UNKNOWN,))
    assert judge(sent, unknown, values(2001)).differ


def test_other_load_of_the_machine_decides_no_latency() -> None:
    """Where other processes used more of it during one run, latencies may differ by that."""
    one, other = (
        dataclasses.replace(values(mean), others=others)
        for mean, others in ((10.0, 0.05), (20.0, 0.5))
    )
    assert judge(P99, one, other) == (
        None,
        ("other processes used 5.0% and 50% of the machine",),
    )
    assert judge(P99, one, dataclasses.replace(other, others=0.1)).differ


def busy(share: float, limited_by: str = "load") -> RunRecord:
    """A run on a machine that was saturated for a part of the time, ten times as slow."""
    generator = altered(RECORD.generator, machine_busy_share=share)
    verdict = altered(RECORD.verdict, result="within_target", limited_by=limited_by)
    assert RECORD.service_ms is not None
    slow = altered(RECORD.service_ms, p50=60.0, p99=6000.0)
    return run(500, generator=generator, verdict=verdict, service_ms=slow)


def test_latencies_of_a_busy_machine_are_not_judged() -> None:
    """They are shown with the reason; the rate is judged where the load or throttling set it."""
    said = " ".join(findings(subjects([run(250)], [busy(0.12)])))
    assert "Entities/s: B (500) is better; A has 250 (50% less)." in said
    assert re.search(r"Shown, not judged: p50 of service latency, .*\(in B the machine was", said)
    assert not re.search(r"P99.* is better", said)
    asked = " ".join(findings(subjects([run()], [busy(0.12)])))
    assert "entities/s (the load of the lower one asked for no more)" in asked
    free = compare(subjects([run()], [busy(0.12, "users")]), [])
    assert free.differences == ()
    regression = parse_regression("p99(service) > 120%")
    assert compare(subjects([run()], [busy(0.12)]), [regression]).exit_code == 3


def test_a_handful_of_throttled_attempts_is_no_difference() -> None:
    """A throttled share below what counts as throttled differs from nothing."""
    assert not judge(THROTTLED, values(0.0), values(0.0009)).differ
    assert judge(THROTTLED, values(0.0), values(0.02)).differ


RATES = st.floats(0, 1e6).map(lambda rate: round(rate, 6))


@given(st.lists(RATES, min_size=1, max_size=5), st.lists(RATES, min_size=1))
def test_what_overlaps_does_not_differ(one: list[float], other: list[float]) -> None:
    """A value does not differ from itself, nor repeats whose mean lies within the others."""
    assert not judge(RATE, values(*one), values(*one)).differ
    if min(one) <= sum(other) / len(other) <= max(one) and len(one) > 1:
        assert not judge(RATE, values(*one), values(*other)).differ


def test_repeats_have_a_mean_and_a_spread() -> None:
    """Mean, least and most of repeats are told; one without a value leaves none."""
    found = values_of(RATE, [run(900), run(1000), run(1100)])
    assert found is not None
    assert (found.mean, found.least, found.most, found.count) == (1000, 900, 1100, 3)
    assert (found.spread, found.squares) == (200, 20000)
    assert values_of(P99, [run(), run(service_ms=None)]) is None


def test_findings_say_which_is_better_on_what() -> None:
    """More entities/s is better, less throttling is; each with both figures."""
    found = findings(subjects([run(1000, **throttled(4000, 0))], [run(1200, **throttled(0, 0))]))
    assert found[0] == "Entities/s: B (1,200) is better; A has 1,000 (17% less)."
    assert "Share of attempts throttled: B (0%) is better; A has 9.0%." in found
    assert found[-1].startswith("No difference: the hottest partition's share of the load,")
    assert "target" not in "".join(found)


def test_findings_of_more_than_two_name_the_best() -> None:
    """Of three the best is named, and those that do not differ from it with it."""
    found = findings(subjects([run(1000)], [run(1500)], [run(1490)]))
    assert found[0] == (
        "Entities/s: B (1,500) and C (1,490) are best and do not differ; A has 1,000 (33% less)."
    )


def test_rates_are_held_against_the_limit_in_force() -> None:
    """Where a gateway enforced lower limits than the published targets, as in all other outputs."""
    gateway = run(200.0, enforced=enforcing())
    for records, word, of_partition, of_account in (
        ([gateway], "limit", 0.8, 0.08),
        ([run(200.0, enforced=None)], "target", 0.1, 0.01),
    ):
        shown = {one.name: one for one in measures_of(records)}
        partition, account = shown["limit_ratio(partition)"], shown["limit_ratio(account)"]
        assert (partition.label, account.label) == (f"hottest, of {word}", f"account, of {word}")
        assert partition.read(records[0]) == pytest.approx(of_partition)
        assert account.read(records[0]) == pytest.approx(of_account)
    assert "target" not in " ".join(one.label + one.noun for one in measures_of([gateway]))


def said_of(*records: RunRecord) -> str:
    return " ".join(one.label + one.noun for one in measures_of(records)).lower()


@pytest.mark.parametrize("service", [AZURITE_BLOBS, AZURITE_QUEUES], ids=str)
def test_the_unit_of_a_comparison_is_that_of_all_runs(service: Service) -> None:
    """A line of a blob is no entity, and an entity no message: those of both count as entities."""
    other = run(endpoint=altered(RECORD.endpoint, kind=service.name))
    for own in (f"{service.unit.many}/s", f"billable /1,000 {service.unit.many}"):
        assert own in said_of(other, other)
    assert "entit" not in said_of(other, other)
    for together in (said_of(run(), other), said_of(other, run()), said_of(run(), run())):
        assert "billable /1,000 entities" in together
        assert service.unit.one not in together


def test_of_runs_on_blobs_lines_are_compared() -> None:
    """The charts of two say lines, and beside a table is said what a line corresponds to."""
    lines = run(endpoint=altered(RECORD.endpoint, kind=AZURITE_BLOBS.name))
    heated = [
        with_heat(with_courses(one), ["a", "b"], lambda row, column: column)
        for one in (lines, lines)
    ]
    charts = embedded([*courses(subjects(*([one] for one in heated))).values()])
    assert "Lines/s" in charts
    assert "ntities" not in charts
    [_, said] = warnings(subjects([run()], [run(result="no_target", endpoint=lines.endpoint)]))
    assert said == "A line of a blob counts as an entity of a table."


def test_findings_without_any_difference_are_one_sentence() -> None:
    """A run beside itself differs in nothing."""
    [only] = findings(subjects([run()], [run()]))
    assert only.startswith("No difference: entities/s, ")


def test_findings_compare_response_latency_where_both_have_it() -> None:
    """A closed loop has no response latency and is not held against one that has."""
    course = with_courses(RECORD).response_over_time
    assert course is not None
    latency = LatencyPart(count=1, mean=1.0, p50=1.0, p90=1.0, p99=1.0, max=1.0)
    slow = altered(latency, p99=800.0)
    one = run(response_ms=latency, response_over_time=course)
    other = run(response_ms=slow, response_over_time=course)
    assert "P99 of response latency: A (1.00 ms) is better; B has 800 ms (800 times as much)." in (
        findings(subjects([one], [other]))
    )
    untold = altered(one, response_over_time=None)
    said = findings(subjects([untold], [other]))
    assert f"Shown, not judged: p99 of response latency ({UNKNOWN})." in said
    assert "response" not in "".join(findings(subjects([one], [run()])))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"complete": False}, "B is incomplete"),
        ({"invariants": ("broken",)}, "B is not valid: its counts contradict each other"),
        ({"outcomes": {"defect": 1}}, "B had operations that failed because of a defect"),
        ({"result": "client_limited"}, "B was client-limited"),
        ({"result": "inconclusive"}, "B was inconclusive"),
        ({"measured_s": 400}, "A was measured for 40 s, B for 400 s."),
        (
            {"entity": altered(RECORD.entity, stored_bytes=512)},
            "Entities have 1,024 B in A and 512 B in B",
        ),
        (
            {"endpoint": altered(RECORD.endpoint, kind="azurite", described="Azurite (emulator)")},
            "A ran on Azure Table storage, B on Azurite.",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(parts: dict[str, Any], sentence: str) -> None:
    """Another endpoint, size or duration, and figures in doubt, are named before the figures."""
    assert any(sentence in one for one in warnings(subjects([run()], [run(**parts)])))
    assert warnings(subjects([run()], [run()])) == []


def test_users_that_pause_make_no_run_client_limited() -> None:
    """A run within its target is judged, though its users could have sent more."""
    paused = altered(RECORD.verdict, result="within_target", limited_by="users")
    few = altered(paused, result="client_limited")
    assert warnings(subjects([run(verdict=paused)], [run()])) == []
    (said,) = warnings(subjects([run(verdict=few)], [run()]))
    assert said == "A was client-limited: its users were too few for the requested rate."


def watched(command: str = "node", **parts: Any) -> RunRecord:
    """The kept record as that of an application."""
    entity = EntityPart(stored_bytes=0, wire_bytes=1300)
    application = WatchedPart(command=command, requests=50)
    return run(watched=application, entity=entity, users=0, session="application", **parts)


def test_an_application_is_not_described_as_a_load_of_users() -> None:
    """Of a watched run the program and its requests are said, and that the loads differ."""
    limited = watched(result=VerdictResult.CLIENT_LIMITED)
    compared = compare(subjects([limited], [run()]), [])
    page = Page(width=300, colour=False, ascii_only=True)
    for output in (side_by_side(compared, page), comparison_markdown(compared)):
        assert "watched application node, 50 requests, 40 s measured" in output
        assert " 0 users" not in output
    assert [sentence.partition(":")[0] for sentence in compared.warnings] == [
        "A was client-limited",
        "A was the load of an application, B that of the harness",
    ]
    assert "those of the application" in compared.warnings[0]
    told = " ".join(compare(subjects([watched()], [run()]), []).findings)
    assert "Bytes do not compare: B counts whole requests and answers, A their bodies." in told
    assert "ytes sent per operation" not in told
    assert "ytes sent per operation" in " ".join(findings(subjects([run()], [run()])))
    assert "application (not started here)" in comparison_markdown(
        compare(subjects([run()], [watched("")]), [])
    )
    assert warnings(subjects([watched()], [watched()])) == []
    smaller = altered(watched(), entity=EntityPart(stored_bytes=0, wire_bytes=999))
    assert warnings(subjects([watched()], [smaller])) == [
        "Entities have 1,300 B on the wire in A and 999 B on the wire in B; rates count entities, "
        "not bytes."
    ]


def test_other_sizes_make_targets_indicative() -> None:
    """Entities of another size than 1 KiB are held against targets only as an indication."""
    small = run(entity=altered(RECORD.entity, stored_bytes=512))
    assert warnings(subjects([small], [small])) == [
        "Indicative only: targets hold for 1 KiB entities, and entities of A and B have "
        "another size."
    ]


def test_doubts_of_repeats_are_counted() -> None:
    """One incomplete run of three is said as one of three."""
    [warning] = warnings(subjects([run()], [run(), run(complete=False), run()]))
    assert warning == "B is incomplete: its counts may be too low (1 of 3 runs)."


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        ("entities_per_s < 95%", 1000, 949, True),
        ("entities_per_s < 95%", 1000, 951, False),
        ("entities_per_s<95%", 1000, 2000, False),
        ("entities_per_s < first - 100", 1000, 899, True),
        ("entities_per_s < first - 100", 1000, 901, False),
        ("p99(service) > 120%", 100, 121, True),
        ("p99( service ) > first + 20ms", 100, 121, True),
        ("p99(service) > first + 0.02 s", 100, 119, False),
        ("throttled_ratio > first + 1%", 0.0, 0.011, True),
        ("throttled_ratio(account) > first + 1%", 0.05, 0.059, False),
        ("limit_ratio(partition) > first + 5%", 0.5, 0.6, True),
        ("limit_ratio(partition) < first - 5%", 0.5, 0.4, True),
    ],
)
def test_a_regression_holds_the_last_against_the_first(
    text: str, first: float, last: float, expected: bool
) -> None:
    """A bound is a percentage of the first, or the first with something added."""
    judged = parse_regression(text).judge(values(first), values(last))
    assert judged.holds is expected
    assert judged.text == text


def test_a_regression_inside_the_scatter_does_not_hold() -> None:
    """What repeats do among themselves is no regression, nor what single runs do."""
    regression = parse_regression("entities_per_s < 98%")
    noisy = regression.judge(values(900, 1000, 1100), values(960, 970, 980))
    assert noisy.holds is False
    assert "within the scatter of the runs" in noisy.sentence
    assert regression.judge(values(1000), values(970)).holds is False
    assert regression.judge(values(1000), values(940)).holds is True


def test_a_regression_without_a_value_is_not_known() -> None:
    """Nothing can be said of a latency that one of the two does not have."""
    judged = parse_regression("p99(response) > 120%").judge(None, values(100))
    assert judged.holds is None
    assert judged.sentence == "the first has no p99(response)"


@given(st.text(max_size=40))
def test_any_text_is_a_regression_or_a_sentence(text: str) -> None:
    """Parsing ends in a regression or in a `ValueError`, whatever is written."""
    with contextlib.suppress(ValueError):
        assert parse_regression(text).measure in MEASURES


@pytest.mark.parametrize(
    ("last", "texts", "code"),
    [
        (run(900), [], 0),
        (run(990), ["entities_per_s < 95%"], 0),
        (run(900), ["entities_per_s < 95%"], 1),
        (run(900), ["entities_per_s < 95%", "p99(response) > 120%"], 3),
        (run(900, complete=False), ["entities_per_s < 95%"], 3),
        (run(1100, result="client_limited"), ["entities_per_s < 95%"], 3),
        (run(900, complete=False), [], 0),
    ],
)
def test_the_exit_code_is_that_of_the_regressions(
    last: RunRecord, texts: list[str], code: int
) -> None:
    """1 where one holds, 3 where one cannot be told; without regressions always 0."""
    assert compared([[run(1000)], [last]], *texts).exit_code == code


def test_doubts_of_those_between_tell_nothing_of_a_regression() -> None:
    """Only the first and the last decide on a regression."""
    between = run(1, complete=False)
    comparison = compared([[run(1000)], [between], [run(900)]], "entities_per_s < 95%")
    assert comparison.exit_code == 1


def compared(of: Sequence[Sequence[RunRecord]], *texts: str) -> Comparison:
    """Runs side by side, with regressions."""
    return compare(subjects(*of), [parse_regression(text) for text in texts])


def page(width: int = 100, ascii_only: bool = False) -> Page:
    return Page(width=width, colour=False, ascii_only=ascii_only)


def test_the_text_shows_the_range_of_repeats() -> None:
    """Below a mean of repeats stand the least and the most of them."""
    repeats = [run(900), run(1000), run(1100, result="over_target")]
    text = side_by_side(compared([[run(1000)], repeats]), page())
    lines = text.splitlines()
    place = lines.index(line_with(text, "entities/s "))
    assert lines[place + 1].split() == ["900", "to", "1,100"]
    assert "throttled, 2 of 3" in text
    assert "exceeds 1.0% and the spread of the repeats" in " ".join(text.split())


def test_two_repeats_are_said_to_be_few() -> None:
    """A spread of two says little, which the output says."""
    assert "Fewer than 3 repeats give a rough spread" in compared([[run()], [run(), run()]]).rule
    assert "Repeats would show how far runs differ" in compared([[run()], [run()]]).rule
    assert "rough spread" not in compared([[run(), run(), run()]] * 2).rule


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_line_is_wider_than_the_page(width: int, ascii_only: bool) -> None:
    """Eight runs side by side are broken into blocks that fit, the first in each."""
    several = [[run(1000 + 100 * place), run(990 + 110 * place)] for place in range(8)]
    comparison = compared([[run()], *several[1:]], "entities_per_s < 95%")
    text = side_by_side(comparison, page(width, ascii_only))
    assert max(map(cell_len, text.splitlines())) <= width
    titles = [line for line in text.splitlines() if "side by side" in line]
    assert len(titles) > 1
    assert all(title.startswith("A") for title in titles)
    assert text.isascii() is ascii_only


@given(st.text(st.characters(codec=None), max_size=30))
def test_no_name_breaks_an_output(name: str) -> None:
    """Whatever a source or a profile is called, text, Markdown and JSON can be written."""
    strange = Subject(source=name, records=(run(profile={**RECORD.profile, "name": name}),))
    comparison = compare([subjects([run()])[0], strange], [])
    side_by_side(comparison, page()).encode("utf-8")
    comparison_markdown(comparison).encode("utf-8")
    assert json.loads(comparison_json(comparison))["subjects"][1]["source"] == name


@pytest.mark.parametrize(
    ("value", "reference", "expected"),
    [
        (113, 100, "+13%"),
        (95.9, 100, "-4.1%"),
        (100.01, 100, "same"),
        (900, 100, "+800%"),
        (1300, 100, "x 13"),
        (5, 0, ""),
    ],
)
def test_a_change_is_written(value: float, reference: float, expected: str) -> None:
    """A change has its sign, and one decimal below ten percent."""
    assert changed(values(value), values(reference)) == expected


@pytest.mark.parametrize(
    ("value", "sign", "reference", "of_reference", "expected"),
    [
        (133, "", 435, "≥", "≤-69%"),
        (435, "≥", 133, "", "≥+227%"),
        (1000, "", 33, "≤", "≥x 30"),
        (100, "≥", 100, "≥", "same"),
        (100, "≥", 100, "", ""),
        (200, "≥", 100, "≥", ""),
    ],
)
def test_the_change_of_a_bound_is_one(
    value: float, sign: str, reference: float, of_reference: str, expected: str
) -> None:
    """The true difference is larger, or smaller; of two bounds only equal ones are the same."""
    one = dataclasses.replace(values(value), sign=sign)
    other = dataclasses.replace(values(reference), sign=of_reference)
    assert changed(one, other) == expected
    if value == reference:
        assert judge(RATE, one, other).differ is (None if sign != of_reference else False)


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], ""), (["A"], "A"), (["A", "B"], "A and B"), (["A", "B", "C"], "A, B and C")],
)
def test_names_are_listed(names: list[str], expected: str) -> None:
    """The last of several names stands after an and."""
    assert listed(names) == expected


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_measure_can_be_written_in_a_regression(measure: Measure) -> None:
    """What the table compares, --fail-if can name, in the unit of its value."""
    side, sign = ("<", "-") if measure.more_is_better else (">", "+")
    assert (
        parse_regression(f"{measure.name} {side} first {sign} 1{measure.unit}").measure is measure
    )


def worked(queries: int, entities: int, writes: int) -> RunRecord:
    """A run with so many queries and writes a second; a query scans as many entities."""
    snapshot = scanned(queries_per_s=queries, entities=entities, writes_per_s=writes)
    return recorded(evidence(snapshot))


SCANS = worked(20, 125, 20)


@pytest.mark.parametrize(
    ("other", "measure", "reason"),
    [
        # More scanned entities are no more work that an application wanted.
        (worked(20, 40, 20), "entities_per_s", "their queries scanned other numbers of entities"),
        (worked(1, 125, 300), "billable_per_1000", "between 29% and 99% of the load were reads"),
        (worked(1, 125, 300), "p99(service)", "their mixes of operations differ"),
        # The same operations, which scan more: that is what their keys cost.
        (worked(20, 40, 20), "p99(service)", ""),
        (worked(10, 125, 10), "entities_per_s", ""),
    ],
)
def test_figures_of_other_work_are_shown_and_not_judged(
    other: RunRecord, measure: str, reason: str
) -> None:
    """Entities, bytes and latencies are those of the operations, whatever the keys are."""
    one, two = (subject.values(BY_NAME[measure]) for subject in subjects(SCANS, other))
    assert one is not None
    assert two is not None
    assert other_work(BY_NAME[measure], one.work, two.work) == reason
    if reason:
        apart = dataclasses.replace(two, mean=5 * one.mean)
        assert judge(BY_NAME[measure], one, apart).reasons == (reason,)
    shares = other_work(THROTTLED, one.work, two.work)
    assert shares == ""


def test_transactions_are_the_same_work_as_single_writes() -> None:
    """Both write entities: that is the question of profile `transactions`."""
    like = RECORD.operations[0]
    written = {"outcomes": {"success": 100}, "count": 100}
    single = altered(like, kind="upsert", type="upsert_merge", entities=100, **written)
    together = altered(like, kind="tx", type="transaction", entities=10_000, **written)
    one, two = (work_of([altered(RECORD, operations=(part,))]) for part in (single, together))
    assert other_work(RATE, one, two) == ""
    assert other_work(P99, one, two) == "their mixes of operations differ"
    lost = altered(together, entities=0, outcomes={"throttled": 100})
    assert work_of([altered(RECORD, operations=(lost,))]) == {}


def test_other_rates_that_were_asked_for_are_said() -> None:
    """A run that was asked for less is throttled less, whatever its keys are."""
    asked = [recorded(evidence(snapshot_of({"p0": 1000}), wanted_per_s=w)) for w in (1000, 4000)]
    [said] = [one for one in warnings(subjects(*asked)) if "asked for" in one]
    assert said == (
        "A and B were asked for 1,000 and 4,000 entities/s: throttling and latencies "
        "depend on the rate."
    )
    assert not [one for one in warnings(subjects(asked[0], asked[0])) if "asked for" in one]
