"""The outputs of a run for CI: Markdown, JUnit, partitions as a table, and the log of latencies."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hdrh.log import HistogramLogReader
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.measured import EstimatePart
from harness.measure.record.record import EntityPart, RunRecord
from harness.model.errors import printable
from harness.model.figures import milliseconds, number, of_core, percent
from harness.model.operation import WHOLE_TABLE
from harness.report.answers import attempts_words
from harness.report.columns import best_over
from harness.report.compare.measures import MEASURES
from harness.report.export import markdown as gfm
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.export.result import run_output
from harness.report.export.run_folder import hlog, partitions_csv
from harness.report.passing import measured
from harness.report.terminal.page import Page
from harness.report.terminal.summary import brief, summary
from harness.report.web.document import document
from harness.report.web.parts import parts
from harness.report.web.tabs import verdict_rows
from tests.support.records import altered, kept, with_partitions

RECORD = kept()
PARTITION = RECORD.partitions[0]
STRANGE = st.text(st.characters(codec=None), max_size=60)
KEYS = st.text(st.characters(codec=None, exclude_characters="/"), max_size=60)
"""No PartitionKey holds a slash."""
PARSER = MarkdownIt("commonmark").enable("table")


def changed(**parts: Any) -> RunRecord:
    """The kept record with other parts."""
    return RECORD.model_copy(update=parts)


def spread(*keys: str, **parts: Any) -> RunRecord:
    """The kept record with a partition for each key."""
    return with_partitions(RECORD, keys, **parts)


def shown(token: Token) -> str:
    """What a reader of rendered Markdown sees of a token."""
    return "".join(child.content for child in token.children or ())


def cells(source: str) -> list[list[str]]:
    """The cells of all tables in a Markdown document, as they are rendered."""
    rows: list[list[str]] = []
    for before, token in zip(PARSER.parse(source), PARSER.parse(source)[1:], strict=False):
        if before.type == "tr_open":
            rows.append([])
        if token.type == "inline" and before.type in ("td_open", "th_open"):
            rows[-1].append(shown(token))
    return rows


def row_of(source: str, first: str) -> list[str]:
    """The first row of a Markdown document that begins with ``first``."""
    return next(row for row in cells(source) if row[0] == first)


@given(STRANGE)
@example("# 1")
@example("1. a")
@example("---")
@example("a|b\\|c`d<script>&amp;*x*_y_[z](w)")
def test_a_text_is_shown_as_it_is(value: str) -> None:
    """No text acts in Markdown: it is one paragraph that reads as the text does."""
    tokens = PARSER.parse(gfm.text(value))
    kinds = [token.type for token in tokens]
    assert kinds in ([], ["paragraph_open", "inline", "paragraph_close"])
    assert "".join(map(shown, tokens)) == printable(value).strip()


@given(STRANGE)
@example("`")
@example("a``b`")
@example("   ")
@example("a|b")
def test_code_in_a_table_is_shown_as_it_is(value: str) -> None:
    """A key in a table is one cell of code that reads as the key does."""
    table = "\n".join(gfm.table(("key", "n"), [(gfm.code(value), "1")]))
    if value:
        assert cells(table)[-1][1:] == ["1"]
        assert cells(table)[-1][0] == printable(value).replace("\\|", "\\u005c|")


@given(st.lists(STRANGE, min_size=1, max_size=4, unique=True))
def test_no_key_breaks_the_markdown(keys: list[str]) -> None:
    """Whatever keys are: every row of the partitions has its ten cells, and nothing is HTML."""
    source = markdown(spread(*keys))
    rows = cells(source)
    start = rows.index(row_of(source, "partition"))
    assert [len(row) for row in rows[start : start + 1 + len(keys)]] == [10] * (1 + len(keys))
    inline = [child for token in PARSER.parse(source) for child in token.children or ()]
    assert not [child for child in inline if child.type == "html_inline"]
    source.encode("utf-8")


def suite_of(record: RunRecord) -> ET.Element:
    """The test suite, read back."""
    suite = ET.fromstring(junit(record).encode("utf-8")).find("testsuite")
    assert suite is not None
    return suite


def verdict_of(suite: ET.Element, name: str) -> tuple[str, str]:
    """How the test case of that name ended, and what is said of it."""
    case = next(case for case in suite.findall("testcase") if case.get("name") == name)
    ends = [(child.tag, child.get("message") or "") for child in case]
    assert len(ends) <= 1
    return ends[0] if ends else ("passed", "")


@pytest.mark.parametrize(("value", "kind"), [(None, "not measured"), (1.0, "not decided")])
def test_junit_tells_what_is_open_from_what_failed(value: float | None, kind: str) -> None:
    """A condition without a value is an error, and so is one whose value decides nothing."""
    unknown = altered(RECORD.conditions[1], value=value, passed=None)
    suite = suite_of(changed(exit_code=3, conditions=(unknown,)))
    assert verdict_of(suite, unknown.text)[0] == "error"
    assert [error.get("type") for error in suite.findall("testcase/error")] == [kind]
    assert suite.get("errors") == "1"


def test_junit_of_a_run_that_a_condition_ended_has_no_errors() -> None:
    """What failed is a failure, what held passed, what was not reached is skipped."""
    failed, held, unknown = RECORD.conditions
    unknown = altered(unknown, value=None, passed=None)
    suite = suite_of(changed(exit_code=1, conditions=(failed, held, unknown)))
    ends = [verdict_of(suite, part.text)[0] for part in (failed, held, unknown)]
    assert ends == ["failure", "passed", "skipped"]
    counts = [suite.get(name) for name in ("failures", "errors", "skipped")]
    assert counts == ["1", "0", "1"]


def test_junit_of_an_inconclusive_run_is_never_green() -> None:
    """Where the run allows no conclusion, a condition that seems to hold is an error."""
    suite = suite_of(changed(exit_code=3, conditions=(RECORD.conditions[1],)))
    tag, message = verdict_of(suite, RECORD.conditions[1].text)
    assert tag == "error"
    assert RECORD.verdict.sentence in message


@pytest.mark.parametrize(
    ("parts", "tag"),
    [({"invariants": ("due 5 is not sent 4",)}, "failure"), ({"complete": False}, "error")],
)
def test_junit_has_a_case_for_the_laws_of_counting(parts: dict[str, Any], tag: str) -> None:
    """A broken law is a failure; a missing report leaves the laws unproven, an error."""
    assert verdict_of(suite_of(changed(**parts)), "laws of counting")[0] == tag


@given(STRANGE)
def test_junit_is_valid_xml_whatever_it_says(strange: str) -> None:
    """No key, name or sentence makes XML that cannot be read, and none is lost."""
    condition = altered(RECORD.conditions[0], text=strange)
    verdict = altered(RECORD.verdict, sentence=strange)
    profile = {**RECORD.profile, "name": strange}
    suite = suite_of(changed(conditions=(condition,), verdict=verdict, profile=profile))
    assert suite.findall("testcase")[1].get("name") == printable(strange)
    assert (suite.findtext("system-out") or "") == printable(strange)


def rows_of(record: RunRecord) -> list[dict[str, str]]:
    """The table of partitions, read back."""
    return list(csv.DictReader(io.StringIO(partitions_csv(record), newline="")))


def test_csv_tells_what_is_no_single_partition() -> None:
    """What was folded, and queries over several partitions, are rows of their own kind."""
    folded = altered(PARTITION, key="(other)", target=None, ratio=None)
    rows = rows_of(altered(spread("(other)", WHOLE_TABLE), partitions_folded=folded))
    assert [(row["row"], row["partition"]) for row in rows] == [
        ("partition", "(other)"), ("queries", "(table)"), ("other", "(other)"),
    ]  # fmt: skip
    assert rows[2]["ratio_to_target"] == ""


def test_csv_says_what_is_estimated() -> None:
    """A partition told apart late says since when, and its bounds."""
    late = {"exact": False, "since": 1.5, "estimate": EstimatePart(at_least=3, at_most=7)}
    [row] = rows_of(spread("p", **late))
    names = ("told_apart_since_utc_s", "entities_at_least", "entities_at_most")
    assert [row[name] for name in names] == ["1.5", "3", "7"]


@pytest.mark.parametrize("key", ["=1+1", "+1", "-1", "@SUM(A1)", '="a",b'])
def test_csv_keys_are_no_formulas(key: str) -> None:
    """A key that a spreadsheet would run has an apostrophe before it."""
    assert rows_of(spread(key))[0]["partition"] == f"'{key}"


@given(st.lists(KEYS, max_size=4, unique=True))
def test_csv_holds_any_key(keys: list[str]) -> None:
    """Whatever keys are, each is read back from its row, and no cell is a formula."""
    text = partitions_csv(spread(*keys))
    text.encode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["partition"].removeprefix("'") for row in rows] == [
        printable(key).removeprefix("'") for key in keys
    ]
    assert not [cell for row in rows for cell in row.values() if re.match(r"[=+@-]", cell)]


def test_csv_without_partitions_has_its_header() -> None:
    """A run that touched nothing still names the columns."""
    assert partitions_csv(changed(partitions=())).startswith("row,partition,entities,")


def log_of(path: Path, text: str) -> list[Any]:
    """The intervals of a log, as HdrHistogram's own reader gives them."""
    path.write_text(text, encoding="utf-8")
    reader = HistogramLogReader(str(path), None)
    intervals = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        intervals.append(interval)
    reader.input_file.close()
    return intervals


