"""Queue profiles on the embedded Azurite, and on a queue server that is counted independently."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import gevent
import pytest
from azure.storage.queue import QueueServiceClient

from harness.endpoint.azurite.process import start_azurite
from harness.gateway.process import start_gateway
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


def test_a_run_counts_what_the_service_was_asked(stress: Stress, tmp_path: Path) -> None:
    """Counts equal those of a proxy, the backlog that of the queues; all queues are deleted.

    Bounds: one run of some ten seconds.
    """
    stream = tmp_path / "seconds.jsonl"
    with start_azurite(service="queue") as azurite:
        proxy = Proxy(azurite.endpoint.port)
        try:
            process = stress(
                *SHORT,
                *("--profile", "queue-producer-consumer", "--set", "actions.consume=10"),
                *("-H", f"http://127.0.0.1:{proxy.port}", "--summary", "full"),
                *("--stream", str(stream)),
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
    assert record.series[-1].backlog == messages.backlog
    assert max(point.oldest_ms or 0 for point in record.series) == messages.oldest_ms
    seconds = [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]
    assert [(one["t"], one["backlog"], one["oldest_ms"]) for one in seconds] == [
        (point.t, point.backlog, point.oldest_ms) for point in record.series
    ]
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


LOW = """
[partition]
entities_per_s = 30.0
burst_s = 0.5

[account]
entities_per_s = 1000.0

[servers]
count = 4
entities_per_s = 500.0
"""


@pytest.fixture(scope="module")
def throttled(stress: Stress, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LocustProcess]:
    """One queue, and a queue for each area, behind low limits; and one queue at gateways with -H.

    One of these has nothing behind it. Bounds: four runs of some ten seconds at once.
    """
    limits = tmp_path_factory.mktemp("limits") / "low.toml"
    limits.write_text(LOW, encoding="utf-8")
    behind = ("--throttling", str(limits))
    with (
        start_azurite(service="queue") as azurite,
        start_gateway(upstream=f"http://{azurite.endpoint.host}", limits=limits) as gateway,
        start_gateway(upstream="none", limits=limits) as alone,
    ):
        processes = {
            name: stress(*SHORT, "--summary", "full", "--profile", profile, *where)
            for name, profile, where in (
                ("one", "queue-single", behind),
                ("several", "queue-per-function", behind),
                ("elsewhere", "queue-single", ("-H", gateway.url)),
                ("alone", "queue-single", ("-H", alone.url)),
            )
        }
        for process in processes.values():
            with gevent.Timeout(120):
                # On a busy machine the queues for each area are judged by its generator: 3.
                assert process.wait() in (0, 1, 3), process.said
    return processes


@pytest.mark.parametrize("name", ["one", "elsewhere"])
def test_a_queue_throttles_behind_the_gateway(
    throttled: dict[str, LocustProcess], name: str
) -> None:
    """Also of a gateway that somebody else started: its limits and its counts are known."""
    process, record = throttled[name], throttled[name].record
    assert record.endpoint.kind == "queue-gateway"
    assert record.invariants == ()
    assert record.verdict.result == "throttled"
    assert record.verdict.limited_by == "partition"
    assert "'all'" in record.verdict.sentence
    assert record.enforced is not None
    assert record.enforced.partition_per_s == 30.0
    assert record.enforced.refusals.keys() == {"partition"}
    said = " ".join(process.said.split())
    assert "Azurite's queues behind a gateway of the harness" in said
    assert "all counts are equal" in said
    assert "The gateway allows 30.0 messages/s" in said
    assert "entit" not in said.replace("max_entities_per_s", "")


def test_a_gateway_with_nothing_behind_is_not_called_azurite(
    throttled: dict[str, LocustProcess],
) -> None:
    """Its puts are acknowledged, its gets find nothing, and its counts are known."""
    process, record = throttled["alone"], throttled["alone"].record
    assert record.endpoint.kind == "queue-gateway-alone"
    assert record.messages is not None
    assert record.messages.got == 0 < record.messages.put
    said = " ".join(process.said.split())
    assert "Gateway of the harness, with nothing behind it" in said
    assert "Azurite" not in said
    assert "all counts are equal" in said


def test_a_queue_for_each_area_does_not_throttle(throttled: dict[str, LocustProcess]) -> None:
    """The same load over four queues: each stays below the limit that one queue met."""
    record = throttled["several"].record
    assert record.verdict.result != "throttled"
    assert all("503" not in status for status in record.attempts_by_status)
    assert {part.key for part in record.partitions} == {"orders", "payments", "mail", "search"}
    assert "all counts are equal" in throttled["several"].said


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
