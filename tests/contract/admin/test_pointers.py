"""Index tables after a run: what names a row that is not there, and what is named by none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.accounts import Accounts
from harness.endpoint.admin.tables import follow
from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint
from harness.measure.record.findings import PointersPart
from harness.model.errors import SetupError
from harness.workload.budget import Budgets, BudgetSpent
from harness.workload.scenarios.scenario import Pointers
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

POINTERS = Pointers(table="Index")
Keys = list[tuple[str, str]]
Fill = Callable[[str, Keys], None]


@pytest.fixture
def service(endpoint: Endpoint) -> Iterator[TableServiceClient]:
    """The account, through azure-data-tables as it comes."""
    assert isinstance(endpoint.credential, SharedKey)
    credential = named_key(endpoint)
    with TableServiceClient(endpoint.url, credential=credential) as client:
        yield client


@pytest.fixture
def base(service: TableServiceClient) -> Iterator[str]:
    """Name of a table that is empty, as is the one with the ending Index."""
    name = f"pointers{uuid.uuid4().hex[:16]}"
    for ending in ("", "Index"):
        service.create_table(name + ending)
    yield name
    for ending in ("", "Index"):
        service.delete_table(name + ending)


@pytest.fixture
def add_posts(service: TableServiceClient, base: str) -> Callable[[Keys], None]:
    """Writes posts with these keys."""

    def add(keys: Keys) -> None:
        write(service, base, [{"PartitionKey": key, "RowKey": row} for key, row in keys])

    return add


@pytest.fixture
def add_index(service: TableServiceClient, base: str) -> Callable[[Keys], None]:
    """Writes index rows, each with keys of its own, that name these."""

    def add(keys: Keys) -> None:
        rows = [
            {
                "PartitionKey": "by-tag",
                "RowKey": f"{number:05d}",
                "TargetPartition": key,
                "TargetRow": row,
                "Title": "not asked for",
            }
            for number, (key, row) in enumerate(keys)
        ]
        write(service, f"{base}Index", rows)

    return add


def write(service: TableServiceClient, table: str, rows: list[dict[str, str]]) -> None:
    """Insert in transactions, as far as neighbours share a partition."""
    client = service.get_table_client(table)
    while rows:
        of_one = [row for row in rows[:100] if row["PartitionKey"] == rows[0]["PartitionKey"]]
        client.submit_transaction([("create", row) for row in of_one])
        rows = [row for row in rows if row not in of_one]


def found(rows: int, dangling: int, unnamed: int) -> PointersPart:
    return PointersPart(table="Index", to="", rows=rows, dangling=dangling, unnamed=unnamed)


THREE = [("2024-01", "a"), ("2024-01", "b"), ("2024-02", "a")]


@pytest.mark.parametrize(
    ("posts", "index", "expected"),
    [
        # Every post has index rows, some have two: nothing dangles, nothing is unnamed.
        (THREE, [*THREE, THREE[0]], found(4, 0, 0)),
        # Index rows without their post dangle, each of them; a post without index row is unnamed.
        (
            [("m", "there"), ("m", "forgotten"), ("n", "there")],
            [("m", "there"), ("m", "gone"), ("m", "gone"), ("x", "there"), ("n", "there")],
            found(5, 3, 1),
        ),
        # Where one key ends and the other begins is not lost; quotes and empty keys are keys.
        (
            [("ab", "c"), ("it's", ""), ("", "x")],
            [("a", "bc"), ("it's", ""), ("", "x")],
            found(3, 1, 1),
        ),
        ([], [], found(0, 0, 0)),
        ([("m", "a"), ("m", "b")], [], found(0, 0, 2)),
    ],
    ids=["in step", "not in step", "two keys", "empty", "no index"],
)
def test_what_does_not_fit_together_is_counted(
    endpoint: Endpoint,
    base: str,
    add_posts: Callable[[Keys], None],
    add_index: Callable[[Keys], None],
    posts: Keys,
    index: Keys,
    expected: PointersPart,
) -> None:
    """Rows of the index are held against those that they name, and the other way round."""
    add_posts(posts)
    add_index(index)
    assert follow(Accounts((endpoint,)), base, POINTERS) == expected


def test_rows_that_name_nothing_dangle(
    endpoint: Endpoint, base: str, service: TableServiceClient
) -> None:
    """An index row without the properties names no row."""
    write(service, f"{base}Index", [{"PartitionKey": "p", "RowKey": "r", "TargetRow": "x"}])
    assert follow(Accounts((endpoint,)), base, POINTERS) == found(1, 1, 0)


def test_other_properties_and_tables_can_be_named(
    endpoint: Endpoint, base: str, service: TableServiceClient
) -> None:
    """Which table points to which, and in which properties, is the scenario's to say."""
    write(service, base, [{"PartitionKey": "p", "RowKey": "r", "Day": "d", "Id": "7"}])
    write(service, f"{base}Index", [{"PartitionKey": "d", "RowKey": "7"}])
    pointers = Pointers(table="", to="Index", partition="Day", row="Id")
    part = follow(Accounts((endpoint,)), base, pointers)
    assert part == PointersPart(table="", to="Index", rows=1, dangling=0, unnamed=0)


