"""The dashboard and the rules in a real Prometheus that scrapes a real run.

The run goes through the gateway, which throttles partitions and the account, on a schedule that its
few users cannot keep, until its budget is spent: so there is something to see in every panel. Each
query is asked with its variables filled in, and its value is held against the run's record.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.report.answers import throttled_by_status
from tests.support.expected_series import EMPTY, PANELS, RULES, Expected
from tests.support.locust_process import LocustProcess, Stress, wait_until
from tests.support.metrics_page import Series, labelled, scrape
from tests.support.ports import free_port
from tests.support.prometheus import FOLDER, Prometheus
from tests.support.scraped_run import Seen

pytestmark = pytest.mark.azurite

CONTENT: dict[str, Any] = json.loads((FOLDER / "partition-stress.json").read_text("utf-8"))
QUERIES = {
    **{
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in CONTENT["panels"]
        for target in panel.get("targets", ())
    },
    **{note["name"]: note["expr"] for note in CONTENT["annotations"]["list"]},
}

LIMITS = """\
[partition]
entities_per_s = 40.0
[account]
entities_per_s = 100.0
[servers]
entities_per_s = 100000.0
[moving]
hot_after_s = 600.0
[refusal]
timeout_share = 0.4
timeout_after_s = 0.2
timeout_statuses = [500, 504]
[faults]
error_500 = 0.02
"""
LOAD = (
    *(
        "--headless",
        "--processes",
        "2",
        "-u",
        "4",
        "-r",
        "100",
        "-t",
        "90s",
        "--profile",
        "key-spread",
    ),
    *("--set", "load.entities_per_s=200", "--set", "load.give_up_after_s=1.5"),
    *("--set", "load.settle_s=2", "--set", "loading.settle_s=3", "--set", "conditions=[]"),
    *("--set", "fields.key.values=4", "--set", "fields.key.distribution=zipfian"),
    *("--set", "keys.rows_per_partition=50"),
    *("--set", "retry.backoff_s=0.1", "--set", "retry.minimum_s=0.1", "--set", "retry.retries=1"),
    *("--set", "limits.billable_transactions=2500", "--metrics-linger", "100"),
)
"""Without the time limit it would be half a minute, on a machine that has time."""
PATIENCE_S = 180.0
FLAT_S = 4.0
"""So long the end of the run is scraped."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, int]]:
    """One that scrapes a port on which nobody listens yet, and that port."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed: `make test-deps` installs it")
    port = free_port()
    process = Prometheus(program, tmp_path_factory.mktemp("prometheus"), port)
    yield process, port
    process.stop()


@pytest.fixture(scope="module")
def seen(
    prometheus: tuple[Prometheus, int], stress: Stress, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """The run, scraped from its beginning to after its end."""
    process, port = prometheus
    limits = tmp_path_factory.mktemp("limits") / "small.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    began_s = time.time()
    run = stress(*LOAD, "--throttling", str(limits), "--metrics-port", str(port))
    run.until_said("Metrics stay", PATIENCE_S)
    record = run.record
    _until_scraped(process, run)
    time.sleep(FLAT_S)
    over_s = time.time()
    page = scrape(port)
    run.interrupt()
    run.wait()
    found = Seen(prometheus=process, record=record, page=page, began_s=began_s, over_s=over_s)
    _write_table(found, run.folder / "panels.txt")
    return found


def _until_scraped(process: Prometheus, run: LocustProcess) -> None:
    """Wait until the verdict of the run is in Prometheus."""
    verdict = f'aztables_verdict_info{{run="{run.record.run_id}"}}'
    wait_until(lambda: process.at(verdict, time.time()), "the verdict was scraped")


def _write_table(seen: Seen, path: Path) -> None:
    """Every query with its series, and the record's figure beside each value."""
    expected = PANELS | RULES
    lines = [f"{'panel and query':64} {'series':>6} {'value':>11} {'record':>11}  labels"]
    for name in (*QUERIES, *(rule for rule in (*RULES, *EMPTY) if rule not in QUERIES)):
        if name in EMPTY:
            lines.append(f"{name:64} {0:6}  may be empty: {EMPTY[name]}")
            continue
        values = expected[name].ask(seen, QUERIES.get(name, name))
        figures = expected[name].record(seen)
        for key in sorted({*values, *figures}):
            value, figure = (
                f"{of[key]:11,.5g}" if key in of else "none".rjust(11) for of in (values, figures)
            )
            lines.append(f"{name:64} {len(values):6} {value} {figure}  {' '.join(key)[:50]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(path, *lines, sep="\n")


def _hold(seen: Seen, expected: Expected, expr: str) -> None:
    """The query has the record's series, and their values are the record's."""
    values, figures = dict(expected.ask(seen, expr)), dict(expected.record(seen))
    assert values, f"no series: {expr}"
    assert values.keys() == figures.keys()
    wrong = {
        key: (values[key], figures[key])
        for key in figures
        if not expected.agree(values[key], figures[key])
    }
    assert not wrong, f"Prometheus and the record differ: {wrong}"


def test_the_run_has_something_to_see_in_every_panel(seen: Seen) -> None:
    """Throttling of both scopes and statuses, a backlog, dropped operations, a spent budget."""
    record = seen.record
    assert {"partition", "account"} <= {scope for scope, count in record.throttled.items() if count}
    answers = {name.split()[0] for name in record.attempts_by_status if "Internal" not in name}
    assert {"500", "503", "504"} <= answers
    assert record.counts.dropped > 20
    assert "budget" in record.ended_by
    assert record.measured_s > 17, "too short for the rates of rules"


def test_nothing_is_left_out() -> None:
    """Every query and rule is expected to give something, or has a reason not to."""
    rules = {
        line.split(": ", 1)[1]
        for line in (FOLDER / "rules.yml").read_text("utf-8").splitlines()
        if line.strip().startswith(("- record:", "- alert:"))
    }
    assert {*PANELS, *RULES, *EMPTY} == {*QUERIES, *rules}
    assert len(EMPTY) == 10


def _summed(page: Series, name: str, *places: int) -> Counter[tuple[str, ...]]:
    """The samples of one family, added up by the labels at some places in order of their names."""
    sums: Counter[tuple[str, ...]] = Counter()
    for labels, count in labelled(page, name).items():
        sums[tuple(labels[place] for place in places)] += int(count)
    # What may come is 0 before it does.
    return +sums


def test_the_page_has_the_sums_of_the_record(seen: Seen) -> None:
    """Of two processes that load: each count on the metrics page is that of the record, exactly."""
    record, page = seen.record, seen.page
    assert record.workers == 2
    attempts = _summed(page, "aztables_attempts_total", 1, 4, 0, 3)
    assert {
        (partition, " ".join(part for part in answer if part not in ("", "0"))): count
        for (partition, *answer), count in attempts.items()
    } == {
        (part.key, name): count
        for part in record.partitions
        for name, count in part.attempts_by_status.items()
    }
    assert _summed(page, "aztables_entities_total", 1, 0) == {
        (part.key, kind): count
        for part in record.partitions
        for kind, count in part.entities_by_kind.items()
    }
    operations = {(part.key,): part.operations for part in record.partitions}
    assert _summed(page, "aztables_partition_operations_total", 0) == operations
    assert sum(operations.values()) == record.counts.operations
    assert all((part.attempts_per_operation or 0) > 1 for part in record.partitions)
    outcomes = {(name,): count for name, count in record.outcomes.items()}
    assert _summed(page, "aztables_operations_total", 1) == outcomes
    billed = record.counts.billable_transactions
    assert _summed(page, "aztables_billable_transactions_total") == {(): billed}


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_shows_what_the_record_says(seen: Seen, name: str) -> None:
    """Asked as Grafana would, a query has the record's series and, within 10 %, its values."""
    _hold(seen, PANELS[name], QUERIES[name])


def test_the_counters_of_throttling_rose_by_the_counts_of_the_record(seen: Seen) -> None:
    """No series begins after its first count: at its beginning nothing is lost."""
    recorded = throttled_by_status(seen.record.attempts_by_status)
    counts = {status: recorded[status] for status in ("503", "500", "504")}
    assert min(counts.values()) > 10
    risen = {status: seen.risen(QUERIES[f"{status} per partition A"]) for status in counts}
    assert risen == counts


@pytest.mark.parametrize("name", RULES)
def test_a_rule_records_what_the_record_says(seen: Seen, name: str) -> None:
    """A recorded rate is the record's within 10 %; an alert fired for what was throttled."""
    _hold(seen, RULES[name], name)


@pytest.mark.parametrize("name", EMPTY)
def test_what_may_be_empty_is_not_made_up(seen: Seen, name: str) -> None:
    """Nothing stands in for series that are not there, and the query is understood."""
    if name in QUERIES:
        assert seen.last(QUERIES[name]) == {}
    elif seen.fired(name):
        # The machine had no time: then it is true.
        assert name == "ClientLimited"
        assert seen.record.generator.cpu_percent_max >= 90


def test_prometheus_evaluated_every_rule(seen: Seen) -> None:
    """No rule ended in an error."""
    groups = seen.prometheus.ask("rules")["groups"]
    states = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert set(states) == {*RULES, *(name for name in EMPTY if name not in QUERIES)}
    assert set(states.values()) == {"ok"}


def test_variables_find_the_run_and_its_partitions(seen: Seen) -> None:
    """Their lists hold the run, and all its partitions."""
    found = {}
    for variable in CONTENT["templating"]["list"]:
        if asked := re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]):
            selector = asked[1].replace("$run", seen.record.run_id)
            found[variable["name"]] = seen.prometheus.values_of(asked[2], selector)
    assert found == {
        "run": [seen.record.run_id],
        "partition": sorted(part.key for part in seen.record.partitions),
    }


def test_a_chosen_partition_is_alone(seen: Seen) -> None:
    """The panels of partitions follow the variable."""
    expr = QUERIES["Entities/s per partition A"]
    assert '$partition"' in expr
    assert set(seen.mean(expr.replace("$partition", "p1"))) == {("p1",)}
