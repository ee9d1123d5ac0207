"""A run through the harness's own gateway: two counts of the same requests, and an honest name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import gevent
import pytest

from harness.endpoint.azurite.process import start_azurite
from harness.gateway.process import start_gateway
from harness.measure.record.record import RunRecord
from harness.swarm.master.rehearsal import NO_ANSWER, recorded_counts
from tests.support.http_pages import metrics_page, page
from tests.support.locust_process import (
    QUICK,
    WEB,
    LocustProcess,
    Stress,
    forked,
    spread_over,
    wait_until,
)
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

NAME = "Azurite behind a gateway of the harness"
LIMITS = """\
[partition]
entities_per_s = 30.0
[moving]
hot_after_s = 1.0
offline_s = 1.0
[faults]
error_500 = 0.01
reset = 0.01
half_answer = 0.01
lost_answer = 0.02
"""
"""A partition that throttles, is moved, and of whose requests some go wrong."""
PARTITIONS = 3
LOAD = (
    *spread_over(PARTITIONS, 20),
    *("--set", "load.max_entities_per_s=400", "--set", "conditions=[]"),
    *("--set", "retry.backoff_s=0.1"),
)


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of limits."""
    file: Path = tmp_path_factory.mktemp("limits") / "mine.toml"
    file.write_text(LIMITS, encoding="utf-8")
    return str(file)


def interrupted(stress: Stress, limits: str) -> LocustProcess:
    """A run that was ended by Ctrl-C under load."""
    process = stress(*QUICK, *LOAD, "--set", "load.run_time_s=60", "--throttling", limits)
    process.until_said("[3/4]")
    wait_until(
        lambda: "entities/s" in process.stdout.partition("[3/4]")[2].partition("\n")[2], "load"
    )
    process.children()
    process.interrupt()
    process.wait()
    return process


def ended_while_loading(stress: Stress, limits: str) -> LocustProcess:
    """A run that was ended by Ctrl-C before its load."""
    process = stress(*QUICK, *spread_over(1, 900), "--throttling", limits)
    process.until_said(" of 900")
    process.interrupt()
    process.wait()
    return process


@pytest.fixture(scope="module")
def meanwhile(stress: Stress, limits: str) -> dict[str, gevent.Greenlet]:
    """Runs that go on beside the others."""
    return {
        run.__name__: gevent.spawn(run, stress, limits)
        for run in (interrupted, ended_while_loading)
    }


@pytest.fixture(scope="module")
def done(stress: Stress, limits: str) -> LocustProcess:
    """A run by two workers that has ended, and its metrics page while it went on."""
    port = free_port()
    process = stress(
        *QUICK,
        *LOAD,
        *forked(2),
        *("--throttling", limits, "--metrics-port", str(port), "--summary", "full"),
    )
    process.until_said("[3/4]")
    process.children()
    (process.folder / "metrics.txt").write_text(metrics_page(port), encoding="utf-8")
    process.wait()
    return process


@pytest.fixture(scope="module")
def record(done: LocustProcess) -> RunRecord:
    """What it recorded."""
    assert done.process.returncode == 0, done.said
    return done.record


# The first, so that the runs begin beside those of the next tests.
@pytest.mark.usefixtures("meanwhile")
def test_limits_need_the_embedded_azurite(stress: Stress) -> None:
    """What cannot be is said before anything starts, with exit code 2."""
    process = stress(*QUICK, "--throttling", "published", "-H", "http://127.0.0.1:10002")
    assert process.wait() == 2
    assert "--throttling needs the embedded Azurite" in process.stderr
    assert "Traceback" not in process.said


def test_both_counts_are_equal_to_the_last_request(done: LocustProcess, record: RunRecord) -> None:
    """Two workers' record and the gateway's own count agree by partition and status."""
    assert record.workers == 2
    assert "all counts are equal" in done.stdout, done.stdout
    told = {
        (row[1], row[2]): (int(row[3].replace(",", "")), int(row[4].replace(",", "")))
        for row in re.finditer(
            rf"^  (p\d) +(\d+|{NO_ANSWER}) +([\d,]+) +([\d,]+)$", done.stdout, re.MULTILINE
        )
    }
    recorded = recorded_counts(record)
    assert told == {key: (count, count) for key, count in recorded.items()}
    assert {key for key, _ in told} == {f"p{number}" for number in range(PARTITIONS)}
    assert {"200", "204", "503", NO_ANSWER} <= {status for _, status in told}


