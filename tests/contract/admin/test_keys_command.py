"""``harness keys``: the keys of a table that exists, as a field of a profile draws them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint
from harness.profile.settings.keys import FieldSettings
from harness.workload.keys.fields import ValueSet
from tests.support.command import Command
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite


@pytest.fixture
def table(endpoint: Endpoint) -> Iterator[str]:
    """A table with twelve orders of one device, and four of another."""
    assert isinstance(endpoint.credential, SharedKey)
    name = f"keys{uuid.uuid4().hex[:16]}"
    with TableServiceClient(endpoint.url, credential=named_key(endpoint)) as service:
        client = service.create_table(name)
        for device, orders in (("device, a", 12), ("device-b", 4)):
            for order in range(orders):
                row = {"PartitionKey": device, "RowKey": f"{order:03}", "Secret": "not asked for"}
                client.create_entity(row)
        yield name
        service.delete_table(name)


def test_keys_of_a_table_become_a_field(
    endpoint: Endpoint, table: str, tmp_path: Path, command: Command
) -> None:
    """The file has both keys of each entity, and a field draws them as often as they occur."""
    file = tmp_path / "keys.csv"
    command("keys", "--from-table", table, "-H", endpoint.url, "-o", file)
    assert "16 entities of 2 partitions, in 1 request\n" in command.err
    assert file.read_text().splitlines()[:2] == ["PartitionKey,RowKey", '"device, a",000']
    settings = FieldSettings.model_validate({"from": str(file), "column": "PartitionKey"})
    field = settings.made("device")
    assert isinstance(field, ValueSet)
    assert dict(zip(field.values, field.picker().shares(), strict=True)) == {
        "device, a": 0.75,
        "device-b": 0.25,
    }


def test_a_limit_is_kept_and_said(endpoint: Endpoint, table: str, command: Command) -> None:
    """At most N entities are saved, and the command says that the table has more."""
    printed = command("keys", "--from-table", table, "-H", endpoint.url, "--most", "5")
    assert len(printed.splitlines()) == 1 + 5
    assert "5 entities of 1 partition" in command.err
    assert "the table has more, these are the first in key order" in command.err
