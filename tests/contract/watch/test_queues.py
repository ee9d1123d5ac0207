"""An application with tables and queues: both are in one record, and in one report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "support" / "watched" / "queue_sdk.py"
pytestmark = pytest.mark.azurite
LIMITS = "[partition]\nentities_per_s = 5.0\nburst_s = 1.2\n"
"""Six entities in a row pass, and no more messages of a queue."""


def test_queues_are_counted_beside_tables(watch: Callable[..., Any], tmp_path: Path) -> None:
    """Partitions, statuses, kinds and messages are those that the application counted.

    The SDK of queues has a new id for each attempt, so that its retries are operations too.

    Bounds: some fifty requests and a few retries, about ten seconds.
    """
    limits, trace = tmp_path / "limits.toml", tmp_path / "trace"
    limits.write_text(LIMITS, encoding="utf-8")
    options = ("--limits", str(limits), "--trace", str(trace))
    watching = watch(*options, "--", sys.executable, str(PROGRAM))
    assert watching.end() == 0, watching.stderr
    record, answers = watching.record, json.loads(watching.stdout)
    counted = [answer for answer in answers if answer["kind"]]

    statuses: Counter[tuple[str, str]] = Counter()
    for partition in record["partitions"]:
        for status, count in partition["attempts_by_status"].items():
            statuses[partition["key"], status.split()[0]] += count
    assert statuses == Counter((one["partition"], str(one["status"])) for one in counted)
    refused = [one for one in counted if one["status"] == 503]
    assert refused
    assert all(one["partition"].startswith("(queues)/") for one in refused)

    operations = {(one["kind"], one["id"], one["request"]) for one in counted}
    kinds = Counter({one["kind"]: sum(one["outcomes"].values()) for one in record["operations"]})
    assert kinds == Counter(kind for kind, _, _ in operations)
    assert set(kinds) == {
        *("put_message", "peek_messages", "get_messages", "update_message", "delete_message"),
        "insert",
    }
    watched = record["watched"]
    assert watched["requests"] == len(answers)
    assert watched["others"] == len(answers) - len(counted)
    assert not watched["succeeded_after"]

    entities = {one["key"]: one["entities"] for one in record["partitions"]}
    for name in ("orders", "bills"):
        own = [one for one in counted if one["partition"] == f"(queues)/{name}"]
        changed = sum(one["status"] == 204 for one in own)
        assert entities[f"(queues)/{name}"] == changed + sum(one["messages"] for one in own)
        assert entities[f"orders/{name}"] == 6
    assert not record["invariants"]
    assert record["endpoint"]["table"] == "orders"
    assert "queues" in watching.stderr
    assert "(queues)/orders" in watching.stderr


def test_an_application_without_the_connection_string_finds_the_queues(
    watch: Callable[..., Any],
) -> None:
    """Their address is in a variable of its own, and in place of one that leads elsewhere."""
    names = ("AZURE_STORAGE_QUEUE_ENDPOINT", "JOBS_URL", "TABLES_URL", "BLOBS_URL")
    program = f"import json, os; print(json.dumps([os.environ[name] for name in {names}]))"
    watching = watch(
        *("--", sys.executable, "-c", program),
        JOBS_URL="https://acme.queue.core.windows.net",
        TABLES_URL="https://acme.table.core.windows.net",
        BLOBS_URL="https://acme.blob.core.windows.net",
    )
    assert watching.end() == 0, watching.stderr
    queues, jobs, tables, blobs = json.loads(watching.stdout)
    assert jobs == queues
    assert len({queues, tables, blobs}) == 3
    assert all(url.startswith("http://127.0.0.1:") for url in (queues, tables, blobs))
