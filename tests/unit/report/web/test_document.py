"""The HTML report and what the live page is told: what is shown, and that nothing in it acts."""

from __future__ import annotations

import base64
import functools
import hashlib
import html.parser
import json
import re
import tomllib
import unicodedata

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.findings import AdvicePart, MachinePart
from harness.measure.record.measured import CapacityPart
from harness.measure.record.origin import ReplayPart, WatchedPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.errors import printable
from harness.model.partition import Partition
from harness.model.services.blobs import AZURITE_BLOBS
from harness.report.names import partition_name
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.document import SECTIONS, document, embedded, live_page, update
from harness.report.web.parts import parts
from harness.report.web.parts import profile_text as settings_text
from harness.report.web.tables import page_js
from harness.report.web.tabs import verdict_rows
from tests.support.examples import examples
from tests.support.records import (
    altered,
    enforcing,
    kept,
    move,
    with_courses,
    with_heat,
    with_partitions,
)

RECORD = kept()
SEARCH = kept("run-v1-search.json")
IDS = [block.id for section in SECTIONS for block in section.blocks]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style><b>",
    "{{ 7 * 7 }}{% raw %}",
    "😀" * 300,
    "x" * 1024,
    "a\u202eb\u2028c\u0007",
    "שלום",
    "",
]


