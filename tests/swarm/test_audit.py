"""After a run every write is looked up again: what was lost is found, and nothing else.

A gateway in front of Azurite acknowledges some writes that it does not do, or loses answers, and
counts both. A proxy counts the requests. Some twelve short runs: about a minute and a half.
"""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import psutil
import pytest

from harness.gateway.process import GatewayProcess, start_gateway
from harness.measure.record.findings import AuditPart
from harness.measure.record.record import RunRecord
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked, wait_until
from tests.support.proxy import Proxy, Seen

pytestmark = [pytest.mark.azurite, pytest.mark.long]

WIDE = """\
[partition]
entities_per_s = 1e6
[account]
entities_per_s = 1e6
[servers]
entities_per_s = 1e6
[faults]
"""
LOSSY = f"{WIDE}unapplied_write = 0.05\n"
AMBIGUOUS = f"{WIDE}lost_answer = 0.02\nhalf_answer = 0.02\nreset = 0.02\nerror_500 = 0.02\n"
PATIENCE_S = 120.0

NO_LOSS = ("--set", "conditions=['lost_writes == 0']")
AUDIT = (
    *(*QUICK, *NO_LOSS, "--set", "audit.enabled=true"),
    # So many rows that losses are among them.
    *("--set", "load.max_entities_per_s=200"),
)
NOTHING_ELSE = ("--set", "mix.point_query=0", "--set", "mix.upsert_merge=0")
# Loaded by one request, so that no fault meets the loading: the gateway's first draw is none.
INSERTS = (
    *("--set", "keys.rows_per_partition=2", "--set", "transaction.operations=2"),
    *(*NOTHING_ELSE, "--set", "mix.transaction=0", "--set", "mix.insert=100"),
)
MOVING = (
    *(*NOTHING_ELSE, "--set", "mix.transaction=10", "--set", "mix.insert=40"),
    *("--set", "mix.delete=20", "--set", "mix.upsert_merge=20", "--set", "mix.update_merge=10"),
    *("--set", "mix.series_merge=10", "--set", "mix.upsert_replace=10"),
    *("--set", "mix.key_change=5", "--set", "mix.conditional_update=5"),
    *("--set", "keys.rows_per_partition=20", "--set", "transaction.operations=4"),
    *("--set", "transaction.kinds=['insert', 'upsert_merge', 'delete', 'update_replace']"),
)
FAST = ("--set", "retry.backoff_s=0.05")
SAMPLE = 40
BUDGET = 600


@dataclasses.dataclass(slots=True)
class Audited:
    """A run, and what was counted beside it."""

    process: LocustProcess
    gateway: GatewayProcess | None = None
    proxy: Proxy | None = None
    told: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def record(self) -> RunRecord:
        return self.process.record

    @property
    def audit(self) -> AuditPart:
        found = self.record.audit
        assert found is not None, self.process.said
        return found

    def requests(self, rule: str, *upstream: str) -> int:
        """Requests that had this fault, by the gateway's own count."""
        return sum(
            row["requests"]
            for row in self.told
            if row["rule"] == rule and (not upstream or row["upstream"] in upstream)
        )


def workers_of(process: LocustProcess) -> list[psutil.Process]:
    """The forked ones, in a fixed order."""
    found = (child for child in process.children() if "locust" in child.cmdline())
    return sorted(found, key=lambda child: child.pid)


def slow_reads(seen: Seen) -> bytes | None:
    """Holds up what the audit asks."""
    if seen.method == "GET" and not seen.of_table:
        gevent.sleep(1.0)
    return None


