"""Runs from a shell: four steps, a record, nothing left behind."""

from __future__ import annotations

import re

import pytest

from harness.endpoint.endpoint import Endpoint
from harness.measure.record.record import RunRecord
from tests.support.locust_process import JUDGED, QUICK, LocustProcess, Stress, wait_until
from tests.support.sdk import table_names

pytestmark = pytest.mark.azurite

FOREIGN_KEY = "Zm9yZWlnbiBhY2NvdW50IGtleSBvZiBub2JvZHk="
FOREIGN = {
    "AZURE_STORAGE_ACCOUNT": "foreignaccount",
    "AZURE_STORAGE_KEY": FOREIGN_KEY,
    "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=foreignaccount;"
    f"AccountKey={FOREIGN_KEY};EndpointSuffix=core.windows.net",
}
"""Credentials of an account that is not to be touched."""

OWN_CLASS = '''\
"""A locustfile of one's own."""
from locust import events, task

from harness.swarm import TableUser, wire


class OrderUser(TableUser):
    """Places an order, looks it up, changes it, and cancels it."""

    def on_start(self):
        self.number = 0

    @task
    def order(self):
        self.number += 1
        customer, order = "c1", f"{id(self)}-{self.number}"
        self.table.insert(customer, order, {"Total": 12.5, "Open": True})
        found = self.table.get(customer, order)
        assert found.value["Total"] == 12.5, found
        self.table.upsert(customer, order, {"Note": "soon"})
        self.table.update(customer, order, {"Open": False}, replace=True)
        lines = [
            self.table.operation("insert", customer, f"{order}-{line}", {"Line": line})
            for line in range(3)
        ]
        self.table.transaction(lines)
        self.table.query(customer, row_from=order, row_before=order + "~")
        near = self.table.query(None, partition_from="c1", partition_before="c2", top=3)
        assert {row["PartitionKey"] for row in near.value} == {"c1"}, near
        self.table.delete(customer, order)


wire(events)
'''


@pytest.fixture(scope="module")
def runs(
    stress: Stress, tmp_path_factory: pytest.TempPathFactory, host: str
) -> dict[str, LocustProcess]:
    """Runs that have ended; that without -H is alone, so that its verdict is its own."""
    own = tmp_path_factory.mktemp("own") / "locustfile.py"
    own.write_text(OWN_CLASS, encoding="utf-8")
    embedded = stress(*QUICK, *JUDGED, "--summary", "full", environ=FOREIGN)
    embedded.until_said("[3/4]")
    embedded.children()
    embedded.wait()
    own_class = stress(*QUICK, "-H", host, locustfile=own)
    own_class.wait()
    return {"embedded": embedded, "own class": own_class}


@pytest.fixture(scope="module")
def done(runs: dict[str, LocustProcess]) -> LocustProcess:
    """The run without -H."""
    return runs["embedded"]


@pytest.fixture(scope="module")
def record(done: LocustProcess) -> RunRecord:
    """What it recorded."""
    return done.record


@pytest.mark.parametrize("name", ["embedded", "own class"])
def test_it_passes_without_a_word_of_trouble(name: str, runs: dict[str, LocustProcess]) -> None:
    """A run that holds its conditions exits with 0, and nobody sees a traceback or a warning."""
    process = runs[name]
    assert process.process.returncode == 0, process.said
    assert process.record.exit_code == 0
    for word in ("Traceback", "nanobind", "ERROR", "WARNING"):
        assert word not in process.said, process.said


def test_the_four_steps_are_said_in_order(done: LocustProcess) -> None:
    """The documented procedure: create, load, simulate peak load, examine; each once."""
    places = [done.stdout.index(f"[{number}/4]") for number in (1, 2, 3, 4)]
    assert places == sorted(places)
    assert done.stdout.count("/4]") == 4
    assert "100 of 100" in done.stdout


def test_the_verdict_ends_the_report(done: LocustProcess, record: RunRecord) -> None:
    """The report holds the verdict, says where the record is, and names the emulator."""
    flowing = " ".join(done.stdout.replace("│", " ").split())
    assert record.verdict.sentence in flowing
    assert f"out/{record.run_id}/run.json" in done.stdout
    assert "Azurite (emulator" in done.stdout


def test_the_load_is_within_the_target(record: RunRecord) -> None:
    """60 entities/s that come through are within a target of 2,000, limited by the load."""
    assert (record.verdict.result, record.verdict.limited_by) == ("within_target", "load")
    assert [condition.passed for condition in record.conditions] == [True]


