"""What runs on blobs and on queues refuse before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import gevent
import pytest

from harness.gateway.process import start_gateway
from tests.support.locust_process import Stress
from tests.support.production_hosts import ACCOUNT, BLOB_HOST

pytestmark = [pytest.mark.azurite, pytest.mark.long]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--profile", "log-in-blobs", "-H", "https://name.table.core.windows.net"),
            "name.table.core.windows.net is an address of Azure Table storage; a blob service",
        ),
        (
            ("--profile", "log-in-tables", "-H", f"https://{BLOB_HOST}", "--remote-ok", ACCOUNT),
            "to which only session blob sends; a table service looks like https://ACCOUNT.table",
        ),
        (
            ("--profile", "log-in-blobs", "-H", f"https://{BLOB_HOST}"),
            f"the environment has no credential for {ACCOUNT}",
        ),
        (("--profile", "log-in-blobs", "--throttling", "demo"), "leave --throttling out"),
        (("--profile", "log-in-blobs", "--table", "Mine"), "--table names a table"),
        (
            ("--profile", "log-in-blobs", "--set", "entity.compress=true"),
            "entity.compress makes lines of different lengths",
        ),
        (
            ("--profile", "key-spread", "--session", "blob"),
            "key-spread cannot use session blob: the operation",
        ),
        (
            ("--profile", "queue-single", "-H", "https://name.table.core.windows.net"),
            "is an address of Azure Table storage",
        ),
        (
            ("--profile", "key-spread", "-H", "https://name.queue.core.windows.net"),
            "to which only session queue sends",
        ),
        (
            ("--profile", "queue-single", "--throttling", "cosmos"),
            "the limits cosmos are not for a queue service",
        ),
        (("--profile", "queue-single", "--set", "keys.partition_key=Mine"), "lower-case letters"),
        (("--profile", "queue-single", "--set", "entity.size_bytes=70000"), "70,000 bytes"),
        (("--profile", "queue-single", "--session", "wire"), "use session queue"),
        (("--profile", "key-spread", "--session", "queue"), "is not one on messages"),
    ],
)
def test_what_a_service_without_tables_cannot_do_is_refused(
    stress: Stress, arguments: tuple[str, ...], sentence: str
) -> None:
    """Exit code 2, with one sentence that says why; nothing is sent."""
    process = stress("--headless", *arguments)
    with gevent.Timeout(60):
        assert process.wait() == 2, process.said
    assert sentence in " ".join(process.said.split())


def test_an_audit_is_refused_where_nothing_keeps_writes(stress: Stress, tmp_path: Path) -> None:
    """A gateway without an endpoint acknowledges writes only, and is sent none."""
    limits = tmp_path / "limits.toml"
    limits.write_text("[partition]\nentities_per_s = 1000.0\n", encoding="utf-8")
    with start_gateway(upstream="none", limits=limits) as gateway:
        arguments = ("--profile", "single-partition", "--set", "audit.enabled=true")
        process = stress("--headless", *arguments, "-H", gateway.url)
        with gevent.Timeout(60):
            assert process.wait() == 2, process.said
        counts = json.loads(gateway.counters())["counts"]
    # The probe.
    assert [row["partition"] for row in counts] == [None]
    assert "the endpoint keeps no writes" in " ".join(process.said.split())
    assert "[2/4]" not in process.said
