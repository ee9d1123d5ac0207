"""The same log through a table and through blobs, against Azurite's table and blob servers."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.data.tables import TableClient

from harness.endpoint.admin.stores import create_store, delete_store, require_library
from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.sessions.blob import container_client
from harness.model.errors import SetupError
from harness.model.operation import KeyRange, Kind, Operation
from harness.model.outcome import Outcome
from harness.workload.budget import Budget
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import Uniform
from harness.workload.retry import ScheduledBackoff
from harness.workload.scenarios.scenario import Setting
from harness.workload.scenarios.time_series import READ_SHARE, Log, LogHashPrefix
from tests.contract.conftest import ScriptedService
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

ROWS = 150
CREATED = b'HTTP/1.1 201 Created\r\nETag: "1"\r\nContent-Length: 0\r\n\r\n'


@pytest.fixture(scope="module")
def blobs() -> Iterator[Endpoint]:
    with start_azurite(service="blob") as azurite:
        yield azurite.endpoint


def log(kind: type[Log] = Log) -> Log:
    entities = EntityFactory(300, "run-1")
    return kind(Setting(partitions=3, rows=ROWS, picker=Uniform(3), entities=entities))


def operations(scenario: Log) -> Iterator[Operation]:
    rng = random.Random(7)
    yield from scenario.loading()
    for _ in range(40):
        task = scenario.next_task(rng)
        assert isinstance(task, Operation)
        yield task


def stored_lines(endpoint: Endpoint, table: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of each blob, listed and read without the session."""
    with container_client(endpoint, table) as container:
        return {
            name: [
                json.loads(line) for line in container.download_blob(name).readall().splitlines()
            ]
            for name in container.list_blob_names()
        }


def test_a_log_has_the_same_lines_in_both(
    endpoint: Endpoint, blobs: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """What both sessions counted is equal, and equal to what the table and the blobs hold."""
    create_store(blobs, table, Budget())
    budget = Budget()
    rows = open_to("sdk", endpoint, table)
    lines = open_to("blob", blobs, table, budget=budget)
    read = -(-ROWS // READ_SHARE)
    attempts = written = reads = 0
    for one, other in zip(operations(log()), operations(log()), strict=True):
        row, line = rows.execute(one), lines.execute(other)
        assert line.outcome is Outcome.SUCCESS, line.attempts
        assert (row.entities, row.entities_returned) == (line.entities, line.entities_returned)
        if one.kind is Kind.QUERY:
            reads += 1
            assert row.entities_returned == read
            assert not line.estimated
            # The first one learns the length of a line.
            assert len(line.attempts) == (2 if reads == 1 else 1)
            assert [of["RowKey"] for of in row.value] == [of["RowKey"] for of in line.value]
        else:
            written += line.entities
        attempts += len(line.attempts)
    with TableClient(endpoint.url, table, credential=named_key(endpoint)) as client:
        entities = {(one["PartitionKey"], one["RowKey"]) for one in client.list_entities()}
    stored = stored_lines(blobs, table)
    assert len(entities) == written
    assert sorted(entities) == sorted(
        (name, line["RowKey"]) for name, of in stored.items() for line in of
    )
    assert budget.spent == attempts
    delete_store(blobs, table, Budget())
    delete_store(blobs, table, Budget())


def line_of(number: int, text: str = "x" * 60_000) -> Operation:
    return Operation(
        kind=Kind.INSERT,
        partition_key="p",
        row_key=f"{number:03d}",
        properties={"Text": text},
    )


def range_of(first: int, end: int) -> Operation:
    keys = KeyRange(
        row_from=f"{first:03d}",
        row_before=f"{end:03d}",
        entities=end - first,
        preceding=first,
        exact=True,
    )
    return Operation(kind=Kind.QUERY, partition_key="p", key_range=keys)


def test_a_prefix_of_three_digits(blobs: Endpoint, table: str, open_to: Callable[..., Any]) -> None:
    """The names of blobs begin with three digits of a hash, and then the date."""
    create_store(blobs, table, Budget())
    session = open_to("blob", blobs, table)
    for operation in log(LogHashPrefix).loading():
        assert session.execute(operation).outcome is Outcome.SUCCESS
    names = list(stored_lines(blobs, table))
    assert {name.partition("-")[2] for name in names} == {
        f"2024-01-01-00-{minute:02d}-00" for minute in (0, 10, 20)
    }
    assert all(len(prefix := name.partition("-")[0]) == 3 and prefix.isdigit() for name in names)


def test_a_large_blob_is_read_by_several_requests(
    blobs: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """Lines that the end of a request cuts are read whole, once."""
    create_store(blobs, table, Budget())
    session = open_to("blob", blobs, table)
    for number in range(150):
        assert session.execute(line_of(number)).outcome is Outcome.SUCCESS
    read = session.execute(Operation(kind=Kind.QUERY, partition_key="p"))
    assert len(read.attempts) == 3
    assert [line["RowKey"] for line in read.value] == [f"{number:03d}" for number in range(150)]
    some = session.execute(range_of(20, 140))
    assert (some.outcome, some.estimated, some.entities) == (Outcome.SUCCESS, False, 120)
    assert len(some.attempts) == 3
    assert [line["RowKey"] for line in some.value] == [f"{number:03d}" for number in range(20, 140)]
    assert some.bytes_received < 0.85 * read.bytes_received


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["aa", "aa", "b", "aa", "aa"], "the lines of this blob have other lengths"),
        (["aa", "aa", "aa"], "or are fewer"),
        (["a" * 70_000], "no line ends in the first 65,536 bytes"),
    ],
)
def test_lines_that_are_not_where_they_should_be_are_not_taken_for_others(
    blobs: Endpoint, table: str, open_to: Callable[..., Any], lines: list[str], said: str
) -> None:
    """A range that cannot be read as bytes is an unexpected answer, which says why."""
    create_store(blobs, table, Budget())
    session = open_to("blob", blobs, table)
    for number, text in enumerate(lines):
        assert session.execute(line_of(number, text)).outcome is Outcome.SUCCESS
    read = session.execute(range_of(1, 4))
    assert read.outcome is Outcome.UNEXPECTED
    assert said in read.attempts[-1].message