@pytest.fixture(scope="module")
def gateway_to(host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Starts gateways before the real Azurite."""
    started: list[GatewayProcess] = []

    def start(limits: str) -> GatewayProcess:
        file: Path = tmp_path_factory.mktemp("limits") / "mine.toml"
        file.write_text(limits, encoding="utf-8")
        started.append(start_gateway(upstream=host, limits=file))
        return started[-1]

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture(scope="module")
def runs(
    stress: Stress, gateway_to: Callable[..., Any], proxy_to: Callable[..., Proxy]
) -> dict[str, Audited]:
    """All runs, a few at once, all ended."""
    made: dict[str, Audited] = {}

    def behind_gateway(name: str, limits: str, *options: str) -> None:
        gateway = gateway_to(limits)
        process = stress(*AUDIT, *FAST, *options, "-H", gateway.url)
        made[name] = Audited(process, gateway=gateway)

    def behind_proxy(name: str, *options: str, **said: Any) -> Audited:
        proxy = proxy_to(**said)
        made[name] = Audited(stress(*AUDIT, *options, "-H", proxy.url), proxy=proxy)
        return made[name]

    def all_ended() -> None:
        for run in made.values():
            run.process.children()
            run.process.wait(PATIENCE_S)
            if run.gateway is not None and not run.told:
                run.told = json.loads(run.gateway.counters())["counts"]

    behind_proxy("plain", *MOVING)
    behind_proxy("two workers", *MOVING, *forked(2))
    behind_gateway("lossy", LOSSY, *INSERTS)
    behind_gateway("lossy, two workers", LOSSY, *INSERTS, *forked(2))
    all_ended()
    behind_gateway("ambiguous", AMBIGUOUS, *INSERTS, "--set", "retry.strategy=none")
    behind_gateway("faulty, two workers", AMBIGUOUS, *MOVING, *forked(2))
    behind_proxy("sample", *INSERTS, "--set", f"audit.most_rows={SAMPLE}", *forked(2))
    all_ended()
    behind_proxy(
        "budget",
        *(*INSERTS, "-t", "60s", "--set", f"limits.billable_transactions={BUDGET}"),
        *("--set", "load.max_entities_per_s=30", *forked(2)),
    )
    hurried = behind_proxy("hurried", *INSERTS, answer=slow_reads)
    killed = behind_proxy("killed", *MOVING, "-t", "8s", *forked(2))
    wait_until(lambda: killed.proxy and len(killed.proxy.of_entities) > 100, "the load goes on")
    workers_of(killed.process)[0].send_signal(signal.SIGKILL)
    hurried.process.until_said("Audit:")
    hurried.process.children()
    gevent.sleep(3.0)
    hurried.process.interrupt()
    all_ended()
    return made


@pytest.mark.parametrize("name", ["plain", "two workers", "sample", "budget"])
def test_a_faithful_service_has_lost_nothing(runs: dict[str, Audited], name: str) -> None:
    """Inserts, merges, deletes, transactions: the condition holds, and the exit code is 0."""
    run = runs[name]
    assert run.process.process.returncode == 0, run.process.said
    assert run.audit.lost == 0
    assert run.audit.unacknowledged == 0
    assert (run.audit.cut_short, run.audit.unread, run.audit.examples) == ("", 0, ())
    (condition,) = run.record.conditions
    assert (condition.text, condition.value, condition.passed) == ("lost_writes == 0", 0.0, True)
    assert "Traceback" not in run.process.said


@pytest.mark.parametrize("name", ["plain", "two workers"])
def test_every_row_that_was_written_is_looked_up(runs: dict[str, Audited], name: str) -> None:
    """Exactly, once by each worker that wrote it; and most of what it wrote can be seen."""
    audit = runs[name].audit
    assert audit.exact
    assert audit.rows == audit.written > 20
    assert audit.acknowledged == audit.kept + audit.covered
    assert audit.kept > audit.rows / 2


@pytest.mark.parametrize("name", ["plain", "two workers", "sample", "budget"])
def test_what_the_audit_asks_is_paid_for_and_is_no_load(
    runs: dict[str, Audited], name: str
) -> None:
    """Its requests are billable, and in no other count of the run."""
    run = runs[name]
    assert run.proxy is not None
    record = run.record
    load = record.loading.attempts + record.counts.attempts
    # A connection that was idle may be reset, and its request sent again.
    assert load + run.audit.rows <= len(run.proxy.of_entities) <= load + run.audit.rows * 1.1
    assert len(run.proxy.seen) == record.counts.billable_transactions


@pytest.mark.parametrize("name", ["lossy", "lossy, two workers"])
def test_exactly_the_lost_writes_are_found(runs: dict[str, Audited], name: str) -> None:
    """As many as the gateway acknowledged and did not do; that fails the run."""
    run = runs[name]
    lost = run.requests("unapplied_write")
    assert lost > 0
    assert run.audit.lost == lost
    assert run.audit.acknowledged == run.record.counts.entities
    assert run.audit.rows == run.audit.written == run.record.counts.entities
    assert run.process.process.returncode == 1, run.process.said
    assert len(run.audit.examples) == min(lost, 10)
    assert all(text.endswith("there is no such row") for text in run.audit.examples)
    assert f"{lost:,} lost write" in run.process.stdout


def test_unacknowledged_writes_are_sorted(runs: dict[str, Audited]) -> None:
    """Those that the gateway did although it answered with nothing whole, and the others."""
    run = runs["ambiguous"]
    applied = sum(run.requests(rule, "201", "204") for rule in ("lost_answer", "half_answer"))
    counts = run.record.outcomes
    failed = counts.get("connection", 0) + counts.get("server_error", 0)
    assert applied > 0
    assert failed > applied
    assert (run.audit.applied, run.audit.not_applied) == (applied, failed - applied)
    assert (run.audit.unacknowledged, run.audit.undecided) == (failed, 0)
    assert run.audit.lost == 0


def test_faults_and_retries_lose_nothing(runs: dict[str, Audited]) -> None:
    """Lost answers, resets and errors of every kind of write, by two workers: no write is lost."""
    run = runs["faulty, two workers"]
    assert run.requests("lost_answer") > 0
    assert run.audit.lost == 0
    assert run.audit.cut_short == ""
    assert run.process.process.returncode == 0, run.process.said


def test_of_many_rows_a_sample_is_looked_up(runs: dict[str, Audited]) -> None:
    """As many as the profile wants, of all that were written, about."""
    run = runs["sample"]
    assert run.audit.rows == SAMPLE
    assert not run.audit.exact
    inserted = run.record.counts.entities
    assert inserted / 3 < run.audit.written < inserted * 3
    assert f"{SAMPLE} rows, a sample of about" in run.process.stdout


def test_a_budget_has_room_for_the_audit(runs: dict[str, Audited]) -> None:
    """The load ends when what is left is needed to look up what it wrote."""
    run = runs["budget"]
    assert run.proxy is not None
    assert len(run.proxy.seen) <= BUDGET
    assert "budget" in run.record.ended_by
    assert run.audit.rows == run.audit.written == run.record.counts.entities > BUDGET / 3


def test_ctrl_c_hurries_it(runs: dict[str, Audited]) -> None:
    """What was looked up until then counts, and the record says that it was not all."""
    run = runs["hurried"]
    assert run.audit.cut_short == "interrupted"
    assert 0 < run.audit.rows < run.audit.written
    assert run.audit.lost == 0
    assert run.record.ended_by == "run time"
    assert run.process.process.returncode == 0, run.process.said
    assert "cut short: interrupted" in run.process.stdout
    assert "Traceback" not in run.process.said


def test_what_a_killed_worker_wrote_is_unknown(runs: dict[str, Audited]) -> None:
    """The other one's writes are looked up; nothing is called lost that it may have undone."""
    run = runs["killed"]
    assert run.process.process.returncode == 3, run.process.said
    assert not run.record.complete
    assert run.audit.lost == 0
    assert run.audit.rows == run.audit.written > 0