def test_a_moved_partition_and_its_gap_are_told(done: LocustProcess, record: RunRecord) -> None:
    """Each move is named once, with its partition and how long it was gone."""
    moves = re.findall(r"partition 'p\d' moved, unavailable 1 s", done.stdout)
    assert moves
    assert record.enforced is not None
    assert len(moves) <= len(record.enforced.moves)
    assert record.counts.attempts > record.counts.operations


def test_users_that_wait_to_retry_are_counted_by_second(record: RunRecord) -> None:
    """Those of both workers together, and never more than there are users."""
    waiting = [point.retrying for point in record.series]
    assert 0 < max(waiting) <= record.users


def test_the_limits_and_the_moves_are_in_the_record(record: RunRecord) -> None:
    """What the run was held to can be drawn from its record, years later."""
    enforced = record.enforced
    assert enforced is not None
    assert (enforced.partition_per_s, enforced.account_per_s) == (30.0, 20_000.0)
    assert enforced.moves
    for move in enforced.moves:
        assert move.key in {f"p{number}" for number in range(PARTITIONS)}
        assert move.offline_s == pytest.approx(1.0)
        assert -5.0 < move.start_s < record.measured_s + 30.0


def test_no_output_calls_it_azure(done: LocustProcess, record: RunRecord) -> None:
    """Step 1, the summary, the verdict, the record and the metrics say what it was.

    Titles of the documents that advise something have the service's name in them.
    """
    first = next(line for line in done.stdout.splitlines() if line.startswith("[1/4]"))
    assert first.endswith(NAME)
    assert record.endpoint.kind == "gateway"
    assert record.endpoint.described == NAME
    assert record.verdict.footnote.startswith(f"{NAME}.")
    metrics = (done.folder / "metrics.txt").read_text(encoding="utf-8")
    assert f'described="{NAME}"' in metrics
    for output in (done.said, json.dumps(record.model_dump()), metrics):
        said = " ".join(output.split())
        for advice in record.verdict.advice:
            said = said.replace(advice.document, "")
        assert not re.search(r"\bAzure\b", said)


def test_nothing_is_left_behind(done: LocustProcess) -> None:
    """Neither the gateway nor Azurite outlives the run."""
    assert done.left_behind() == []


def test_ctrl_c_ends_it_as_any_run(meanwhile: dict[str, gevent.Greenlet]) -> None:
    """The group's SIGINT ends the load; gateway and Azurite are there until it is judged."""
    process = meanwhile[interrupted.__name__].get()
    assert process.record.ended_by == "Ctrl-C"
    assert "all counts are equal" in process.stdout, process.said
    assert process.left_behind() == []


def test_a_run_that_ends_while_loading_compares_no_counts(
    meanwhile: dict[str, gevent.Greenlet],
) -> None:
    """What the gateway counted and refused until then was loading, which is not in the record."""
    process = meanwhile[ended_while_loading.__name__].get()
    assert process.record.enforced is not None
    assert process.record.enforced.refusals == {}
    assert "counts of the gateway" not in process.said


def test_a_gateway_is_looked_for_before_each_run(stress: Stress, limits: str) -> None:
    """Of two runs of one page, the second meets the Azurite that took the gateway's place."""
    port, web = free_port(), free_port()

    def run(number: int) -> RunRecord:
        page(f"http://127.0.0.1:{web}/swarm", user_count=2, spawn_rate=10)
        wait_until(lambda: len(process.records) == number, f"record {number}", every_s=0.5)
        return process.records[-1]

    with start_gateway(upstream="none", limits=Path(limits), listen=f"127.0.0.1:{port}") as gateway:
        process = stress(*WEB, "-t", "1s", "-H", gateway.url, "--web-port", str(web))
        process.until_said("Web UI:")
        first = run(1)
    with start_azurite(port=port):
        second = run(2)
    assert (first.endpoint.kind, second.endpoint.kind) == ("gateway-alone", "azurite")
    assert first.enforced is not None
    assert second.enforced is None