def histogram(*seconds: float) -> LatencyHistogram:
    """A histogram of these latencies."""
    made = LatencyHistogram(3)
    made.record(seconds)
    return made


def test_the_log_is_read_by_hdrhistogram(tmp_path: Path) -> None:
    """Its reader finds each tag, the measured window, and the latencies in microseconds."""
    parts = [
        ("point_query.service", histogram(0.004, 0.004, 1.5)),
        ("point_query.response", histogram(0.25)),
    ]
    first, second = log_of(tmp_path / "l.hlog", hlog(1760000005.0, 1760000045.0, parts))
    assert (first.get_tag(), second.get_tag()) == ("point_query.service", "point_query.response")
    assert first.get_total_count() == 3
    assert first.values_are_equivalent(first.get_value_at_percentile(50), 4000)
    assert first.values_are_equivalent(first.get_max_value(), 1_500_000)
    stamps = first.get_start_time_stamp(), first.get_end_time_stamp()
    assert stamps == (1760000005000.0, 1760000045000.0)


def test_the_log_leaves_empty_histograms_out() -> None:
    """A kind of operation without latencies has no interval."""
    assert "Tag=" not in hlog(0.0, 1.0, [("none.service", histogram())])


@given(st.text(max_size=20))
def test_no_name_breaks_the_log(name: str) -> None:
    """Whatever an operation is called, its interval stays four columns behind one tag."""
    line = hlog(5.0, 6.0, [(f"{name}.service", histogram(0.1))]).split("\n")[-2]
    assert re.fullmatch(r"Tag=[^,\s]*,5\.000,1\.000,[0-9.]+,[A-Za-z0-9+/=]+", line)


