"""No output of a watch holds a secret of the application, nor a key that is to be redacted."""

from __future__ import annotations

import signal
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.endpoint.credential import EMULATOR_KEY
from tests.contract.watch.conftest import ROOT
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

PROGRAM = str(ROOT / "tests" / "support" / "watched" / "signing.py")
TOKEN = "eyJ0eXAiOiJKV1QifQ.c2VjcmV0LW9mLXRoZS10ZXN0.c2lnbmF0dXJl"
KEY_TEXT = "customer-4711-"


def read(url: str) -> str:
    """A page of this machine."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as page:
        text: str = page.read().decode()
        return text


@pytest.mark.parametrize("redacted", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_output_holds_a_secret(
    watch_process: Callable[..., Any], tmp_path: Path, redacted: bool
) -> None:
    """Files, terminal, live page and metrics have no account key, signature, SAS or token."""
    kept, port = tmp_path / "kept", free_port()
    options = ["--metrics-port", str(port), *(["--redact-keys"] if redacted else [])]
    watching = watch_process(*options, "--", sys.executable, PROGRAM, TOKEN, KEY_TEXT, str(kept))
    watching.said("ready")
    page, metrics = watching.address("live page"), watching.address("metrics")

    def shown() -> str:
        data = read(f"{page}data")
        return data if "orders/" in data else ""

    outputs = {"data": watching.wait_for(shown), "page": read(page), "metrics": read(metrics)}
    assert 'partition="orders/' in outputs["metrics"]
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr
    record = watching.record
    assert record["redacted"] is redacted
    assert record["attempts_by_status"]["409 EntityAlreadyExists"] == 5
    assert sum(n for name, n in record["attempts_by_status"].items() if name[:2] == "40") > 5

    files = [file for file in watching.out.rglob("*") if file.is_file()]
    assert {"run.json", "report.html", "errors.jsonl", "summary.md", "partitions.csv"} <= {
        file.name for file in files
    }
    outputs |= {str(file.name): file.read_text(encoding="utf-8") for file in files}
    outputs |= {"stderr": watching.stderr, "stdout": watching.stdout}
    secrets = [EMULATOR_KEY, TOKEN, *kept.read_text(encoding="utf-8").splitlines()]
    assert len(secrets) >= 12
    secrets += [urllib.parse.unquote(secret) for secret in secrets]
    for name, text in outputs.items():
        for secret in secrets:
            assert secret not in text, name
        assert not (redacted and KEY_TEXT in text), name
    assert redacted or KEY_TEXT in outputs["run.json"]
