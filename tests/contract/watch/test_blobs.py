"""An application with tables, queues and blobs of one account: one record, and one report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "support" / "watched" / "account_sdk.py"
pytestmark = pytest.mark.azurite
FAULTS = "[faults]\nerror_500 = 0.03\nerror_503 = 0.04\nreset = 0.03\n"
NO_LIMITS = "[partition]\nentities_per_s = 1e6\n[account]\nentities_per_s = 1e6\n"
NO_LIMITS += "[servers]\nentities_per_s = 1e6\n"


def statuses_of(record: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Attempts of a record by partition and status; 0 for those without one."""
    found: Counter[tuple[str, str]] = Counter()
    for partition in record["partitions"]:
        for answer, count in partition["attempts_by_status"].items():
            status = answer.split()[0]
            found[partition["key"], status if status.isdigit() else "0"] += count
    return found


def test_blobs_are_counted_beside_tables_and_queues(
    watch: Callable[..., Any], tmp_path: Path
) -> None:
    """Partitions, statuses, kinds and entities are those that the application counted, whose
    requests fail now and then.

    Bounds: some hundred and seventy requests and their retries, about ten seconds.
    """
    limits = tmp_path / "limits.toml"
    limits.write_text(NO_LIMITS + FAULTS, encoding="utf-8")
    watching = watch("--limits", str(limits), "--", sys.executable, str(PROGRAM))
    assert watching.end() == 0, watching.stderr
    record, answers = watching.record, json.loads(watching.stdout)
    counted = [answer for answer in answers if answer["kind"]]
    assert statuses_of(record) == Counter((one["partition"], str(one["status"])) for one in counted)
    assert sum(one["status"] in (0, 500, 503) for one in counted) > 5
    # SDKs of queues and blobs give each attempt an id of its own.
    operations = {(one["kind"], one["id"], one["request"]) for one in counted}
    kinds = Counter({one["kind"]: sum(one["outcomes"].values()) for one in record["operations"]})
    assert kinds == Counter(kind for kind, _, _ in operations)
    assert {"insert", "put_message", "put_blob", "get_blob", "append_block", "put_page"} <= {*kinds}
    watched = record["watched"]
    assert watched["requests"] == len(answers)
    assert watched["others"] == len(answers) - len(counted)
    assert not record["invariants"]

    blobs = {
        part["key"]: part for part in record["partitions"] if part["key"].startswith("(blobs)")
    }
    served = Counter(
        one["partition"]
        for one in counted
        if 200 <= one["status"] < 300 or (one["status"] == 404 and one["kind"] == "get_blob")
    )
    assert {key: part["entities"] for key, part in blobs.items()} == {
        key: served[key] for key in blobs
    }
    assert all(part["target"] is None for part in blobs.values())
    # Ninety rows and nine messages, and none of the requests about blobs.
    assert record["counts"]["entities"] == 99
    assert record["endpoint"]["table"] == "orders"
    assert record["heat"] is None or any(
        row["first"].startswith("(blobs)") for row in record["heat"]["ranges"]
    )
    said = " ".join(record["verdict"]["evidence"])
    assert "requests about blobs" in said
    assert "The documents name no target for blobs." in said
    assert "(blobs)/orders/log" in watching.stderr


def test_blobs_of_an_account_and_key_pass_the_proxy(watch: Callable[..., Any]) -> None:
    """Requests are signed anew, checksums hold, and a copy finds its source behind the gateway.

    Bounds: some ten requests, about five seconds.
    """
    key = "a" * 86 + "=="
    program = (
        "import os\n"
        "from azure.storage.blob import BlobServiceClient\n"
        f"text = 'DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={key};'\n"
        "text += 'EndpointSuffix=core.windows.net'\n"
        "said = {'retry_total': 0, 'max_single_put_size': 8 << 20}\n"
        "with BlobServiceClient.from_connection_string(text, **said) as blobs:\n"
        "    container = blobs.create_container('orders')\n"
        "    for name, size in (('ü/日本 %?#', 10), ('x y+z', 0), ('large', 5 << 20)):\n"
        "        blob, content = container.get_blob_client(name), os.urandom(size)\n"
        "        blob.upload_blob(content, validate_content=True)\n"
        "        assert blob.download_blob().readall() == content\n"
        "    copy = container.get_blob_client('copy')\n"
        "    copy.start_copy_from_url(blob.url)\n"
        "    print(copy.get_blob_properties().copy.status)\n"
    )
    watching = watch("--proxy", "--", sys.executable, "-c", program)
    assert watching.end() == 0, watching.stderr
    assert watching.stdout == "success\n"
    keys = {part["key"] for part in watching.record["partitions"]}
    assert keys == {f"(blobs)/orders/{one}" for one in ("ü/日本 %?#", "x y+z", "large", "copy")}