def test_a_figure_reads_the_same_in_every_output() -> None:
    """Rate, share of the target, throttled share and p99 are rounded alike wherever they stand."""
    record = RECORD
    assert record.account.ratio is not None
    assert record.service_ms is not None
    outputs = [summary(record, Page(width=120)), markdown(record), document(record)]
    for text in (
        number(record.account.entities_per_s.mean),
        percent(record.account.ratio),
        percent(record.throttled_ratio),
        milliseconds(record.service_ms.p99),
        of_core(record.generator.cpu_percent_mean),
        measured(record.conditions[0]),
    ):
        assert all(text in output for output in outputs), text
    assert measured(record.conditions[0]) in junit(record)


def test_a_footnote_is_shown_once_by_every_output_of_the_verdict() -> None:
    """What restricts the figures stands below the verdict, and nowhere else."""
    note = "74% of the entities are estimated (minimum)."
    verdict = altered(RECORD.verdict, footnote=f"Emulator. {note}")
    endpoint = altered(RECORD.endpoint, kind="azurite")
    record, page = changed(verdict=verdict, endpoint=endpoint), Page(width=400)
    for said in (summary(record, page), brief(record, page), markdown(record), junit(record)):
        assert said.count(note) == 1
    pages = parts(record, live=False)
    assert [name for name, text in pages.items() if note in text] == ["verdict"]
    assert "Emulator." not in pages["verdict"], "the page says in its own words what answered"


