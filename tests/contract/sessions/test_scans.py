"""Scans of a real table: what is counted is what an independent scan of the range finds.

The scan is azure-data-tables' own: it is given the key range alone, and its rows are counted.
"""

from __future__ import annotations

import dataclasses
import random
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient

from harness.endpoint.azurite.process import AzuriteProcess
from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint
from harness.measure.counts.ledger import Ledger
from harness.measure.record.record import EndpointPart, RunRecord
from harness.measure.record.record_builder import assembled
from harness.measure.verdict.verdict import judge
from harness.metrics.exposition import Exposed, LoadState, RunCourse, RunLabels, RunState
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.workload.budget import Budget
from harness.workload.entity_factory import GROUPS, EntityFactory
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.queries import QueryShape
from harness.workload.workload import Workload
from tests.support.driving import first_of
from tests.support.evidence import evidence
from tests.support.keys import design, sized, spread
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

PARTITIONS, ROWS = 5, 1000
SPREAD = spread(PARTITIONS, ROWS)
TWO_PAGES = spread(3, 800)
"""Where a filter leaves half of the rows too."""
SCATTERED = sized("hash-prefix", 60)
UNORDERED = design("{key}", "{row:guid}", fields={"key": {"values": 3}}, rows_per_partition=40)
INDEXED = sized("index-table", 4, 30)
KEYS = ["PartitionKey", "RowKey"]
"""What a scan asks for: the rows and pages are the same, and decoding them costs little."""


def workload(made: KeyDesign, *actions: Action, **shape: Any) -> Workload:
    return Workload(
        design=made,
        mix=ActionMix(dict.fromkeys(actions or (Action.FULL_TABLE_SCAN,), 1.0)),
        entities=EntityFactory(600, "run1"),
        queries=QueryShape(**shape),
    )


def credential_of(endpoint: Endpoint) -> AzureNamedKeyCredential:
    assert isinstance(endpoint.credential, SharedKey)
    return named_key(endpoint)


@pytest.fixture(scope="module")
def tables(azurite: AzuriteProcess) -> Iterator[dict[KeyDesign, tuple[str, ...]]]:
    """Names of the tables of each design that was loaded; they are deleted at the end."""
    names: dict[KeyDesign, tuple[str, ...]] = {}
    yield names
    endpoint = azurite.endpoint
    with TableServiceClient(endpoint.url, credential=credential_of(endpoint)) as service:
        for name in (name for of_one in names.values() for name in of_one):
            service.delete_table(name)


@pytest.fixture
def load(
    tables: dict[KeyDesign, tuple[str, ...]], endpoint: Endpoint, open_to: Callable[..., Any]
) -> Callable[[KeyDesign], str]:
    """Loads the tables of a design, once for all tests: the name of the first one."""

    def load_it(made: KeyDesign) -> str:
        if made not in tables:
            base = f"scans{uuid.uuid4().hex[:16]}"
            tables[made] = tuple(base + ending for ending in made.tables)
            with TableServiceClient(endpoint.url, credential=credential_of(endpoint)) as service:
                for name in tables[made]:
                    service.create_table(name)
            session = open_to("sdk", endpoint, base)
            for operation in workload(made).loading():
                assert session.execute(operation).outcome is Outcome.SUCCESS
        return tables[made][0]

    return load_it


@pytest.fixture
def scanned(
    kind: str, endpoint: Endpoint, open_to: Callable[..., Any], load: Callable[[KeyDesign], str]
) -> Callable[..., Any]:
    """Executes an operation in the tables of a design with each kind of session."""

    def execute(made: KeyDesign, operation: Operation, budget: Budget | None = None) -> Any:
        session = open_to(kind, endpoint, load(made), budget=budget or Budget())
        return session.execute(operation)

    return execute


def scan(endpoint: Endpoint, table: str, query: Operation) -> tuple[int, int]:
    """Rows in the key range of ``query``, and in how many pages they came. No word of ours."""
    terms: list[str] = []
    values: dict[str, str] = {}
    for name, sign, bound in (
        ("PartitionKey", "eq", query.partition_key),
        ("PartitionKey", "ge", query.key_range.partition_from),
        ("PartitionKey", "lt", query.key_range.partition_before),
        ("RowKey", "ge", query.key_range.row_from),
        ("RowKey", "lt", query.key_range.row_before),
    ):
        if bound is not None and bound != WHOLE_TABLE:
            terms.append(f"{name} {sign} @p{len(terms)}")
            values[f"p{len(values)}"] = bound
    with TableClient(
        endpoint.url, table + query.table, credential=credential_of(endpoint)
    ) as client:
        found = (
            client.query_entities(" and ".join(terms), parameters=values, select=KEYS)
            if terms
            else client.list_entities(select=KEYS)
        )
        pages = [len(list(page)) for page in found.by_page()]
    return sum(pages), len(pages)


