"""The lines of the doctor: exit codes, marks, and the size of the generator for each target."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness.doctor.checks import (
    CheckResult,
    Status,
    check_text,
    exit_code,
    not_tried,
    summary_text,
    together,
)
from harness.doctor.endpoint import request_units
from harness.doctor.generator import Generated, capacity_checks
from harness.doctor.machine import load_part, machine_checks, watch_idle
from harness.endpoint.admin.permissions import Tried
from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.report.terminal.page import Page

PAGE = Page(width=70)
FINE = CheckResult(name="name", text="fine")
DOUBT = CheckResult(name="clock", status=Status.WARNING, text="6 s behind", advice="set it")
BAD = CheckResult(name="TLS", status=Status.FAILED, text="untrusted", advice="trust it")


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([], 0),
        ([FINE, DOUBT], 0),
        ([FINE, not_tried("clock", "no connection")], 3),
        ([not_tried("clock", "no connection"), BAD], 1),
    ],
)
def test_exit_codes(checks: list[CheckResult], expected: int) -> None:
    """A failure counts before what was not tried; a warning fails nothing."""
    assert exit_code(checks) == expected


def test_a_line_has_a_mark_a_figure_and_what_to_do() -> None:
    """Advice stands below its check; what was not tried for one reason is one line."""
    assert check_text(FINE, PAGE) == "✓  name               fine"
    mark, advice = check_text(DOUBT, PAGE).splitlines()
    assert mark.startswith("!  clock")
    assert advice.strip() == "-> set it"
    assert check_text(BAD, Page(width=70, ascii_only=True)).startswith("X  TLS")
    rest = together([not_tried(name, "no connection") for name in ("users", "clock")])
    assert "users, clock not tried: no connection" in check_text(rest, PAGE)
    said = summary_text([FINE, DOUBT, BAD], 61, 1)
    assert said == (
        "1 of 3 checks fine, 1 warning, 1 failed, 0 not tried; 61 billable transactions\n"
        "Exit code: 1"
    )


def generated(session: str, rate: float, *, tls: bool = True, cores: int = 4) -> Generated:
    """A session that makes so many upserts in a second of CPU time, on a machine of its own."""
    machine = MachineLoadPart(
        name="box", cores=cores, workers=0, busy_share=0.0, cpu_percent=1.0, workers_percent=0.0
    )
    made = CapacityPart(
        session=session, operations_per_cpu_s=rate, entities_per_cpu_s=rate, machines=(machine,)
    )
    return Generated(tls=tls, alone=made, together=made)


def test_each_target_has_its_processes_or_machines() -> None:
    """A fifth of each core stays free; figures without TLS size nothing."""
    made = [
        generated("sdk", 9999.0, tls=False),
        generated("sdk", 1500.0),
        generated("wire", 9000.0, tls=False),
        generated("wire", 7000.0),
    ]
    sdk, wire, partition, account = capacity_checks(made)
    assert "without TLS 9,999/s a process, 39,996/s on 4 cores" in sdk.text
    assert "over TLS 7,000/s a process, 28,000/s on 4 cores" in wire.text
    assert "--session sdk --processes 2 or --session wire --processes 1" in partition.text
    assert "--session sdk on 5 such machines (17 processes)" in account.text
    assert "--session wire --processes 4" in account.text
    assert account.status is Status.OK
    *_, of_cosmos = capacity_checks(made, charged=True)
    assert (of_cosmos.name, of_cosmos.text[:8]) == ("for one partition", "2,020/s ")
    *_, account = capacity_checks([generated("sdk", 1500.0)])
    assert account.status is Status.WARNING


def test_a_cpu_that_others_take_is_seen_and_they_are_named() -> None:
    """Other processes on every core are a warning with their share and their process ids."""
    script = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    cores = len(os.sched_getaffinity(0))
    burners = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(cores)]
    try:
        idle = watch_idle(0.5)
        checks = {check.name: check for check in machine_checks(idle)}
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert {burner.pid for burner in burners} <= {pid for _, pid, _ in idle.busiest}
    other = checks["other load"]
    assert other.status is Status.WARNING
    assert f"of {cores} core" in other.text
    assert "(pid " in other.text
    assert load_part(idle).others_percent > 20
    assert checks["CPU"].figures["cores"] == cores
    assert set(checks) == {"CPU", "other load", "memory", "open files", "local ports"}
    json.dumps([dict(check.figures) for check in checks.values()])


def test_the_charges_of_cosmos_db_are_shown() -> None:
    """Each that was told; and where none was, what a run cannot know."""
    shown = request_units([Tried("insert", charge=795), Tried("point query", charge=100)])
    assert shown.status is Status.OK
    assert "insert 7.95 and point query 1;" in shown.text
    assert shown.figures == {"insert": 7.95, "point query": 1.0}
    untold = request_units([Tried("insert"), Tried("point query")])
    assert untold.status is Status.WARNING
    assert "--host-kind cosmos" in untold.advice
    assert "10,000 RU/s" in untold.text
