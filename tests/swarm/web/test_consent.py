"""What the web UI may do with an account that is not this machine's: what was announced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.endpoint.azurite.process import start_azurite
from tests.support.certificates import certificate
from tests.support.http_pages import page
from tests.support.locust_process import WEB, LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.sdk import account_key

pytestmark = pytest.mark.azurite

GOOD = {"user_count": "4", "spawn_rate": "100"}
BUDGET = ("--set", "limits.billable_transactions=2000", "--set", "load.run_time_s=2")
NAME = "0.0.0.0"
"""Leads to this machine, and is not taken for it."""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Options and environment of a run against an account elsewhere, played by Azurite."""
    files = certificate(tmp_path_factory.mktemp("account"), NAME, "127.0.0.1")
    with start_azurite(cert=files.cert, key=files.key) as process:
        account, key = process.endpoint.account, account_key(process.endpoint)
        url = f"https://{NAME}:{process.endpoint.port}/{account}"
        environ = {"AZURE_STORAGE_KEY": key, "SSL_CERT_FILE": str(files.authority)}
        yield ("-H", url, "--remote-ok", account), environ


def opened(stress: Stress, remote: Any, *options: str) -> tuple[LocustProcess, str]:
    arguments, environ = remote
    port = free_port()
    process = stress(*WEB, *arguments, *options, "--web-port", str(port), environ=environ)
    process.until_said("Web UI:")
    return process, f"http://127.0.0.1:{port}"


def swarm(url: str, form: dict[str, str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(page(f"{url}/swarm", **form))
    return content


def test_without_a_budget_no_run_begins_from_the_page(stress: Stress, remote: Any) -> None:
    """It is said at the start, and to the form that is sent all the same."""
    process, url = opened(stress, remote)
    assert "no run can be started from the page" in process.stdout
    for form in (GOOD, {**GOOD, "profile": "key-spread"}):
        answer = swarm(url, form)
        assert not answer["success"]
        assert "no budget of billable transactions" in answer["message"]
        assert "--set limits.billable_transactions=N" in answer["message"]
    process.interrupt()
    assert process.wait() == 0
    assert process.records == []


BEYOND = {
    "another profile": ({**GOOD, "profile": "key-spread"}, "the profile single-partition"),
    "more users": ({**GOOD, "user_count": "5"}, "4 users at most"),
    "a faster start": ({**GOOD, "spawn_rate": "101"}, "100 new users a second at most"),
    "no number": ({**GOOD, "spawn_rate": "nan"}, "100 new users a second at most"),
    "a longer run": ({**GOOD, "run_time": "336h"}, "2 seconds at most"),
}


def test_a_run_from_the_page_stays_within_what_was_announced(stress: Stress, remote: Any) -> None:
    """The form widens neither load nor cost; within them it begins a run that has its budget."""
    process, url = opened(stress, remote, *BUDGET)
    said = process.stdout
    assert "each run from the page is one of single-partition with 4 users at most" in said
    assert "2 s at most, and may make up to 2,000 billable transactions" in said
    for name, (form, sentence) in BEYOND.items():
        answer = swarm(url, form)
        assert not answer["success"], name
        assert sentence in answer["message"]
        assert "restart Locust" in answer["message"]
    assert swarm(url, {**GOOD, "user_count": "2", "run_time": "2s"})["success"]
    wait_until(lambda: "[3/4]" in process.stdout, "the run sends")
    assert "4 users at most" in swarm(url, {**GOOD, "user_count": "5"})["message"]
    wait_until(lambda: "Record: " in process.stdout, "the run ends")
    process.interrupt()
    process.wait()
    assert process.record.profile["limits"]["billable_transactions"] == 2000
    assert process.record.profile["load"]["users"] == 2