@pytest.fixture(scope="module")
def scanned_before() -> Callable[..., int]:
    """Scans a range that nobody writes to, once however often it is asked for."""
    known: dict[tuple[object, ...], int] = {}

    def rows(endpoint: Endpoint, table: str, query: Operation) -> int:
        key = (
            table,
            *dataclasses.astuple(dataclasses.replace(query, filter=None, top=None, select=())),
        )
        if key not in known:
            known[key], _ = scan(endpoint, table, query)
        return known[key]

    return rows


def drawn(made: KeyDesign, action: Action, seed: int = 1, **shape: Any) -> Operation:
    return first_of(workload(made, action, **shape).next_task(random.Random(seed)))


SCANS = (
    Action.ROW_RANGE_SCAN,
    Action.PARTITION_SCAN,
    Action.PARTITION_RANGE_SCAN,
    Action.FULL_TABLE_SCAN,
)
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "density": {"returned_share": 0.01},
    "select": {"select": ("Number",)},
    "top": {"top": 10},
    "density under top": {"returned_share": 0.01, "top": 900},
    "everything": {"returned_share": 0.05, "select": ("Number",), "top": 3},
}


@pytest.mark.parametrize(
    ("action", "shape"),
    [
        *((Action.FULL_TABLE_SCAN, shape) for shape in SHAPES),
        *((action, shape) for action in SCANS[:-1] for shape in ("plain", "everything")),
    ],
)
def test_a_count_equals_an_independent_scan_or_says_that_it_is_estimated(
    scanned: Callable[..., Result],
    load: Callable[[KeyDesign], str],
    endpoint: Endpoint,
    scanned_before: Callable[..., int],
    action: Action,
    shape: str,
) -> None:
    """Each documented scan, plain and with a filter, a projection and a $top together; that of a
    table with each of them alone too.
    """
    query = drawn(SPREAD, action, rows=700, partitions=2, **SHAPES[shape])
    result = scanned(SPREAD, query)
    there = scanned_before(endpoint, load(SPREAD), query)
    assert result.outcome is Outcome.SUCCESS
    assert query.label == action.value
    found: Any = result.value
    assert result.entities_returned == len(found)
    assert query.key_range.entities == there
    stopped = query.top is not None and len(found) == query.top
    if query.filter is None:
        assert (result.entities, result.estimated) == (min(there, query.top or there), False)
    elif stopped:
        assert (result.entities, result.estimated) == (len(found), True)
    else:
        assert (result.entities, result.estimated) == (there, False)
        if there % GROUPS == 0:
            assert len(found) == there * SHAPES[shape]["returned_share"]
    if query.select:
        assert all("Number" in entity and "Total" not in entity for entity in found)


def record_of(ledger: Ledger) -> RunRecord:
    """The record of a run that consists of what the ledger counted."""
    start = int(time.time()) - 300
    snapshot = ledger.snapshot(start=start, end=start + 600)
    given = evidence(snapshot)
    return assembled(
        given,
        judge(given),
        span_s=(0.0, 60.0),
        run_id="run1",
        profile={"name": "query-types"},
        endpoint=EndpointPart(kind="storage", described="Azure", host="h", table="t"),
        session="sdk",
        ended_by="run time",
        workers=1,
    )


@pytest.mark.parametrize(
    ("top", "scanned_as", "expected"),
    [
        (None, (5000, 50, 0), "5,000 50 1.0% exact"),
        (20, (20, 20, 20), "≥20 20 ≤100% estimated"),
    ],
)
def test_record_metrics_and_text_say_the_same_of_a_scan(
    scanned: Callable[..., Result],
    top: int | None,
    scanned_as: tuple[int, int, int],
    expected: str,
) -> None:
    """What one real scan scanned and brought stands in every output, and whether that is sure."""
    ledger = Ledger()
    query = drawn(SPREAD, Action.FULL_TABLE_SCAN, returned_share=0.01, top=top)
    ledger.add(scanned(SPREAD, query))
    record = record_of(ledger)
    (part,) = record.operations
    assert part.kind == "full_table_scan"
    assert (part.entities, part.entities_returned, part.entities_estimated) == scanned_as
    counts = record.counts
    assert (
        counts.entities, counts.entities_returned, counts.entities_estimated,
    ) == scanned_as  # fmt: skip
    text = summary(record, Page(width=140))
    header, line = text[text.index("entities scanned") :].splitlines()[:2]
    assert header.split("  ")[0] == "entities scanned"
    assert " ".join(line.split()) == f"full_table_scan {expected}"
    exposed = Exposed(
        run_id="run1",
        snapshot=ledger.snapshot(start=0, end=1, latencies=False),
        counted_until_s=1,
        course=RunCourse(phases=("done",), phase="done", started_s=0.0),
        load=LoadState(),
        targets=None,
        users=1,
        workers=1,
        cpu_percent={},
        info=RunLabels(profile="", endpoint="", described="", host="", session=""),
    )
    entities, returned, estimated = scanned_as
    samples = {
        (sample.name, sample.labels.get("estimated")): sample.value
        for family in RunState(lambda: exposed).collect()
        for sample in family.samples
    }
    assert samples["aztables_entities_returned_total", None] == returned
    assert samples["aztables_entities_scanned_total", "true"] == estimated
    assert samples["aztables_entities_scanned_total", "false"] == entities - estimated


