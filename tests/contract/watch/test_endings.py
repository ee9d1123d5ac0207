"""Every end of a watch leaves a record that names it, no process, and no traceback."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.contract.watch.conftest import ROOT
from tests.support.command import Command

pytestmark = pytest.mark.azurite

PROGRAM = str(ROOT / "tests" / "support" / "watched" / "endings.py")


def application(thing: str) -> tuple[str, ...]:
    """The command of an application."""
    return "--", sys.executable, PROGRAM, thing


def conserved(record: dict[str, Any]) -> bool:
    """Whether the counts of the record add up."""
    counts = record["counts"]
    return (
        not record["invariants"]
        and counts["due"] == counts["sent"] == counts["operations"] + counts["in_flight"]
        and counts["attempts_in_flight"] == 0
        and sum(record["attempts_by_status"].values()) == counts["attempts"]
    )


@pytest.mark.parametrize(("thing", "condition"), [("fail", ""), ("work", "throttled_ratio < 1%")])
def test_the_end_of_the_command(
    watch: Callable[..., Any], upstream: tuple[str, str], thing: str, condition: str
) -> None:
    """The exit code is the command's own; with a condition, a watch of a second is too short."""
    conditions = ("--condition", condition) if condition else ()
    watching = watch(*upstream, *conditions, *application(thing))
    assert watching.end() == 3, watching.stderr
    record = watching.record
    assert record["ended_by"] == "the end of the command"
    assert record["watched"]["ended"] == ("exit code 3" if thing == "fail" else "exit code 0")
    assert record["watched"]["requests"] == 21
    assert record["partitions"][0]["attempts_by_status"] == {"204": 20}
    assert conserved(record)


