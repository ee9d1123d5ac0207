"""azure-data-tables as it comes, at the stand-in for Cosmos DB before a real Azurite."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import RequestTooLargeError, TableClient, TableTransactionError, UpdateMode

from harness.endpoint.endpoint import Endpoint
from harness.model.request_units import hundredths
from tests.support.gateways import Gateway, StartGateway, Told
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

LIMITS = "[cosmos]\nprovisioned_ru_per_s = 300.0\nphysical_partitions = 1\n"


class Answers:
    """Keeps what answers say."""

    def __init__(self) -> None:
        self.charges: list[int | None] = []
        self.verbs: list[tuple[str, str | None]] = []
        self.last: Any = None

    def __call__(self, response: Any) -> None:
        self.last = response.http_response
        self.charges.append(hundredths(self.last.headers.get("x-ms-request-charge", "")))
        request = response.http_request
        self.verbs.append((request.method, request.headers.get("X-HTTP-Method")))


@pytest.fixture
def stand_in(gateway_to: StartGateway) -> Gateway:
    return gateway_to(LIMITS)


@pytest.fixture
def answers() -> Answers:
    return Answers()


def client_of(
    gateway: Gateway,
    endpoint: Endpoint,
    table: str,
    credential: AzureNamedKeyCredential | None = None,
) -> TableClient:
    """A client that takes the stand-in for Cosmos DB, by its name, and sends nothing again."""
    url = f"{gateway.url.replace('127.0.0.1', 'localhost')}/{endpoint.account}"
    return TableClient(url, table, credential=credential or named_key(endpoint), retry_total=0)


@pytest.fixture
def table(stand_in: Gateway, endpoint: Endpoint, answers: Answers) -> Iterator[TableClient]:
    """A table of its own, at the name that the SDK takes for Cosmos DB."""
    with client_of(stand_in, endpoint, f"cosmos{uuid.uuid4().hex[:16]}") as client:
        client.create_table(raw_response_hook=answers)
        yield client


def entity(row: str, key: str = "p", **more: Any) -> dict[str, Any]:
    return {"PartitionKey": key, "RowKey": row, "Number": 1, **more}


def test_every_answer_states_its_charge_and_the_sums_are_equal(
    table: TableClient, stand_in: Gateway, answers: Answers
) -> None:
    """Merges go as POST, also in transactions; charges add up to those of the statistics."""
    said: Any = {"raw_response_hook": answers}
    table.create_entity(entity("1"), **said)
    table.upsert_entity(entity("1"), **said)
    table.upsert_entity(entity("2"), mode=UpdateMode.REPLACE, **said)
    table.get_entity("p", "1", **said)
    table.submit_transaction([("upsert", entity("1")), ("create", entity("3"))], **said)
    assert len(list(table.query_entities("PartitionKey eq 'p'", **said))) == 3
    table.delete_entity("p", "1", **said)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "1", **said)
    with pytest.raises(ResourceExistsError):
        table.create_entity(entity("2"), **said)
    assert ("POST", "MERGE") in answers.verbs
    assert "PATCH" not in {verb for verb, _ in answers.verbs}
    # The table costs nothing, an insert 4.95 RU and 0.2 for its property, an update the double.
    assert answers.charges == [0, 515, 1030, 515, 100, 1545, 472, 495, 100, 100]
    page = Told(stand_in).page
    assert page["request_units_hundredths"] == sum(filter(None, answers.charges))
    for rows in (page["counts"], page["physical_partitions"]):
        of_rows = sum(row["request_units_hundredths"] for row in rows)
        assert of_rows == page["request_units_hundredths"]


def test_errors_have_the_form_of_cosmos_db(table: TableClient, answers: Answers) -> None:
    """Errors have the service's code and message, and no header of Storage."""
    table.create_entity(entity("1"))
    with pytest.raises(ResourceExistsError):
        table.create_entity(entity("1"), raw_response_hook=answers)
    error = json.loads(answers.last.body())["odata.error"]
    assert error["code"] == "EntityAlreadyExists"
    assert error["message"]["value"].startswith("The specified entity already exists.\nRequestID:")
    assert "x-ms-error-code" not in answers.last.headers
    assert answers.last.headers["Server"] == "Microsoft-HTTPAPI/2.0"


def test_what_is_over_the_share_is_429_with_a_wait(
    table: TableClient, gateway_to: StartGateway, endpoint: Endpoint, answers: Answers
) -> None:
    """Above the share of a second requests are refused, with the wait and a charge of 0."""
    small = gateway_to("[cosmos]\nprovisioned_ru_per_s = 1.0\n")
    with client_of(small, endpoint, table.table_name) as client:
        begun_s = time.monotonic()
        client.create_entity(entity("1"))
        with pytest.raises(HttpResponseError) as caught:
            client.create_entity(entity("2"), raw_response_hook=answers)
        passed_ms = (time.monotonic() - begun_s) * 1000
    assert caught.value.status_code == 429
    assert json.loads(answers.last.body())["odata.error"]["code"] == "TooManyRequests"
    # A share is a third of 1 RU/s, and the first request cost 5.15 RU.
    wait_ms = int(answers.last.headers["x-ms-retry-after-ms"])
    assert 14_000 - passed_ms < wait_ms <= 15_000
    assert answers.charges[-1] == 0
    assert Told(small).by("rule", "sent", "scope")["throughput", "429", "partition"] == 1


