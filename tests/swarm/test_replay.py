"""A replay of a trace in real runs: the entities of every partition are those of the recording."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.endpoint import Endpoint
from harness.measure.record.record import RunRecord
from harness.model.partition import Partition
from harness.trace.operations import UNKNOWN
from harness.trace.reader import Trace
from tests.support.command import Command
from tests.support.locust_process import ROOT, Stress, forked
from tests.support.ports import free_port
from tests.support.recorded import Application, record
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

QUICK = ("--headless", "--set", "loading.settle_s=0", "--profile", "replay")


def test_every_kind_of_operation_is_replayed(stress: Stress, host: str, tmp_path: Path) -> None:
    """Two tables, all kinds of operations and outcomes, over two workers, twice as fast: entities
    are equal partition by partition, and the trace of the replay holds the same operations.
    """
    path, again = tmp_path / "app.parquet", tmp_path / "again.parquet"
    application = Application(random.Random(5), partitions=20, rows=30, ranges=False)
    recorded = record(path, application, 800)
    replay = stress(
        *QUICK,
        *("--set", f"replay.trace={path}", "--set", "replay.speed=2"),
        *("--trace", str(again), "-H", host),
        *forked(2),
    )
    assert replay.wait() in (0, 3), replay.said
    found = replay.record
    assert found.replay is not None
    assert (found.replay.operations, found.replay.inexact) == (800, 0)
    assert found.counts.due == found.counts.operations == 800
    assert {part.key: part.entities for part in found.partitions if part.entities} == +recorded
    assert found.outcomes.keys() <= {"success", "not_found", "conflict", "precondition"}
    assert found.ended_by == "the end of the trace"
    assert found.invariants == ()


@pytest.mark.long
def test_a_watched_application_is_replayed_exactly(
    stress: Stress, host: str, tmp_path: Path
) -> None:
    """What the SDK did under a watch, with pages, tops, ranges and conflicts, is replayed over two
    workers at twice the speed: each operation with its outcome, and the entities of each partition.
    Queries over several partitions wait for no writes, so that what they find depends on time.

    Bounds: a watch and a replay of some thirty requests, about 25 seconds.
    """
    program = ROOT / "tests" / "support" / "watched" / "python_sdk.py"
    watched, path = tmp_path / "watched", tmp_path / "app.parquet"
    subprocess.run(
        [
            *(sys.executable, "-m", "harness", "watch", "--out", str(watched)),
            *("--trace", str(path), "--", sys.executable, str(program), "sync"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        timeout=120,
    )
    replay = stress(
        *(*QUICK, "--set", f"replay.trace={path}", "--set", "replay.speed=2"),
        *("-H", host, "--session", "wire"),
        *forked(2),
    )
    assert replay.wait() in (0, 3), replay.said
    assert replay.record.replay is not None
    assert replay.record.replay.sentences() == []
    (file,) = watched.glob("*/run.json")
    recorded = RunRecord.from_json(file.read_bytes())
    assert outcomes_of(replay.record) == outcomes_of(recorded)
    assert partitions_of(replay.record) == partitions_of(recorded)
    assert sum(partitions_of(recorded).values()) == 361


def outcomes_of(record: RunRecord) -> dict[str, dict[str, int]]:
    """How often each kind of operation ended in which way."""
    return {part.kind: part.outcomes for part in record.operations}


def partitions_of(record: RunRecord) -> dict[str, int]:
    """The entities of each partition, without those of queries over several."""
    return {part.key: part.entities for part in record.partitions if not part.partition.whole_table}


def test_one_recorded_table_goes_into_an_existing_one(
    stress: Stress, endpoint: Endpoint, tmp_path: Path, command: Command
) -> None:
    """The entities are those of the trace, and the table is empty again."""
    path = tmp_path / "app.parquet"
    record(path, Application(random.Random(8), tables=("Orders",), ranges=False), 200)
    with TableServiceClient(endpoint.url, credential=named_key(endpoint)) as service:
        with contextlib.closing(service.create_table("replayed")) as table:
            given = ("--table", "replayed", "-H", endpoint.url)
            replay = stress(*QUICK, "--set", f"replay.trace={path}", *given)
            assert replay.wait() in (0, 3), replay.said
            assert list(table.list_entities()) == []
        service.delete_table("replayed")
    folder = replay.folder / "out" / replay.record.run_id
    assert f"harness compare {path} out/{replay.record.run_id}" in replay.said
    said = command.words("compare", path, folder)
    assert re.search(r" replays app: the same entities in each of 3 partitions .*, exactly", said)


@pytest.mark.long
def test_a_worker_with_another_trace_refuses(stress: Stress, host: str, tmp_path: Path) -> None:
    """Nothing is loaded, the exit code is 2, and both sides name the file.

    Bounds: two processes that wait for each other, about eight seconds.
    """
    path, port = tmp_path / "app.parquet", free_port()
    record(path, Application(random.Random(1)), 50)
    master = stress(
        *(*QUICK, "--set", f"replay.trace={path}", "-H", host),
        *("--master", "--expect-workers", "1", "--master-bind-port", str(port)),
    )
    master.until_said("Waiting for workers")
    shutil.rmtree(path)
    record(path, Application(random.Random(2)), 50)
    worker = stress("--worker", "--master-port", str(port), "-H", host)
    assert master.wait() == 2, master.said
    assert "refused the run: the trace" in master.said
    assert f"the trace {path} of this worker differs from the master's" in worker.said


@pytest.mark.long
@pytest.mark.serial
@pytest.mark.parametrize(
    "name",
    [
        "append-only-log",
        pytest.param("even-spread", marks=pytest.mark.thorough),
        pytest.param("hot-tenant", marks=pytest.mark.thorough),
    ],
)
def test_the_examples_are_replayed_exactly(
    stress: Stress, host: str, tmp_path: Path, name: str
) -> None:
    """Traces of three applications, whose operations overlap, over two workers at four times the
    speed: the trace of the replay has the entities of the recording in every partition.

    Bounds: some 3,000 requests in six seconds each.
    """
    path, again = ROOT / "examples" / name / f"{name}.parquet", tmp_path / "again.parquet"
    replay = stress(
        *(*QUICK, "--set", f"replay.trace={path}", "--set", "replay.speed=4"),
        *("--trace", str(again), "-H", host),
        *forked(2),
    )
    assert replay.wait() in (0, 3), replay.said
    assert replay.record.replay is not None
    assert replay.record.replay.sentences() == []
    assert replay.record.ended_by == "the end of the trace", replay.said
    assert entities_of(again) == entities_of(path), replay.said


def entities_of(path: Path) -> collections.Counter[str]:
    """The entities of each partition in a trace."""
    found: collections.Counter[str] = collections.Counter()
    for row in Trace(path).rows():
        key = UNKNOWN if row.partition_key is None else row.partition_key
        found[Partition(row.shape.table, key).name] += row.entities
    return +found