class Structure(html.parser.HTMLParser):
    """The tags of a page with the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Whether a name has a title depends on its length.
        self.tags.append((tag, tuple(name for name, _ in attrs if name != "title")))
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def full(keys: list[str]) -> RunRecord:
    """A record with everything that can be shown, of partitions of these keys."""
    record = with_heat(
        with_partitions(with_courses(SEARCH), keys, folded=True),
        keys[:64],
        lambda row, column: 7 * row + column,
        lambda row, column: (row + column) % 3,
    )
    versions = {"locust": "2.47.0", "gevent": "26.9.0"}
    machine = MachinePart(cpus=2, platform="Linux", python="CPython 3.11", packages=versions)
    enforced = enforcing(*(move(key, 9.0 * place, 2.0) for place, key in enumerate(keys)))
    return altered(record, machine=machine, redacted=True, enforced=enforced)


def parts_of(record: RunRecord) -> str:
    """All parts of a page, one after the other."""
    return "\n".join(update(record, live=False)["parts"].values())


def charts_of(page: str) -> dict[str, object]:
    """The figures that a report holds."""
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    assert found is not None
    figures: dict[str, object] = json.loads(found[1])
    return figures


def acting(text: str) -> set[str]:
    """Characters that a page must not hold as they are."""
    return {
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs") and character != "\n"
    }


def test_everything_has_its_place_on_the_page() -> None:
    """Every part and chart that can be made has an element, and every element can be filled."""
    assert len(IDS) == len(set(IDS))
    shown = update(full(["a", "b"]), live=True)
    made = {*shown["parts"], *shown["charts"]}
    assert made - {"head"} <= set(IDS)
    absent = {"scans", "pointers", "accounts", "service-log", "chart-rate", "chart-waiting"}
    absent |= {"chart-messages", "chart-age"}
    assert set(IDS) - made == absent, "which this record has nothing for"


@pytest.mark.parametrize("record", [RECORD, SEARCH], ids=["plain", "search"])
def test_a_record_of_an_older_harness_is_shown(record: RunRecord) -> None:
    """A record without heat map, courses and machine has a report of all the rest."""
    assert record.heat is None
    page = document(record)
    assert set(charts_of(page)) >= {"chart-main", "chart-throttling"}
    text = Structure(page).text
    assert record.verdict.sentence in text
    assert record.run_id in text


@functools.cache
def tags_with_plain_keys(count: int) -> list[tuple[str, tuple[str, ...]]]:
    """The tags of a page whose keys need no escaping."""
    return Structure(parts_of(full([f"k{place}" for place in range(count)]))).tags


@examples(60)
@given(
    st.lists(
        st.one_of(st.sampled_from(HOSTILE), st.text(max_size=200)).filter(
            # The record predicts a share of p0, and its row shows it.
            lambda key: key != "p0" and not Partition.named(key).whole_table
        ),
        min_size=2,
        max_size=6,
        unique=True,
    )
)
def test_a_key_is_shown_and_never_acts(keys: list[str]) -> None:
    """Whatever keys hold, the page has the tags of a page with plain keys, and the keys as text."""
    page = Structure(parts_of(full(keys)))
    assert page.tags == tags_with_plain_keys(len(keys))
    titles = {value for _, name, value in page.attributes if name == "title"}
    for key in keys:
        name = partition_name(key)
        assert name in page.text or name in titles
    assert not acting(parts_of(full(keys)))


@examples(60)
@given(st.recursive(st.text() | st.integers(-(2**53), 2**53), st.lists) | st.sampled_from(HOSTILE))
def test_data_in_a_page_is_read_as_it_was(content: object) -> None:
    """What is embedded ends no element and no line, and JSON gives it back."""
    text = embedded(content)
    assert not set(text) & set("<>&\u2028\u2029\n")
    assert json.loads(text) == content


@pytest.mark.parametrize("key", HOSTILE)
def test_a_chart_shows_a_key_as_text(key: str) -> None:
    """Names in charts hold no character that acts by itself; the browser writes them as text."""
    names = update(full([key, "z"]), live=False)["charts"]["chart-heat"].heat.names
    assert len(names) == len(set(names)) == 2
    assert not acting("".join(names))


@pytest.mark.parametrize("letter", ["k", "é", '"', "漢"])
def test_an_update_stays_small(letter: str) -> None:
    """200 partitions with the longest keys and a full heat map are less than a megabyte."""
    keys = [f"{place:04d}{letter * 1020}" for place in range(200)]
    record = with_heat(
        full(keys), keys[:64], lambda row, column: 1234 + row, lambda row, column: 99, columns=120
    )
    series = record.series * (1200 // len(record.series))
    record = altered(record, series=series)
    shown = update(record, live=True)
    assert len(orjson.dumps(shown)) < 1_000_000
    rows = shown["parts"]["partitions"].count("<tr>")
    assert rows > 50
    assert "150 more" in shown["parts"]["partitions"]
    assert update(record, live=False)["parts"]["partitions"].count("<tr>") > 200


def test_a_report_asks_nobody_for_anything() -> None:
    """Nothing in a report has an address outside it, and no script but its own may run."""
    page = document(full(HOSTILE))
    found = Structure(page)
    addresses = [(name, value) for _, name, value in found.attributes if name in ("src", "href")]
    assert addresses
    assert all(name == "href" and value.startswith("#") for name, value in addresses)
    assert not {"link", "img", "iframe", "object", "form"} & {tag for tag, _ in found.tags}
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    [policy] = [value for _, name, value in found.attributes if value.startswith("default-src")]
    digest = base64.b64encode(hashlib.sha256(page_js().encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert page.count(f"<script>{page_js()}</script>") == 1
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy


def test_a_report_is_read_without_scripts() -> None:
    """Verdict, conditions, partitions, steps, profile and machine are in the page itself."""
    record = full(["p0", "p1"])
    text = Structure(document(record)).text
    assert record.search is not None
    for expected in (
        record.verdict.sentence,
        "lost_writes == 0",
        record.endpoint.described,
        "p1",
        f"{record.search.steps[0].billable_transactions:,}",
        'partition_key = "p0"',
        "CPython 3.11",
        "locust 2.47.0",
        "PartitionKeys are replaced by aliases",
        record.verdict.advice[0].document,
    ):
        assert expected in text, expected


def test_the_live_page_takes_all_from_beside_it() -> None:
    """Its addresses are relative, so that it works wherever it is put, and it has every element."""
    found = Structure(live_page())
    addresses = [value for _, name, value in found.attributes if name in ("src", "href")]
    assert sorted(one for one in addresses if not one.startswith("#")) == [
        *("../", "../", "data:,", "page.css", "page.js"),
    ]
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert {*IDS, "head", "downloads"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert "No run yet" in found.text


def test_what_goes_on_is_marked() -> None:
    """A verdict in mid-run says that the run goes on; that of a report does not."""
    assert "so far" in update(RECORD, live=True)["parts"]["verdict"]
    assert "so far" not in update(RECORD, live=False)["parts"]["verdict"]


@pytest.mark.parametrize("record", [RECORD, SEARCH], ids=["plain", "search"])
def test_the_profile_is_shown_as_it_could_be_written(record: RunRecord) -> None:
    """The settings are TOML that says the same, without those that have no value."""

    def valued(content: object) -> object:
        if isinstance(content, dict):
            inner = {name: valued(value) for name, value in content.items() if value is not None}
            return {name: value for name, value in inner.items() if value != {}}
        return content

    own = {k: v for k, v in record.profile.items() if k not in ("name", "question")}
    assert tomllib.loads(settings_text(own)) == valued(own)
    assert printable(settings_text({"question": "?"})) == ""


def test_stages_are_tables_of_their_own() -> None:
    """A list of tables is shown as one."""
    stages = [{"for_s": 60.0, "to_users": None}, {"for_s": 5.0, "to_users": 3}]
    text = settings_text({"seed": 1, "stage": stages, "load": {"a": {"b": 1}}})
    assert tomllib.loads(text) == {
        "seed": 1,
        "stage": [{"for_s": 60.0}, {"for_s": 5.0, "to_users": 3}],
        "load": {"a": {"b": 1}},
    }


def test_a_search_that_goes_on_is_not_told_as_one_that_ended() -> None:
    """Meanwhile its steps are shown, and what they cost only after it."""
    assert SEARCH.search is not None
    told = {live: update(SEARCH, live=live)["parts"]["search"] for live in (True, False)}
    cost = f"{len(SEARCH.search.steps)} steps, 18,504 billable transactions."
    assert cost in told[False]
    assert cost not in told[True]
    assert told[True].count("<tr") == told[False].count("<tr")


def test_a_condition_that_fails_without_throttling_is_the_headline() -> None:
    """Below the word FAIL stands why, not that nothing was throttled."""
    verdict = altered(RECORD.verdict, result="within_target", limited_by="load")
    failed = altered(
        RECORD.conditions[0], text="p99(service) < 3ms", passed=False, value=5.0, unit="latency"
    )
    calm = altered(RECORD, verdict=verdict, conditions=(failed,), exit_code=1, throttled_ratio=0.0)
    shown = update(calm, live=False)["parts"]["verdict"]
    sentence, finding = re.findall(r'<p class="(?:sentence|finding[^"]*)">([^<]*)', shown)
    assert sentence.startswith("The condition fails: p99(service)")
    assert finding.startswith("Nothing was throttled at")


def test_a_limit_that_is_not_the_published_one_is_explained() -> None:
    """Who reads 250 entities/s is told that Azure serves 2,000."""
    held = enforcing()
    endpoint = altered(RECORD.endpoint, kind="gateway")
    scaled = altered(RECORD, enforced=held, endpoint=endpoint)
    assert "scaled to 250 of 2,000 entities/s" in update(scaled, live=False)["parts"]["verdict"]
    assert "scaled" not in update(RECORD, live=False)["parts"]["verdict"]


def test_the_verdict_says_what_to_do_next() -> None:
    """The first piece of advice without its reason; not while the run warms up."""
    verdict = altered(
        RECORD.verdict,
        advice=(
            AdvicePart(text="spread keys: one is hot", document="D", section="S"),
            AdvicePart(text="batch writes", document="D", section="S"),
        ),
    )
    record = altered(RECORD, verdict=verdict)
    shown = parts(record, live=False)["verdict"]
    assert "<strong>Next step:</strong> spread keys.</p>" in shown
    assert "batch" not in shown
    rows = {row["what"]: row["said"] for row in verdict_rows("Ended.", record, live=False)}
    assert rows["Next step"] == "Spread keys."
    warming = altered(
        record, measured_s=1, verdict=altered(verdict, result=VerdictResult.INCONCLUSIVE)
    )
    assert "Next step" not in parts(warming, live=True)["verdict"]
    plain = altered(RECORD, verdict=altered(verdict, advice=()))
    assert "Next step" not in parts(plain, live=False)["verdict"]


def test_a_run_on_blobs_is_told_in_lines() -> None:
    """In the report and in the terminal; `entities` alone is the name of a fact about the load."""
    endpoint = altered(RECORD.endpoint, kind=AZURITE_BLOBS.name)
    verdict = altered(
        RECORD.verdict, result=VerdictResult.NO_TARGET, sentence="No target.", evidence=()
    )
    made = CapacityPart(session="blob", operations_per_cpu_s=9.0, entities_per_cpu_s=900.0)
    generator = altered(RECORD.generator, capacity=made)
    changes = {"endpoint": endpoint, "verdict": verdict, "enforced": None, "generator": generator}
    record = with_heat(
        with_courses(RECORD).model_copy(update=changes), ["a", "b"], lambda row, column: 5
    )
    shown = update(record, live=False)
    said = "".join(text for name, text in shown["parts"].items() if name != "profile")
    said += embedded(shown["charts"]) + summary(record, Page(width=100))
    assert "lines/s" in said
    assert "(900 lines) in a second of CPU time" in said
    assert re.findall(r"\w*.entities/s|Entities/s", said) == []


def test_a_load_that_asked_for_no_more_says_so() -> None:
    """A share of the target is not taken for what the endpoint can do."""
    verdict = altered(RECORD.verdict, result="within_target", limited_by="load")
    calm = altered(RECORD, verdict=verdict, conditions=())
    assert "No more was requested" in update(calm, live=False)["parts"]["verdict"]


def test_a_watch_names_its_application_and_a_replay_its_trace() -> None:
    """In sight, where a run of a profile has its question."""
    application = WatchedPart(requests=9, passed=9, command="node <server.js>")
    watched = update(altered(RECORD, watched=application), live=False)
    assert "node &lt;server.js&gt;" in watched["parts"]["head"].partition("<details")[0]
    profile = {**RECORD.profile, "replay": {"trace": "app.parquet", "speed": 2.0}}
    replayed = altered(RECORD, profile=profile, replay=ReplayPart(trace="a"))
    head = update(replayed, live=False)["parts"]["head"].partition("<details")[0]
    assert "app.parquet at its recorded instants, 2 times as fast" in head


def test_no_more_is_served_than_was_asked() -> None:
    """What queries scan is expected beforehand: 110% of it served would be a riddle."""
    points = tuple(altered(point, offered=100.0) for point in RECORD.series)
    shown = update(altered(RECORD, series=points), live=False)["parts"]["figures"]
    assert '<p class="value">100%</p>' in shown
    assert "1,692 entities/s, 100 expected" in shown
