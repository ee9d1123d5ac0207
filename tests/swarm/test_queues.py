"""Queue profiles on the embedded Azurite, and on a queue server that is counted independently."""

from __future__ import annotations

import datetime as dt

import gevent
import pytest
from azure.storage.queue import QueueServiceClient

from harness.endpoint.azurite.process import start_azurite
from harness.measure.record.record import RunRecord
from harness.model.operation import Kind
from tests.support.command import Command
from tests.support.locust_process import LocustProcess, Stress
from tests.support.proxy import Proxy
from tests.support.sdk import named_key

pytestmark = [pytest.mark.azurite, pytest.mark.long]

SHORT = (
    *("--headless", "-u", "4", "-t", "5s"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", "load.emulator_max_entities_per_s=60"),
)


def ended(process: LocustProcess) -> RunRecord:
    with gevent.Timeout(120):
        assert process.wait() in (0, 3), process.said
    return process.record


def test_a_run_counts_what_the_service_was_asked(stress: Stress) -> None:
    """Counts equal those of a proxy, the backlog that of the queues; all queues are deleted.

    Bounds: one run of some ten seconds.
    """
    with start_azurite(service="queue") as azurite:
        proxy = Proxy(azurite.endpoint.port)
        try:
            process = stress(
                *SHORT,
                *("--profile", "queue-producer-consumer", "--set", "actions.consume=10"),
                *("-H", f"http://127.0.0.1:{proxy.port}", "--summary", "full"),
            )
            record = ended(process)
        finally:
            proxy.stop()
        endpoint = azurite.endpoint
        with QueueServiceClient(endpoint.url, credential=named_key(endpoint)) as account:
            assert list(account.list_queues()) == []
    assert record.invariants == ()
    asked = [seen for seen in proxy.seen if "/messages" in seen.path]
    by_method = {
        method: sum(seen.method == method for seen in asked) for method in ("POST", "GET", "DELETE")
    }
    counted = {part.type: part.count for part in record.operations}
    assert by_method == {
        "POST": counted[Kind.PUT_MESSAGE],
        "GET": counted[Kind.GET_MESSAGES],
        "DELETE": counted[Kind.DELETE_MESSAGE],
    }
    assert record.counts.attempts == len(asked)
    messages = record.messages
    assert messages is not None
    assert messages.put == by_method["POST"]
    assert messages.deleted == by_method["DELETE"] <= messages.got
    assert messages.backlog > 10
    assert {part.key for part in record.partitions} == {"queue-0", "queue-1"}
    assert sum(part.messages.backlog for part in record.partitions if part.messages) == (
        messages.backlog
    )
    said = " ".join(process.said.split())
    assert "messages/s" in said
    assert f"backlog {messages.backlog:,}" in said


@pytest.mark.parametrize("profile", ["queue-single", "queue-large-messages"])
def test_a_profile_of_queues_is_in_messages(stress: Stress, command: Command, profile: str) -> None:
    """Headless on the embedded Azurite: the report speaks of messages and queues, never entities.

    Bounds: one run of some ten seconds.
    """
    process = stress(*SHORT, "--summary", "full", "--profile", profile)
    record = ended(process)
    assert record.invariants == ()
    assert record.verdict.result == "within_target"
    assert record.account.target is None
    assert {part.target for part in record.partitions} == {2000.0}
    assert {outcome for part in record.operations for outcome in part.outcomes} == {"success"}
    # The names of settings stay.
    assert "entit" not in process.said.replace("max_entities_per_s", "")
    assert "Not cleaned up" not in process.said
    folder = process.folder / "out" / record.run_id
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "messages/s" in summary
    assert "entit" not in summary.replace("max_entities_per_s", "")
    assert "messages/s" in command.words("report", "--text", folder)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--profile", "queue-single", "-H", "https://name.table.core.windows.net"),
            "is an address of Azure Table storage",
        ),
        (
            ("--profile", "key-spread", "-H", "https://name.queue.core.windows.net"),
            "to which only session queue sends",
        ),
        (("--profile", "queue-single", "--throttling", "demo"), "leave --throttling out"),
        (("--profile", "queue-single", "--table", "Mine"), "--table names a table"),
        (("--profile", "queue-single", "--set", "keys.partition_key=Mine"), "lower-case letters"),
        (("--profile", "queue-single", "--set", "entity.size_bytes=70000"), "70,000 bytes"),
        (("--profile", "queue-single", "--session", "wire"), "use session queue"),
        (("--profile", "key-spread", "--session", "queue"), "is not one on messages"),
    ],
)
def test_what_queues_cannot_do_is_refused(
    stress: Stress, arguments: tuple[str, ...], sentence: str
) -> None:
    """Exit code 2, with one sentence that says why; nothing is sent."""
    process = stress("--headless", *arguments)
    with gevent.Timeout(60):
        assert process.wait() == 2, process.said
    assert sentence in " ".join(process.said.split())


def test_leftover_queues_are_swept(command: Command) -> None:
    """The command lists them with --session queue, and deletes the one that is named."""
    name = f"stress{dt.datetime.now(dt.UTC) - dt.timedelta(hours=2):%Y%m%dt%H%M%Sz}0badcafe-orders"
    with start_azurite(service="queue") as azurite:
        endpoint = azurite.endpoint
        with QueueServiceClient(endpoint.url, credential=named_key(endpoint)) as account:
            account.create_queue(name)
            sweep = ("sweep", "-H", endpoint.url, "--session", "queue")
            assert name in command.words(*sweep)
            assert "deleted" in command.words(*sweep, "--delete", name)
            assert list(account.list_queues()) == []
