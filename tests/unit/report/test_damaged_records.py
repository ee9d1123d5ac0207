"""Records that were damaged: each is refused in a sentence, or makes every output there is."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from harness.measure.record.behaviour import BehaviourPart
from harness.measure.record.findings import (
    AdvicePart,
    AuditPart,
    GapPart,
    MachinePart,
    PointersPart,
    PredictionPart,
    ThrottlingPart,
)
from harness.measure.record.measured import EstimatePart
from harness.measure.record.record import RecordError, RunRecord
from harness.model.operation import WHOLE_TABLE, Kind
from harness.profile.checks.recorded import seen_in
from harness.profile.practices.checklist import findings_of
from harness.report.compare.comparison import compare
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.compare.regressions import parse_regression
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.export.run_folder import partitions_csv
from harness.report.terminal.checklist import Checked, check_json, check_text, facts_of
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.document import embedded, update
from harness.report.web.tabs import rows_of, verdict_rows
from tests.support.behaviour import attempt, counted, insert, query, result, write
from tests.support.golden import GOLDEN
from tests.support.profiles import shipped
from tests.support.records import (
    altered,
    enforcing,
    kept,
    move,
    subjects,
    with_courses,
    with_heat,
    with_partitions,
)

REGRESSIONS = tuple(map(parse_regression, ("entities_per_s < 95%", "p99(service) > first + 1ms")))
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, 1e-320, 5e-9, 1e17, -1e17, 1e308, float("inf"),
    float("-inf"), float("nan"), 2**31, 2**63, -(10**25), 10**400, 10**4200, 253402300800,
    "", "x", "1 2 3", "9" * 300, "\x00", "\u202e", "k" * 5000, "2025-13-45T99:99:99Z",
    "2025-10-09T08:53:20", "503 ServerBusy", [], [[]], [None], [1], {}, {"": ""}, {"a": 1},
)  # fmt: skip
NAMES = ("", "x", "503", "503 ", "500 OperationTimedOut", "²", "partition", "defect", "k" * 5000)


def behaviour() -> BehaviourPart:
    """How an application used tables, with something of everything."""
    busy = [attempt(wait_s, 503, code="ServerBusy") for wait_s in (0.0, 0.5)]
    return counted(
        [
            *(result(insert(f"t{n}", f"r{n}"), at_s=n / 9) for n in range(40)),
            *(result(query(WHOLE_TABLE), attempt(n, 200), entities=9) for n in range(3)),
            result(query(filter="A eq 1"), attempt(0.0, 200), entities_returned=1000),
            result(write(Kind.UPDATE_MERGE, "p"), *busy, attempt(2.0)),
        ],
        "a client",
    )


def whole() -> dict[str, Any]:
    """A record that has something of everything, as JSON holds it."""
    keys = [f"p{number}" for number in range(3)]
    record = with_partitions(with_courses(kept("run-v1-search.json")), keys, folded=True)
    record = with_heat(record, keys, lambda row, column: row * column, lambda row, column: row)
    estimated = altered(
        record.partitions[2],
        exact=False,
        since=1760000003.0,
        estimate=EstimatePart(at_least=3, at_most=9),
        response_ms=record.service_ms,
    )
    stages: list[dict[str, Any]] = [{"to_entities_per_s": 3.0}, {"to_entities_per_s": 9.5}]
    advice = AdvicePart(text="spread the keys", document="a document", section="a section")
    return altered(
        record,
        profile={**record.profile, "stage": stages},
        enforced=enforcing(move("p1", 3.5, 2.0)),
        partitions=(*record.partitions[:2], estimated),
        response_ms=record.service_ms,
        invariants=("due 5 is not sent 4",),
        verdict={"advice": (advice,)},
        throttling=ThrottlingPart(
            first_s=3,
            seconds=9,
            stretches=2,
            longest_s=5,
            gap_count=1,
            gaps=(GapPart(start_s=3, length_s=4, recovered_s=2),),
        ),
        pointers=(PointersPart(table="ByTag", to="", rows=12, dangling=3, unnamed=4),),
        audit=AuditPart(
            written=9,
            rows=8,
            acknowledged=7,
            kept=5,
            lost=1,
            covered=1,
            unacknowledged=3,
            applied=1,
            not_applied=1,
            undecided=1,
            examples=("one",),
        ),
        prediction=PredictionPart(
            hottest="p0",
            hottest_share=0.5,
            ranges=(("p0", "p1"), ("p2", "p2")),
            hottest_range=0,
            hottest_range_share=0.7,
            over_partitions_share=0.1,
        ),
        behaviour=behaviour(),
        machine=MachinePart(cpus=2, platform="Linux", python="3.11", packages={"a": "1"}),
    ).model_dump(mode="json")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, however many elements its lists have."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, (*path, name))
    elif isinstance(value, list):
        # A series has hundreds of points, which are all alike.
        for place in {0, len(value) // 2, len(value) - 1} if value else ():
            yield from places(value[place], (*path, place))


def damaged(content: dict[str, Any], chance: random.Random) -> bytes:
    """A record with some places changed, and sometimes with some bytes changed."""
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        *inside, last = chance.choice(list(places(content)))
        parent: Any = content
        for part in inside:
            parent = parent[part]
        how = chance.randrange(8)
        if how == 0:
            del parent[last]
        elif how == 1 and isinstance(parent, list):
            parent += parent[: chance.randrange(200)]
        elif how == 2 and isinstance(parent, dict):
            parent[chance.choice(NAMES)] = chance.choice(ODD)
        elif how == 3:
            for _ in range(chance.choice((3, 30, 300))):
                parent[last] = chance.choice(({"a": parent[last]}, [parent[last]]))
        else:
            parent[last] = chance.choice(ODD)
    text = json.dumps(content)
    match chance.randrange(20):
        case 0:
            return text[: chance.randrange(len(text))].encode()
        case 1:
            return text.encode(chance.choice(("utf-16", "utf-32", "utf-8-sig")))
        case 2:
            place = chance.randrange(len(text))
            return text[:place].encode() + bytes([chance.randrange(256)]) + text[place:].encode()
    return text.encode()


def checks(record: RunRecord) -> tuple[str, str]:
    """The practices held against the run, as text and as JSON."""
    checked = Checked(name=record.run_id, question="", seen=seen_in(record), facts=facts_of(record))
    findings = findings_of(checked.seen)
    page = Page(width=100, colour=False, ascii_only=False)
    return check_text(checked, findings, page), check_json(checked, findings)


def make_everything(record: RunRecord, other: RunRecord) -> None:
    """Every output that is a function of a record, and of two side by side."""
    shown = update(record, live=False)
    for text in (
        embedded(shown["charts"]),
        *shown["parts"].values(),
        markdown(record),
        junit(record),
        partitions_csv(record),
        summary(record, Page(width=100)),
        *checks(record),
        json.dumps([rows_of(record), verdict_rows("", record, live=True)], allow_nan=False),
        record.to_json(),
    ):
        text.encode("utf-8")
    comparison = compare(subjects(record, other, [record, record]), REGRESSIONS)
    comparison_json(comparison)
    comparison_markdown(comparison)
    side_by_side(comparison, Page(width=140, colour=False, ascii_only=False))


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """What is damaged: records of everything, and those that were kept."""
    names = ("run-v1.json", "run-v1-search.json", "run-v1-cosmos.json")
    everything = whole()
    # A search, stages and a rate are not together in a profile: what comes first is shown.
    staged = everything | {"profile": {**everything["profile"], "search": None}}
    load = {**everything["profile"]["load"], "operations_per_s": 50.0}
    rated = staged | {"profile": {**staged["profile"], "stage": [], "load": load}}
    replay = {"trace": "traces/orders.trace", "speed": 2.0}
    replayed = staged | {"profile": {**staged["profile"], "stage": [], "replay": replay}}
    settings = shipped("single-partition").model_dump(mode="json")
    now = everything | {"profile": {"name": "now", **settings}}
    return [
        everything,
        staged,
        rated,
        replayed,
        json.loads(json.dumps(now)),
        *(json.loads((GOLDEN / name).read_bytes()) for name in names),
    ]


def refused(contents: list[dict[str, Any]], seeds: range) -> int:
    """How many of the damaged records are refused; the others have to make every output."""
    other, refusals = kept(), list[str]()
    for seed in seeds:
        chance = random.Random(seed)
        try:
            record = RunRecord.from_json(damaged(chance.choice(contents), chance))
        except RecordError as error:
            refusals.append(str(error))
            continue
        try:
            make_everything(record, other)
        except Exception as error:
            raise AssertionError(f"the record of seed {seed} was read, and fails") from error
    assert all(len(sentence.splitlines()) == 1 for sentence in refusals)
    assert max(map(len, refusals)) < 400
    return len(refusals)


def test_a_damaged_record_is_refused_or_makes_every_output(records: list[dict[str, Any]]) -> None:
    """Whatever is changed in a record, nothing but reading it fails."""
    make_everything(RunRecord.from_json(json.dumps(records[0])), kept())
    assert 10 < refused(records, range(40)) < 40


@pytest.mark.long
@pytest.mark.thorough
def test_many_damaged_records(records: list[dict[str, Any]]) -> None:
    """The same for more of them; about a minute."""
    assert 500 < refused(records, range(1000, 4000)) < 3000
