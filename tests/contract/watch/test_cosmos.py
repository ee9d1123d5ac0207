"""Applications with an SDK, unchanged, at the stand-in for Cosmos DB."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.endpoint.azurite.process import node
from tests.support.npm_packages import JS_SDK

pytestmark = pytest.mark.azurite

APPLICATION = """\
import os
from azure.data.tables import TableClient
said = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
with TableClient.from_connection_string(said, "orders", retry_total=5) as table:
    table.create_table()
    for number in range(40):
        table.upsert_entity({"PartitionKey": "all", "RowKey": str(number), "Number": number})
        table.get_entity("all", str(number))
    batch = [("upsert", {"PartitionKey": "b", "RowKey": str(n), "Number": n}) for n in range(5)]
    table.submit_transaction(batch)
    print(len(list(table.query_entities("PartitionKey eq 'all'"))))
"""


def test_its_request_units_and_its_throttling_are_reported(
    watch: Callable[..., Any], tmp_path: Path
) -> None:
    """The SDK takes the endpoint for Cosmos DB; charges, waits and what is provisioned are known.

    Bounds: 290 RU at 100 RU/s, about three seconds.
    """
    limits = tmp_path / "limits.toml"
    limits.write_text("[cosmos]\nprovisioned_ru_per_s = 100.0\nphysical_partitions = 1\n")
    watching = watch("--limits", str(limits), "--", sys.executable, "-c", APPLICATION)
    assert watching.end() == 0, watching.stderr
    assert watching.stdout == "40\n"
    record = watching.record
    assert record["endpoint"]["kind"] == "cosmos-emulator"
    units = record["request_units"]
    # 45 inserts and merges of a new row, 40 looks, and a query that returns 40.
    assert units["total"] == pytest.approx(45 * 5.15 + 40 + 1.72 + 40)
    assert units["target"] == 100
    (hot,) = [part for part in record["partitions"] if part["key"] == "orders/all"]
    assert any(status.startswith("429") for status in hot["attempts_by_status"])
    assert record["invariants"] == []


JAVASCRIPT = """\
const { TableClient } = require("@azure/data-tables");
const { createDefaultHttpClient } = require("@azure/core-rest-pipeline");
const said = process.env.AZURE_STORAGE_CONNECTION_STRING;
const real = createDefaultHttpClient();
const sent = [];
const httpClient = {
  sendRequest(request) {
    const scheme = request.headers.get("authorization").split(" ")[0];
    sent.push(`${request.method} ${request.headers.get("x-http-method") ?? "-"} ${scheme}`);
    return real.sendRequest(request);
  },
};
const options = { allowInsecureConnection: true, httpClient };
const table = TableClient.fromConnectionString(said, "orders", options);
(async () => {
  await table.createTable();
  const entity = (row) => ({ partitionKey: "p", rowKey: row, number: 1 });
  await table.createEntity(entity("1"));
  await table.upsertEntity(entity("2"));
  await table.updateEntity(entity("2"));
  await table.upsertEntity(entity("3"), "Replace");
  await table.submitTransaction([["upsert", entity("4")], ["update", entity("1"), "Merge"]]);
  await table.getEntity("p", "1");
  let found = 0;
  for await (const one of table.listEntities()) found += 1;
  await table.deleteEntity("p", "1");
  console.log(JSON.stringify([found, [...new Set(sent)].sort()]));
})();
"""


def test_an_application_in_javascript_is_served(watch: Callable[..., Any]) -> None:
    """It signs SharedKeyLite, and sends its merges as POST."""
    if not JS_SDK.installed:
        pytest.skip("the SDK for JavaScript is not installed: run `make dev`")
    command = [str(node()), "-e", JAVASCRIPT]
    watching = watch("--limits", "cosmos", "--", *command, NODE_PATH=str(JS_SDK.modules))
    assert watching.end() == 0, watching.stderr
    found, sent = json.loads(watching.stdout)
    assert found == 4
    assert "POST MERGE SharedKeyLite" in sent
    assert not any(one.startswith("PATCH") for one in sent)
    assert all(one.endswith(" SharedKeyLite") for one in sent)
    record = watching.record
    assert record["invariants"] == []
    assert record["request_units"]["total"] > 0