def test_every_page_is_an_attempt(
    scanned: Callable[..., Result], load: Callable[[KeyDesign], str], endpoint: Endpoint
) -> None:
    """A scan follows every continuation token; each row comes once, in key order."""
    query = drawn(SPREAD, Action.FULL_TABLE_SCAN)
    result = scanned(SPREAD, query)
    there, pages = scan(endpoint, load(SPREAD), query)
    assert [attempt.status for attempt in result.attempts] == [200] * pages
    assert pages >= 5
    assert isinstance(result.value, list)
    keys = [(entity["PartitionKey"], entity["RowKey"]) for entity in result.value]
    assert keys == sorted(set(keys))
    assert len(keys) == there == result.entities


@pytest.mark.parametrize(("top", "pages"), [(10, 1), (1050, 2)])
def test_a_top_takes_no_more_pages_than_it_needs(
    scanned: Callable[..., Result], top: int, pages: int
) -> None:
    """Without a filter as many entities are scanned as were asked for, over pages too."""
    result = scanned(SPREAD, drawn(SPREAD, Action.FULL_TABLE_SCAN, top=top))
    assert (result.entities, result.entities_returned, result.estimated) == (top, top, False)
    assert len(result.attempts) == pages


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_scan_that_the_budget_ends_is_estimated(
    scanned: Callable[..., Result], share: float
) -> None:
    """Where pages are missing, what came is the least that was scanned."""
    query = drawn(SPREAD, Action.FULL_TABLE_SCAN, returned_share=share)
    result = scanned(SPREAD, query, Budget(1))
    assert (result.entities, result.entities_returned, result.estimated) == (1000, 1000, True)


def test_scattered_keys_have_the_whole_table_scanned(
    scanned: Callable[..., Result], load: Callable[[KeyDesign], str], endpoint: Endpoint
) -> None:
    """The same ten entities cost the whole table where a hash scatters the keys."""
    query = drawn(SCATTERED, Action.PARTITION_RANGE_SCAN, partitions=10)
    result = scanned(SCATTERED, query)
    assert (result.entities, result.entities_returned, result.estimated) == (60, 10, False)
    assert scan(endpoint, load(SCATTERED), query)[0] == 60


def test_rows_without_order_have_the_whole_partition_scanned(
    scanned: Callable[..., Result], load: Callable[[KeyDesign], str], endpoint: Endpoint
) -> None:
    """The same ten rows cost the whole partition where RowKeys are GUIDs."""
    query = drawn(UNORDERED, Action.ROW_RANGE_SCAN, rows=10)
    result = scanned(UNORDERED, query)
    assert (result.entities, result.entities_returned, result.estimated) == (40, 10, False)
    assert scan(endpoint, load(UNORDERED), query)[0] == 40


def test_tables_are_scanned_apart(
    scanned: Callable[..., Result], load: Callable[[KeyDesign], str], endpoint: Endpoint
) -> None:
    """A scan is of its own table: the index has the same orders under other keys."""
    ledger = Ledger()
    for table in INDEXED.tables:
        query = Operation(
            kind=Kind.QUERY,
            partition_key=WHOLE_TABLE,
            table=table,
            key_range=KeyRange(entities=120, exact=True),
        )
        result = scanned(INDEXED, query)
        assert scan(endpoint, load(INDEXED), query)[0] == 120
        assert (result.entities, result.estimated) == (120, False)
        found: Any = result.value
        by_customer = {entity["PartitionKey"].startswith("customer") for entity in found}
        assert by_customer == {table == ""}
        ledger.add(result)
    views = ledger.snapshot(start=0, end=1).partitions
    assert {view.key: view.entities for view in views} == {"/": 120, "Index//": 120}


