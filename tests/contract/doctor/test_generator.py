"""What this machine can generate, measured by real workers, and the whole command."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import psutil
import pytest

from harness.commands.schema import schema_of
from harness.doctor.generator import generate
from harness.measure.record.measured import MachineLoadPart

ONE_CORE = MachineLoadPart(
    name="box", cores=1, workers=0, busy_share=0.0, cpu_percent=0.0, workers_percent=0.0
)


def test_a_worker_is_measured_with_and_without_tls() -> None:
    """Upserts of one entity each, in CPU time of the worker; no process is left behind."""
    steps: list[str] = []
    before = psutil.Process().children()
    plain, tls = generate(("wire",), ONE_CORE, steps.append)
    assert (plain.tls, tls.tls) == (False, True)
    for one in (plain, tls):
        assert one.alone.session == "wire"
        assert one.alone.entities_per_cpu_s == one.alone.operations_per_cpu_s > 100
        assert one.together == one.alone
    assert "session wire over TLS, 1 process" in steps
    assert psutil.Process().children() == before


@pytest.mark.long
@pytest.mark.azurite
def test_the_command_examines_azurite_and_this_machine() -> None:
    """Without -H: all checks in one JSON document, sized for both targets. About 10 s."""
    command = [sys.executable, "-m", "harness", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("doctor"))
    checks = {check["name"]: check for check in document["checks"]}
    assert document["exit_code"] == 0
    assert document["billable_transactions"] == 0
    for target in ("for one partition", "for the account"):
        assert set(checks[target]["figures"]) == {"sdk", "wire"}
    assert checks["wire"]["figures"]["tls"]["together"]["machines"][0]["cores"] > 0
    assert checks["permissions"]["status"] == "ok"