def test_failures_that_retries_hid_are_on_the_first_screen() -> None:
    """Every output of the verdict names them, whatever the verdict is about."""
    said = "8.5% of the attempts failed (500 InternalError)."
    verdict = altered(RECORD.verdict, failures=said)
    record = changed(verdict=verdict, attempts_by_status={"204": 915, "500 InternalError": 85})
    for shown in (summary(record, Page(width=400)), markdown(record).replace("\\", "")):
        assert said in shown
    pages = parts(record, live=False)
    assert said in pages["verdict"]
    assert "of attempts" in pages["figures"]
    assert said in " ".join(str(row["said"]) for row in verdict_rows("", record, live=False))


@pytest.mark.parametrize(
    ("measured_s", "best"), [(7, "best 7 s"), (10, "best 10 s"), (40, "best 10 s")]
)
def test_the_best_mean_says_over_how_long_it_was_taken(measured_s: int, best: str) -> None:
    """A window shorter than ten seconds has no best ten; every output says what it has."""
    record = altered(RECORD, measured_s=measured_s)
    assert best_over(record) == best
    pages = parts(record, live=False)
    for output in (summary(record, Page(width=140)), markdown(record), pages["account"]):
        assert best in output
        assert best == "best 10 s" or "best 10 s" not in output
    assert f">{best}</th>" in pages["partitions"]


def test_a_run_without_a_measured_window_has_no_rates() -> None:
    """A rate of 0 that nobody measured is shown nowhere, and compared with nothing."""
    record = altered(RECORD, measured_s=0)
    pages = parts(record, live=False)
    for output in (summary(record, Page(width=140)), markdown(record), *pages.values()):
        for rate in ("best 1 s", "best 10 s", "transactions/s", "of 2,000", "of 20,000"):
            assert rate not in output
    assert "no measured window" in pages["account"]
    rates = [each.read(record) for each in MEASURES if "per_s" in each.name or "limit" in each.name]
    assert set(rates) == {None}


@pytest.mark.parametrize("name", ["run-v1.json", "run-v1-cosmos.json"])
def test_files_for_programs_leave_out_rates_that_nobody_measured(name: str) -> None:
    """They are not 0, which a program would compare; the record can be read without them."""
    record = altered(kept(name), measured_s=0)
    text = record.to_json()
    content = json.loads(text)
    for part in (content, content["account"], *content["partitions"], *content["operations"]):
        units = part.get("request_units", {})
        assert not {"entities_per_s", "transactions_per_s", "ratio", "per_s"} & {*part, *units}
    assert RunRecord.from_json(text).to_json() == text
    assert run_output(record, name).entities_per_s is None
    for row in rows_of(record):
        window = ("entities_per_s", "request_units_per_s", "ratio")
        rates = [figure for column, figure in row.items() if column.startswith(window)]
        assert set(rates) == {""}


def test_what_writes_took_on_the_wire_is_a_bound_where_only_the_sum_is_known() -> None:
    """All bytes that were sent have those of reads and of refused writes."""
    for stored, words in ((1024, "about 972 B"), (0, "at most 972 B")):
        record = altered(RECORD, entity=EntityPart(stored_bytes=stored, wire_bytes=972))
        assert f"{words} on the wire" in markdown(record)


@pytest.mark.parametrize(
    ("kind", "answers", "said"),
    [
        (
            "query",
            {"200": 300},
            "300 attempts for 100 operations (3.000 per operation, further pages",
        ),
        ("query", {"200": 100, "503 ServerBusy partition": 200}, "(3.000 per operation)"),
        ("insert", {"204": 300}, "(3.000 per operation)"),
    ],
)
def test_pages_are_no_retries(kind: str, answers: dict[str, int], said: str) -> None:
    """Where more attempts were served than there were operations, queries had further pages."""
    counts = {"operations": 100, "attempts": 300, "attempts_in_flight": 0, "in_flight": 0}
    operations = (altered(RECORD.operations[0], type=kind),)
    record = altered(RECORD, counts=counts, operations=operations, attempts_by_status=answers)
    assert said in attempts_words(record)[0]