def test_the_same_key_in_two_tables_is_two_entities(scanned: Callable[..., Result]) -> None:
    """What is written into one table is not in the other."""
    key: dict[str, Any] = {"partition_key": "customer-0", "row_key": "only here"}
    write = Operation(kind=Kind.UPSERT_MERGE, table="Index", properties={"A": 1}, **key)
    assert scanned(INDEXED, write).outcome is Outcome.SUCCESS
    read = Operation(kind=Kind.POINT_QUERY, table="Index", **key)
    assert scanned(INDEXED, read).value["A"] == 1  # type: ignore[index]
    missing = scanned(INDEXED, dataclasses.replace(read, table=""))
    assert (missing.outcome, missing.entities) == (Outcome.NOT_FOUND, 1)
    delete = Operation(kind=Kind.DELETE, table="Index", **key)
    assert scanned(INDEXED, delete).outcome is Outcome.SUCCESS


class WritesMeanwhile(Budget):
    """A budget that writes a row into the range before the second page is asked for."""

    def __init__(self, write: Callable[[], object]) -> None:
        super().__init__()
        self._write = write

    def take(self) -> bool:
        if self.spent == 1:
            self._write()
        return super().take()


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("known_to_move", [True, False])
def test_a_range_that_is_written_meanwhile_says_estimated(
    scanned: Callable[..., Result],
    load: Callable[[KeyDesign], str],
    endpoint: Endpoint,
    share: float,
    known_to_move: bool,
) -> None:
    """A row that comes between two pages makes the count an estimate, announced or noticed."""
    actions = (Action.FULL_TABLE_SCAN, Action.INSERT) if known_to_move else (SCANS[-1],)
    of = workload(TWO_PAGES, *actions, returned_share=share)
    rng = random.Random(1)
    query = next(
        one for one in iter(lambda: first_of(of.next_task(rng)), None) if one.kind is Kind.QUERY
    )
    new: dict[str, Any] = {
        "PartitionKey": TWO_PAGES.partition_key(2),
        "RowKey": "zzz",
        "Number": 0,
        "Group": 0,
    }
    with TableClient(endpoint.url, load(TWO_PAGES), credential=credential_of(endpoint)) as client:
        result = scanned(TWO_PAGES, query, WritesMeanwhile(lambda: client.upsert_entity(new)))
        client.delete_entity(new["PartitionKey"], new["RowKey"])
    there, _ = scan(endpoint, load(TWO_PAGES), query)
    assert there == 2400
    assert result.entities_returned == 2400 * share + 1
    if known_to_move or share == 1.0:
        assert result.estimated
        assert result.entities >= 2400
    else:
        # A filter hides it: that is why a mix that moves rows never promises to stand still.
        assert result.entities == 2400


QUOTED = ("a'", "b'1", "b''2", "c", "c'd")


@pytest.mark.parametrize(
    ("first", "before", "expected"),
    [
        ("a'", "c", 3),
        ("b'1", "b''2", 0),
        ("b''2", "c'd", 3),
        ("b'", None, 4),
        (None, "b'", 1),
        ("c'd", None, 1),
        (None, None, 5),
    ],
)
def test_keys_with_quotes_bound_a_range(
    kind: str,
    endpoint: Endpoint,
    table: str,
    open_to: Callable[..., Any],
    first: str | None,
    before: str | None,
    expected: int,
) -> None:
    """Quotes in the keys that bound a range neither end the filter nor move its bounds."""
    session = open_to(kind, endpoint, table)
    for key in QUOTED:
        write = Operation(kind=Kind.INSERT, partition_key=key, row_key="r'", properties={"A": 1})
        assert session.execute(write).outcome is Outcome.SUCCESS
    query = Operation(
        kind=Kind.QUERY,
        partition_key=WHOLE_TABLE,
        key_range=KeyRange(
            partition_from=first,
            partition_before=before,
            row_from="r'",
            row_before="r''",
            entities=expected,
            exact=True,
        ),
    )
    result = session.execute(query)
    assert scan(endpoint, table, query)[0] == expected
    assert (result.entities, result.estimated) == (expected, False)


def test_a_scan_of_no_table_is_refused_and_counts_nothing(
    kind: str, endpoint: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """A table that is not there is told apart by its ending; nothing was scanned."""
    query = Operation(
        kind=Kind.QUERY,
        partition_key=WHOLE_TABLE,
        table="Missing",
        key_range=KeyRange(entities=9, exact=True),
    )
    result = open_to(kind, endpoint, table).execute(query)
    assert (result.outcome, result.attempts[0].error_code) == (Outcome.REJECTED, "TableNotFound")
    assert (result.entities, result.entities_returned, result.estimated) == (0, 0, True)