@pytest.mark.long
def test_a_gateway_with_tls(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """A gateway that listens with TLS counts the same."""
    watching = watch(*upstream, "--tls", *application("work"))
    assert watching.end() == 0, watching.stderr
    record = watching.record
    assert record["watched"]["requests"] == 21
    assert record["complete"]
    assert conserved(record)


@pytest.mark.long
def test_a_failed_condition_is_1(
    watch: Callable[..., Any], upstream: tuple[str, str], tmp_path: Path
) -> None:
    """After five seconds conditions decide. Bounds: eight seconds of throttled load, about 15 s."""
    limits = tmp_path / "limits.toml"
    limits.write_text("[partition]\nentities_per_s = 5.0\n", encoding="utf-8")
    holds, fails = (("--condition", f"throttled_ratio < {limit}%") for limit in (100, 1))
    options = ("--duration", "8s", "--limits", str(limits), *holds, *fails)
    watching = watch(*upstream, *options, *application("persist"))
    assert watching.end() == 1, watching.stderr
    assert [condition["passed"] for condition in watching.record["conditions"]] == [True, False]
    assert watching.record["throttled_ratio"] > 0.1


@pytest.mark.long
def test_kill_of_the_command(watch_process: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """After kill -9 of the application the record has all of its answers, and the code is 137."""
    watching = watch_process(*upstream, *application("write"))
    watching.said("ready")
    watching.child("endings.py").send_signal(signal.SIGKILL)
    assert watching.end() == 137
    record = watching.record
    assert record["ended_by"] == "the end of the command"
    assert record["watched"]["ended"] == "SIGKILL"
    assert record["counts"]["operations"] >= 4
    assert conserved(record)


@pytest.mark.long
def test_a_killed_command_leaves_no_child(
    watch_process: Callable[..., Any], upstream: tuple[str, str]
) -> None:
    """What a shell started in the background ends with it, if a signal ended the shell."""
    watching = watch_process(*upstream, "--", "sh", "-c", "sleep 600 & echo ready; wait")
    watching.said("ready")
    watching.child("sleep 600 & echo").send_signal(signal.SIGKILL)
    assert watching.end() == 137


@pytest.mark.long
def test_ctrl_c_in_a_terminal_leaves_no_child(
    watch_process: Callable[..., Any], upstream: tuple[str, str]
) -> None:
    """A background process that ignores Ctrl-C ends with the watch, as it does elsewhere."""
    master, slave = os.openpty()
    try:
        watching = watch_process(
            *upstream, "--", "sh", "-c", "sleep 600 & echo ready; wait", stdin=slave
        )
        watching.said("ready")
        assert watching.child("sleep 600").status() != psutil.STATUS_ZOMBIE
        # Processes are looked for once a second.
        time.sleep(1.5)
        # What a terminal does: the command is in the process group of the watch.
        os.killpg(watching.process.pid, signal.SIGINT)
        assert watching.end() == 0, watching.stderr
    finally:
        os.close(master)
        os.close(slave)
    assert watching.record["ended_by"] == "Ctrl-C"


@pytest.mark.long
@pytest.mark.parametrize("part", ["azurite", "harness.watch.metering"])
def test_kill_of_a_part(
    watch_process: Callable[..., Any], upstream: tuple[str, str], part: str
) -> None:
    """After kill -9 of Azurite or of the gateway, the record says so and is incomplete."""
    watching = watch_process(*(() if part == "azurite" else upstream), *application("persist"))
    watching.said("ready")
    watching.child(part).send_signal(signal.SIGKILL)
    assert watching.end() == 3
    record = watching.record
    ends = {"azurite": "the end of the embedded Azurite"}
    assert record["ended_by"] == ends.get(part, "the loss of a gateway process")
    assert record["watched"]["ended"] in ("SIGTERM", "exit code 0")
    assert record["complete"] is False
    assert record["counts"]["due"] == record["counts"]["sent"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("thing", "number", "ended_by"),
    [("idle", signal.SIGINT, "Ctrl-C"), ("write", signal.SIGTERM, "SIGTERM")],
)
def test_a_signal(
    watch_process: Callable[..., Any],
    upstream: tuple[str, str],
    thing: str,
    number: signal.Signals,
    ended_by: str,
) -> None:
    """A signal before the first request, or in the middle, ends the application, then the watch."""
    watching = watch_process(*upstream, *application(thing))
    watching.said("ready")
    watching.process.send_signal(number)
    assert watching.end() == 0, watching.stderr
    record = watching.record
    assert record["ended_by"] == ended_by
    ended = {signal.SIGINT: "exit code 0", signal.SIGTERM: "SIGTERM"}
    assert record["watched"]["ended"] == ended[number]
    assert (record["counts"]["operations"] > 0) is (thing == "write")
    assert conserved(record)


@pytest.mark.long
def test_a_signal_without_a_command(
    watch_process: Callable[..., Any], upstream: tuple[str, str]
) -> None:
    """Without a command the watch goes on until Ctrl-C."""
    watching = watch_process(*upstream)
    watching.wait_for(lambda: "Ctrl-C ends the watch." in watching.stderr)
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr
    record = watching.record
    assert (record["ended_by"], record["watched"]["command"]) == ("Ctrl-C", "")


@pytest.mark.long
def test_a_second_ctrl_c_kills(
    watch_process: Callable[..., Any], upstream: tuple[str, str]
) -> None:
    """An application that ignores Ctrl-C is killed by the second one."""
    watching = watch_process(*upstream, *application("ignore"))
    watching.said("ready")
    watching.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert watching.process.poll() is None
    began_s = time.monotonic()
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr
    assert time.monotonic() - began_s < 9.0
    record = watching.record
    assert (record["ended_by"], record["watched"]["ended"]) == ("Ctrl-C", "SIGKILL")
    assert conserved(record)


@pytest.mark.long
def test_the_duration(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """The watch ends in time, and ends the command."""
    watching = watch(*upstream, "--duration", "2s", *application("write"))
    assert watching.end() == 0, watching.stderr
    record = watching.record
    assert (record["ended_by"], record["watched"]["ended"]) == ("--duration", "SIGTERM")
    assert conserved(record)


def test_the_budget(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """Requests over the budget get 403, and are not passed on."""
    # An application that ends by itself may end the watch before the budget does.
    watching = watch(*upstream, "--billable-transactions", "10", *application("persist"))
    assert watching.end() == 0, watching.stderr
    record = watching.record
    watched = record["watched"]
    assert record["ended_by"] == "budget of billable transactions"
    assert watched["passed"] == 10 == record["counts"]["billable_transactions"]
    assert watched["over_budget"] == watched["requests"] - 10 > 0
    # The first request creates the table.
    assert record["attempts_by_status"] == {"204": 9}
    assert conserved(record)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--", "/no/such/program"), "/no/such/program cannot be started"),
        (("--", str(ROOT)), "cannot be started"),
        (("--page-port", "1", "--listen", "192.0.2.1:0", "--", "true"), "192.0.2.1"),
    ],
)
def test_what_cannot_be_started(
    watch: Callable[..., Any], upstream: tuple[str, str], arguments: tuple[str, ...], reason: str
) -> None:
    """A command that cannot be started, or a gateway that cannot listen, is one sentence and 2."""
    watching = watch(*upstream, *arguments)
    assert watching.end() == 2
    assert reason in watching.stderr
    assert not list(watching.out.glob("*/run.json"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--listen", "nowhere"), "--listen"),
        (("--limits", "nothing"), "limits"),
        (("--condition", "nonsense"), "--condition"),
        (("--upstream", "https://x.table.core.windows.net"), "--remote-ok"),
    ],
)
def test_bad_input_is_refused(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    """One sentence and 2, before anything starts."""
    assert reason in command.refused("watch", "--out", tmp_path, *arguments, "--", "true")
    assert list(tmp_path.iterdir()) == []
