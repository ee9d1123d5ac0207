"""What the command of a watch gets, what is said if nothing arrives, and what it leaves running."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import psutil
import pytest

from harness.commands.schema import schema_of
from harness.endpoint.credential import EMULATOR_KEY
from harness.watch.application import Application
from tests.contract.watch.conftest import ROOT

pytestmark = pytest.mark.azurite

PROGRAM = str(ROOT / "tests" / "support" / "watched" / "endings.py")
KEY = "c2VjcmV0" * 10 + "c2VjcmU="
PRODUCTION = {
    "AZURE_STORAGE_ACCOUNT": "prodacct",
    "AZURE_STORAGE_ACCESS_KEY": KEY,
    "ORDERS_STORE": f"DefaultEndpointsProtocol=https;AccountName=prodacct;AccountKey={KEY}",
}
SHOW = "import os; print(sorted((n, v) for n, v in os.environ.items() if 'STOR' in n))"
CREATE = """
import os, sys
from azure.data.tables import TableServiceClient
text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
with TableServiceClient.from_connection_string(text) as service:
    service.create_table("orders")
sys.exit(4)
"""
DAEMON = f"setsid {sys.executable} {PROGRAM} work & exit %d"


def test_no_variable_leads_to_production(watch: Callable[..., Any]) -> None:
    """Accounts and keys do not reach the command; the watch names them, and the way to use them."""
    watching = watch("--keep-env", "OTHER_STORE", "--", sys.executable, "-c", SHOW, **PRODUCTION)
    assert watching.end() == 0, watching.stderr
    said = watching.stderr
    assert "replaced:   ORDERS_STORE, which led to another endpoint (--keep-env NAME)" in said
    assert "removed:    AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_ACCESS_KEY, which led" in said
    assert "prodacct" not in watching.stdout
    assert watching.stdout.count("AccountName=devstoreaccount1") == 2
    assert KEY not in said + watching.stdout
    sentence = watching.record["verdict"]["sentence"]
    assert sentence.startswith("Inconclusive: no request reached the gateway. The command did not")
    assert "get AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_ACCESS_KEY: " in sentence
    assert "use --proxy" in sentence


@pytest.mark.long
def test_a_variable_is_kept(watch: Callable[..., Any]) -> None:
    """The command gets it as it is, and the other ones not."""
    options = ("--keep-env", "AZURE_STORAGE_ACCOUNT", "--keep-env", "AZURE_STORAGE_ACCESS_KEY")
    watching = watch(*options, "--", sys.executable, "-c", SHOW, **PRODUCTION)
    assert watching.end() == 0, watching.stderr
    assert f"('AZURE_STORAGE_ACCESS_KEY', '{KEY}')" in watching.stdout
    assert watching.stdout.count(KEY) == 1
    assert "removed:" not in watching.stderr


@pytest.mark.long
def test_a_proxy_has_no_secret_either(watch: Callable[..., Any]) -> None:
    """The command has its account, and a key that no account of Azure accepts."""
    watching = watch("--proxy", "--", sys.executable, "-c", SHOW, **PRODUCTION)
    assert watching.end() == 0, watching.stderr
    assert "('AZURE_STORAGE_ACCOUNT', 'prodacct')" in watching.stdout
    assert f"('AZURE_STORAGE_ACCESS_KEY', '{EMULATOR_KEY}')" in watching.stdout
    assert KEY not in watching.stdout


def test_only_a_table_was_created(watch: Callable[..., Any]) -> None:
    """The sentence says so, and that the command failed; also as an object, alone on stdout."""
    watching = watch("--json", "--", sys.executable, "-c", f"print('its own'){CREATE}")
    assert watching.end() == 4, watching.stderr
    said = json.loads(watching.stdout)
    jsonschema.validate(said, schema_of("watch"))
    assert (said["exit_code"], said["verdict"]) == (4, "inconclusive")
    assert "its own" in watching.stderr
    record = watching.record
    assert record["watched"]["requests"] == record["watched"]["others"] == 1
    sentence = record["verdict"]["sentence"]
    assert sentence.startswith("Inconclusive: no request about entities reached the gateway. ")
    assert "The command failed (exit code 4): see its own output. Other causes may be" in sentence
    for option in ("--listen 127.0.0.1:10002", "--tls", "--proxy", "--env NAME"):
        assert f"({option})" in sentence


@pytest.mark.long
def test_a_client_that_speaks_https(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """Bytes of TLS at a gateway without it name the option."""
    connect = (
        "import os, ssl, urllib.request\n"
        "url = os.environ['AZURE_TABLES_ENDPOINT'].replace('http:', 'https:')\n"
        "try: urllib.request.urlopen(url, timeout=10)\n"
        "except OSError as error: print(error)\n"
    )
    watching = watch(*upstream, "--", sys.executable, "-c", connect)
    assert watching.end() == 0, watching.stderr
    sentence = watching.record["verdict"]["sentence"]
    assert "1 request could not be read as http" in sentence
    assert sentence.endswith("use --tls.")


def test_what_goes_on_is_told(watch_process: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """A daemon of a session of its own is named before the gateway closes, and is not killed."""
    watching = watch_process(*upstream, "--", "sh", "-c", "setsid sleep 30 & exit 0")
    try:
        assert watching.process.wait(60) == 0
        said = watching.stderr
        assert "the command ended (exit code 0), but 1 process that it started goes on (PID" in said
        assert "the gateway closes now (--wait-for-children waits for them)" in said
    finally:
        for process in watching.look():
            if process.is_running():
                process.kill()
    assert watching.record["watched"]["ended"] == "exit code 0"


@pytest.mark.long
def test_the_watch_waits_for_what_goes_on(
    watch: Callable[..., Any], upstream: tuple[str, str]
) -> None:
    """Every request of a daemon is counted, and the exit code is that of the command."""
    watching = watch(*upstream, "--wait-for-children", "--", "sh", "-c", DAEMON % 5)
    assert watching.end() == 5, watching.stderr
    assert "goes on (PID" in watching.stderr
    assert watching.record["watched"]["requests"] == 21
    assert watching.record["ended_by"] == "the end of the command"


@pytest.mark.long
def test_ctrl_c_ends_the_wait(watch_process: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """The daemon gets the signal, and nothing is left."""
    watching = watch_process(
        *upstream, "--wait-for-children", "--", "sh", "-c", "setsid sleep 300 & exit 0"
    )
    watching.wait_for(lambda: "goes on (PID" in watching.stderr)
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr
    assert watching.record["ended_by"] == "Ctrl-C"


def test_a_connection_past_the_gateway_is_seen() -> None:
    """It is that of the command or of a process below it, at one address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket, time; c = socket.create_connection({('127.0.0.1', port)}); "
        command = ["sh", "-c", '"$@"; :', "sh", sys.executable, "-c", f"{connect}time.sleep(60)"]
        application = Application(command, {"PATH": os.environ["PATH"]}, "mark-of-the-test")
        try:
            with server.accept()[0]:
                assert application.is_connected_to("127.0.0.1", port)
                assert not application.is_connected_to("127.0.0.1", port + 1)
                assert (below := application.children())
        finally:
            application.kill()
        # A process is there for a moment after it was killed.
        assert psutil.wait_procs(below, timeout=10)[1] == []