def test_lines_in_another_order_are_not_taken_for_the_range(
    blobs: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """Lines have the right length, and come from another place of the log."""
    create_store(blobs, table, Budget())
    session = open_to("blob", blobs, table)
    for number in (0, 3, 2, 1):
        assert session.execute(line_of(number, "a")).outcome is Outcome.SUCCESS
    read = session.execute(range_of(1, 3))
    assert read.outcome is Outcome.UNEXPECTED
    assert "line '003' of the blob is not in the range" in read.attempts[-1].message


def test_a_lost_append_is_not_repeated(
    service: ScriptedService, open_to: Callable[..., Any]
) -> None:
    """A retry could write its lines twice, so it is ambiguous; a refused append is retried."""
    service.script = [
        CREATED,
        service.reset,
        service.answer(503, "ServerBusy"),
        CREATED,
    ]
    retry = ScheduledBackoff(delays_s=(0.01, 0.01))
    session = open_to("blob", service.endpoint, retry=retry)
    insert = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
    lost = session.execute(insert)
    assert (lost.outcome, [one.status for one in lost.attempts]) == (Outcome.AMBIGUOUS, [201, 0])
    refused = session.execute(insert)
    assert [one.status for one in refused.attempts] == [503, 201]
    assert refused.outcome is Outcome.SUCCESS
    assert len(service.requests) == 4


def test_a_missing_library_is_named(blobs: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says what to install."""
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    with pytest.raises(SetupError, match=r"session blob needs .*pip install azure-storage-blob"):
        require_library(blobs)


def test_a_blob_that_exists_is_appended_to(
    service: ScriptedService, open_to: Callable[..., Any]
) -> None:
    """The answer that another process created the blob is an attempt, and no failure."""
    service.script = [service.answer(409, "BlobAlreadyExists"), CREATED]
    result = open_to("blob", service.endpoint).execute(
        Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
    )
    assert (result.outcome, result.entities) == (Outcome.SUCCESS, 1)
    assert [one.status for one in result.attempts] == [409, 201]
