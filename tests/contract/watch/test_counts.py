"""What SDKs counted for themselves is what the record of the watch says, with no difference."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.endpoint.azurite.process import node
from harness.gateway.process import start_gateway
from tests.support.npm_packages import JS_SDK

pytestmark = [pytest.mark.azurite, pytest.mark.long]

PROGRAMS = JS_SDK.folder.with_name("watched")
LIMITS = "[partition]\nentities_per_s = 60.0\nburst_s = 2.0\n"
"""Two transactions of 100 in a row do not pass; everything else does."""
OUTCOMES = {404: "not_found", 409: "conflict", 412: "precondition", 403: "forbidden"}

APPLICATIONS: dict[str, tuple[str, ...]] = {
    "python": (sys.executable, str(PROGRAMS / "python_sdk.py"), "sync"),
    "python-aio": (sys.executable, str(PROGRAMS / "python_sdk.py"), "aio"),
    "javascript": ("node", str(PROGRAMS / "javascript_sdk.cjs")),
    "curl": (sys.executable, str(PROGRAMS / "rest.py")),
}
APPLICATIONS |= {
    f"{name} by account": (*APPLICATIONS[name], "account") for name in ("python", "javascript")
}
REPEATS_ITS_ID = {name: True for name in APPLICATIONS if name != "curl"}
"""Whether an SDK sends a request again with the same ``x-ms-client-request-id``."""


class OwnCounts:
    """The counts of an application, made of its own list of answers."""

    def __init__(self, answers: Iterable[Mapping[str, Any]]) -> None:
        self.requests = 0
        self.others = 0
        self.statuses: Counter[tuple[str, str]] = Counter()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.succeeded_after: Counter[str] = Counter()
        self.unjoined = 0
        self.repeated = 0
        operations: dict[tuple[str, ...], list[int]] = {}
        kinds: dict[tuple[str, ...], str] = {}
        for number, answer in enumerate(answers):
            self.requests += 1
            if not answer["kind"]:
                self.others += 1
                continue
            status = answer["status"]
            self.statuses[f"orders/{answer['partition']}", str(status)] += 1
            key: tuple[str, ...] = (answer["id"], answer["request"])
            if not answer["id"]:
                key = ("", str(number))
                self.unjoined += status == 503
            operations.setdefault(key, []).append(status)
            kinds[key] = answer["kind"]
        for key, statuses in operations.items():
            last = statuses[-1]
            outcome = "success" if last < 300 else OUTCOMES.get(last, "throttled")
            self.outcomes[kinds[key], outcome] += 1
            self.repeated += len(statuses) > 1
            if outcome == "success" and len(statuses) > 1:
                self.succeeded_after[str(len(statuses))] += 1


@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_record_has_the_counts_of_the_application(
    watch: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    """Partitions, statuses, kinds, outcomes and retries are equal; nothing is missing or added.

    Bounds: some fifty requests and a few retries, about fifteen seconds.
    """
    if name.startswith("javascript") and not JS_SDK.installed:
        pytest.skip("the SDK for JavaScript is not installed: run `make dev`")
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("allowed: there is no curl")
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    command = [str(node()) if part == "node" else part for part in APPLICATIONS[name]]
    environ = {"NODE_PATH": str(JS_SDK.modules)}
    options = ["--limits", str(limits)]
    if "account" in command:
        options.append("--proxy")
        # No machine may be reached by the name of an account, and no key leaves the watch.
        environ |= {"AZURE_STORAGE_ACCOUNT": "prodacct", "AZURE_STORAGE_KEY": "c2VjcmV0"}
    watching = watch(*options, "--", *command, **environ)
    assert watching.end() == 0, watching.stderr
    record = watching.record
    own = OwnCounts(json.loads(watching.stdout))

    statuses: Counter[tuple[str, str]] = Counter()
    for partition in record["partitions"]:
        for status, count in partition["attempts_by_status"].items():
            statuses[partition["key"], status.split()[0]] += count
    assert statuses == own.statuses
    outcomes = Counter(
        {
            (operation["kind"], outcome): count
            for operation in record["operations"]
            for outcome, count in operation["outcomes"].items()
        }
    )
    assert outcomes == own.outcomes
    watched = record["watched"]
    assert watched["succeeded_after"] == own.succeeded_after
    assert (watched["requests"], watched["others"]) == (own.requests, own.others)
    assert watched["unjoined"] == own.unjoined
    assert sum(client["requests"] for client in watched["clients"]) == own.requests
    refused = sum(count for (_, status), count in own.statuses.items() if status == "503")
    assert refused >= 2
    assert watched["passed"] == own.requests - refused == record["counts"]["billable_transactions"]
    assert record["counts"]["attempts"] == own.requests - own.others
    if name in REPEATS_ITS_ID:
        assert (own.repeated > 0) is REPEATS_ITS_ID[name]


def test_retries_that_reach_another_process(watch: Callable[..., Any], tmp_path: Path) -> None:
    """The attempts of an operation over several connections are one, whoever gets them.

    Bounds: sixteen operations at eight a second, about five seconds.
    """
    limits = tmp_path / "limits.toml"
    limits.write_text("[partition]\nentities_per_s = 8.0\nburst_s = 0.25\n", encoding="utf-8")
    with start_gateway(upstream="none", limits=limits) as throttling:
        options = ("--processes", "2", "--upstream", throttling.url)
        watching = watch(*options, "--", sys.executable, str(PROGRAMS / "endings.py"), "reconnect")
        assert watching.end() == 0, watching.stderr
    record, attempts = watching.record, json.loads(watching.stdout)
    watched, counts = record["watched"], record["counts"]
    assert max(attempts) > 1
    again = Counter(str(number) for number in attempts if number > 1)
    assert watched["succeeded_after"] == again
    assert counts["due"] == counts["sent"] == counts["operations"] == len(attempts) == 16
    assert counts["attempts"] == watched["passed"] == sum(attempts)
    (partition,) = record["partitions"]
    refused = sum(attempts) - 16
    assert partition["attempts_by_status"] == {"204": 16, "503 ServerBusy partition": refused}
    assert not record["invariants"]