def test_entities_are_counted_by_the_rule(record: RunRecord) -> None:
    """A point query and an upsert count 1, a transaction of ten counts 10."""
    operations = {part.kind: part for part in record.operations}
    assert set(operations) == {"point_query", "upsert_merge", "transaction"}
    for kind, each in (("point_query", 1), ("upsert_merge", 1), ("transaction", 10)):
        assert operations[kind].entities == each * operations[kind].outcomes["success"]
    assert record.counts.entities == sum(part.entities for part in record.operations)
    assert record.counts.transactions == operations["transaction"].count


def test_rates_are_of_the_measured_window(record: RunRecord) -> None:
    """The mean over the window is the sum of the window's seconds, and near the cap."""
    end = record.window_start + record.measured_s
    inside = [point for point in record.series if record.window_start <= point.t < end]
    assert (record.measured_s, len(inside)) == (5, 5)
    mean = sum(point.entities for point in inside) / 5
    rates = record.account.entities_per_s
    assert rates.mean == pytest.approx(mean, abs=0.01)
    assert rates.mean <= rates.best_1s
    # What was due in the last moments before the window may be sent in it: a fifth of a second.
    assert rates.mean <= 60 * 1.08
    assert sum(point.entities for point in record.series) == record.counts.entities


def test_every_request_is_billed_once(record: RunRecord) -> None:
    """Billable are the look at the endpoint, making and deleting the table, loading, the load."""
    expected = 3 + record.loading.attempts + record.counts.attempts
    assert record.counts.billable_transactions == expected


def test_locusts_own_tables_are_useful(done: LocustProcess, record: RunRecord) -> None:
    """The tables that Locust prints at the end count the same operations."""
    for part in record.operations:
        assert re.search(rf"\b{part.kind} +{part.count} +0\(0.00%\)", done.stderr), done.stderr
    assert re.search(rf"\bAggregated +{record.counts.operations} ", done.stderr), done.stderr


def test_credentials_do_not_choose_the_endpoint(done: LocustProcess, record: RunRecord) -> None:
    """Without -H it is the embedded Azurite, whatever credentials the environment holds."""
    assert record.endpoint.kind == "azurite"
    assert {text.split()[1] for _, text in done.addresses} == {"127.0.0.1"}
    assert "foreignaccount" not in done.said
    assert FOREIGN_KEY not in done.said


def test_nothing_is_left_behind(done: LocustProcess) -> None:
    """Azurite, which a run without -H starts, is gone with it."""
    wait_until(lambda: not done.left_behind(), "Azurite is gone", 5.0)
    assert done.children() == []


def test_the_tables_are_gone(runs: dict[str, LocustProcess], endpoint: Endpoint) -> None:
    """Each run deletes the table it made."""
    assert not table_names(endpoint) & {process.record.endpoint.table for process in runs.values()}


def test_a_class_of_ones_own_is_counted(runs: dict[str, LocustProcess]) -> None:
    """A user class of twenty lines gets pacing, accounting and a verdict without more code."""
    record = runs["own class"].record
    operations = {part.kind: part for part in record.operations}
    assert set(operations) == {
        *("insert", "point_query", "upsert_merge", "update_replace"),
        *("transaction", "row_range_scan", "partition_range_scan", "delete"),
    }
    assert set(record.outcomes) == {"success"}
    assert operations["transaction"].entities == 3 * operations["transaction"].count
    # A query counts what it scanned: four rows of its own order at least.
    assert operations["row_range_scan"].entities >= 4 * operations["row_range_scan"].count
    # What goes over several partitions is counted under a slash.
    assert {part.key for part in record.partitions} == {"c1", "/"}


def test_an_own_class_is_judged_by_what_it_does(runs: dict[str, LocustProcess]) -> None:
    """Not by the profile that gives its load: no entities are loaded, and none are predicted."""
    process = runs["own class"]
    record, stdout = process.record, process.stdout
    assert record.prediction is None
    assert record.loading.entities == 0
    assert record.entity.stored_bytes == 0
    assert record.profile["name"] == record.profile["user_class"] == "OrderUser"
    assert "keys" not in record.profile
    assert "nothing, because OrderUser makes its own entities" in stdout
    for foreign in ("predicted", "partition p0", "ONE partition"):
        assert foreign not in stdout