def test_every_page_is_followed_and_taken_from_the_budget(
    endpoint: Endpoint,
    base: str,
    add_posts: Callable[[Keys], None],
    add_index: Callable[[Keys], None],
) -> None:
    """Over 1,000 rows come in pages: each is a request, and none is left out."""
    add_posts([("m", f"{number:05d}") for number in range(1200)])
    add_index([("m", f"{number:05d}") for number in range(100, 2200)])
    budgets = Budgets()
    assert follow(Accounts((endpoint,)), base, POINTERS, budgets) == found(2100, 1000, 100)
    assert budgets.spent == (2 + 3,)


@pytest.mark.parametrize("requests", [0, 1, 2])
def test_the_budget_ends_it(
    endpoint: Endpoint,
    base: str,
    add_posts: Callable[[Keys], None],
    add_index: Callable[[Keys], None],
    requests: int,
) -> None:
    """Half a listing would accuse rows that are there: without budget there is no figure."""
    add_posts([("m", "a")])
    add_index([("m", f"{number:05d}") for number in range(1100)])
    budgets = Budgets([requests])
    with pytest.raises(BudgetSpent):
        follow(Accounts((endpoint,)), base, POINTERS, budgets)
    assert budgets.spent == (requests,)


@pytest.mark.parametrize("missing", ["", "Index"])
def test_a_missing_table_is_a_sentence(
    endpoint: Endpoint, service: TableServiceClient, missing: str
) -> None:
    """Either table may be gone; the sentence names it."""
    base = f"pointers{uuid.uuid4().hex[:16]}"
    other = {"": "Index", "Index": ""}[missing]
    service.create_table(base + other)
    try:
        with pytest.raises(SetupError, match=rf"the table {base}{missing} cannot be listed: \w"):
            follow(Accounts((endpoint,)), base, POINTERS)
    finally:
        service.delete_table(base + other)


@pytest.mark.parametrize("at_most", [3, 2])
def test_too_many_rows_are_a_sentence(
    endpoint: Endpoint,
    base: str,
    add_posts: Callable[[Keys], None],
    add_index: Callable[[Keys], None],
    at_most: int,
) -> None:
    """A table that would take longer than the run is not followed; the bound is in the sentence."""
    add_posts([("m", "a"), ("m", "b")])
    add_index([("m", "a"), ("m", "b"), ("m", "c")])
    if at_most == 3:
        assert follow(Accounts((endpoint,)), base, POINTERS, most_rows=3) == found(3, 1, 0)
    else:
        with pytest.raises(SetupError, match=rf"the table {base}Index has more than 2 rows"):
            follow(Accounts((endpoint,)), base, POINTERS, most_rows=2)