def test_a_refused_part_has_the_form_of_cosmos_db(table: TableClient, answers: Answers) -> None:
    """The error of the part that failed has the service's form too, and the part's number."""
    table.create_entity(entity("1"))
    with pytest.raises(TableTransactionError) as refused:
        table.submit_transaction(
            [("upsert", entity("2")), ("create", entity("1"))], raw_response_hook=answers
        )
    assert refused.value.index == 1
    assert answers.last.status_code == 202
    body = answers.last.body()
    assert b'"1:The specified entity already exists.\\nRequestID:' in body
    assert b"Time:" not in body


def test_a_throttled_transaction_is_a_refused_part(
    table: TableClient, gateway_to: StartGateway, endpoint: Endpoint, answers: Answers
) -> None:
    """The answer is 202 with the wait, and its part says 429, as users saw it."""
    small = gateway_to("[cosmos]\nprovisioned_ru_per_s = 1.0\n")
    with client_of(small, endpoint, table.table_name) as client:
        client.create_entity(entity("1"))
        with pytest.raises(TableTransactionError) as caught:
            client.submit_transaction(
                [("upsert", entity("1")), ("upsert", entity("2"))], raw_response_hook=answers
            )
    assert caught.value.status_code == 429
    assert answers.last.status_code == 202
    assert b"HTTP/1.1 429 Too Many Requests\r\n" in answers.last.body()
    assert int(answers.last.headers["x-ms-retry-after-ms"]) > 1000
    assert answers.charges[-1] == 0
    assert Told(small).by("rule", "sent", "scope")["throughput", "429", "partition"] == 1


def test_a_full_partition_key_is_forbidden_until_something_is_deleted(
    table: TableClient, gateway_to: StartGateway, endpoint: Endpoint, answers: Answers
) -> None:
    """403 with sub-status 1014, of a part in a transaction; reads and deletions go on."""
    small = gateway_to("[cosmos]\nlogical_partition_bytes = 2_000\n")
    told: Any = {"raw_response_hook": answers}
    with client_of(small, endpoint, table.table_name) as client:
        client.create_entity(entity("1", Text="x" * 1500))
        with pytest.raises(HttpResponseError) as caught:
            client.upsert_entity(entity("2", Text="x" * 500), **told)
        assert caught.value.status_code == 403
        assert answers.last.headers["x-ms-substatus"] == "1014"
        error = json.loads(answers.last.body())["odata.error"]
        assert error["code"] == "Forbidden"
        assert error["message"]["value"].startswith(
            "Partition key reached maximum size of 0.000002 GB"
        )
        with pytest.raises(TableTransactionError) as refused:
            client.submit_transaction([("upsert", entity("2", Text="x" * 500))], **told)
        assert refused.value.status_code == 403
        assert answers.last.status_code == 202
        assert b"HTTP/1.1 403 Forbidden\r\n" in answers.last.body()
        client.create_entity(entity("2", key="other", Text="x" * 500))
        assert len(list(client.query_entities("PartitionKey eq 'p'"))) == 1
        client.delete_entity("p", "1")
        client.upsert_entity(entity("2", Text="x" * 500))
    assert Told(small).by("rule", "sent", "scope")["volume", "403", ""] == 2
    largest = Told(small).page["largest_logical_partition"]
    assert 500 < largest["stored_bytes"] < largest["most_bytes"] == 2000


def test_a_wrong_key_is_unauthorized(
    stand_in: Gateway, endpoint: Endpoint, answers: Answers
) -> None:
    """Azurite answers 403 in XML, Cosmos DB 401 in JSON; so do the statistics."""
    wrong = AzureNamedKeyCredential(endpoint.account, "d3Jvbmc=")
    with (
        client_of(stand_in, endpoint, "any", wrong) as client,
        pytest.raises(HttpResponseError) as refused,
    ):
        client.get_entity("p", "1", raw_response_hook=answers)
    assert refused.value.status_code == 401
    assert json.loads(answers.last.body())["odata.error"]["code"] == "Unauthorized"
    assert "x-ms-error-code" not in answers.last.headers
    assert Told(stand_in).by("sent")["401",] == 1


def test_more_than_2_mb_are_refused(table: TableClient, answers: Answers) -> None:
    """A transaction has 2 MB, although the gateway accepts the 4 MiB of Azure Storage."""
    half = {f"s{number}": "x" * 30_000 for number in range(36)}
    with pytest.raises(RequestTooLargeError):
        table.submit_transaction(
            [("upsert", entity("1", **half)), ("upsert", entity("2", **half))],
            raw_response_hook=answers,
        )
    assert answers.last.status_code == 413
    assert json.loads(answers.last.body())["odata.error"]["code"] == "RequestEntityTooLarge"
