"""A partition that throttles, as everybody sees it: verdict, record, Prometheus, error log.

A proxy in front of Azurite refuses a share of the requests for one partition, and one request for
the whole account, as Azure words it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.measure.record.record import RunRecord
from tests.support.http_pages import metrics_page
from tests.support.locust_process import QUICK, LocustProcess, Stress, wait_until
from tests.support.metrics_page import received
from tests.support.ports import free_port
from tests.support.proxy import Proxy, Seen, refusal

pytestmark = pytest.mark.azurite

HOT = "p1"
REQUEST_ID = "5f3c1e0a-0002-00d1-1a2b-3c4d5e000000"
OVER_ACCOUNT = "Operations per second is over the account limit."
WITH_OTLP = importlib.util.find_spec("opentelemetry") is not None
PUSHED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


def samples(text: str, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    """Sums of one series by these labels."""
    found: Counter[tuple[str, ...]] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
    return found


class Throttle:
    """Refuses every eighth request for the hot partition, once it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.refused = Counter[str]()
        self._hot = 0

    def __call__(self, seen: Seen) -> bytes | None:
        if not self.on or seen.of_table or not seen.touches(HOT):
            return None
        self._hot += 1
        if self._hot == 20:
            return self._refuse(OVER_ACCOUNT)
        return self._refuse("The server is busy.") if self._hot % 8 == 0 else None

    def _refuse(self, message: str) -> bytes:
        self.refused[message] += 1
        return refusal(503, "ServerBusy", message, x_ms_request_id=REQUEST_ID)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A run that was watched from outside until it had ended."""

    process: LocustProcess
    record: RunRecord
    throttle: Throttle
    early: str
    last: str
    pushed: list[Seen]
    errors: list[dict[str, Any]]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Proxy]:
    """A Pushgateway that takes everything."""
    proxy = Proxy(None, answer=lambda seen: PUSHED)
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def observed(stress: Stress, proxy_to: Callable[..., Proxy], gateway: Proxy) -> Observed:
    """The run."""
    throttle = Throttle()
    proxy = proxy_to(answer=throttle)
    port = free_port()
    process = stress(
        *(*QUICK, "--profile", "key-spread", "-H", proxy.url, "-t", "7s"),
        *("--set", "load.max_entities_per_s=100"),
        *("--set", "fields.key.values=3", "--set", "conditions=['throttled_ratio < 1%']"),
        *("--set", "retry.backoff_s=0.05", "--set", "retry.minimum_s=0.05"),
        *("--set", "retry.retries=1"),
        *("--metrics-port", str(port), "--metrics-linger", "50", "--metrics-push", gateway.url),
        *(("--otlp", gateway.url) if WITH_OTLP else ()),
    )
    process.until_said("[3/4]")
    throttle.on = True
    wait_until(lambda: throttle.refused.total() > 5, "something was refused")
    wait_until(
        lambda: samples(metrics_page(port), "aztables_attempts_total").total() > 50, "a scrape"
    )
    early = metrics_page(port)
    process.until_said("Metrics stay")
    last = metrics_page(port)
    process.interrupt()
    process.wait()
    lines = (process.folder / "out" / process.record.run_id / "errors.jsonl").read_text("utf-8")
    return Observed(
        process=process,
        record=process.record,
        throttle=throttle,
        early=early,
        last=last,
        pushed=gateway.seen,
        errors=[json.loads(line) for line in lines.splitlines()],
    )


def test_the_verdict_names_the_throttled_partition_and_no_limit(observed: Observed) -> None:
    """It was refused far below its target, so that its limit is not the cause."""
    verdict = observed.record.verdict
    assert (verdict.result, verdict.limited_by) == ("throttled", "unknown")
    assert repr(HOT) in verdict.sentence
    assert observed.process.process.returncode == 1, observed.process.said
    assert [condition.passed for condition in observed.record.conditions] == [False]


def test_every_refusal_is_counted_by_its_scope(observed: Observed) -> None:
    """Retries hide nothing: each 503 that was sent is in the record, the account's one apart."""
    refused, record = observed.throttle.refused, observed.record
    assert record.throttled == {"partition": refused["The server is busy."], "account": 1}
    assert record.attempts_by_status["503 ServerBusy partition"] == refused["The server is busy."]
    assert record.attempts_by_status["503 ServerBusy account"] == 1
    assert sum(point.throttled for point in record.series) == refused.total()


def test_only_the_hot_partition_is_throttled(observed: Observed) -> None:
    """The other partitions show none."""
    ratios = {part.key: part.throttled_ratio for part in observed.record.partitions}
    assert set(ratios) == {"p0", "p1", "p2"}
    assert ratios.pop(HOT) > 0.08
    assert set(ratios.values()) == {0.0}


def test_a_retry_that_succeeds_is_a_success(observed: Observed) -> None:
    """There are more attempts than operations, and most operations succeeded."""
    record = observed.record
    assert record.counts.attempts > record.counts.operations
    assert record.outcomes["success"] > record.counts.operations * 0.95


def test_failed_attempts_are_kept_for_support(observed: Observed) -> None:
    """Each line has status, code, scope, both request ids, the partition and the time."""
    record, errors = observed.record, observed.errors
    assert len(errors) == observed.throttle.refused.total()
    began, ended = (
        dt.datetime.fromisoformat(text).timestamp() for text in (record.started_at, record.ended_at)
    )
    for error in errors:
        assert (error["status"], error["error_code"]) == (503, "ServerBusy")
        assert (error["partition_key"], error["request_id"]) == (HOT, REQUEST_ID)
        assert error["client_request_id"].startswith(record.run_id)
        assert began - 1 <= error["time_s"] <= ended + 1
    assert Counter(error["scope"] for error in errors) == {
        "partition": len(errors) - 1,
        "account": 1,
    }
    assert {error["message"] for error in errors} == {"The server is busy.", OVER_ACCOUNT}
    assert len({error["client_request_id"] for error in errors}) == len(errors)


def test_a_scrape_in_mid_run_shows_failures(observed: Observed) -> None:
    """While the run goes on the page has its counts so far, and the users that run."""
    attempts = samples(observed.early, "aztables_attempts_total", "status")
    assert 0 < attempts["503",] <= observed.throttle.refused.total()
    assert 50 < attempts.total() <= observed.record.counts.attempts
    assert samples(observed.early, "aztables_users")[()] == 4
    assert samples(observed.early, "aztables_workers")[()] == 1


def test_the_last_scrape_has_the_outcomes_of_the_record(observed: Observed) -> None:
    """By operation and outcome, and the durations of those in the measured window."""
    scraped = samples(observed.last, "aztables_operations_total", "op", "outcome")
    assert scraped == {
        (part.kind, outcome): count
        for part in observed.record.operations
        for outcome, count in part.outcomes.items()
    }
    durations = samples(observed.last, "aztables_operation_duration_seconds_count", "op", "latency")
    assert durations == {
        (part.kind, "service"): part.service_ms.count
        for part in observed.record.operations
        if part.service_ms is not None
    }


def test_targets_and_run_are_exposed(observed: Observed) -> None:
    """The targets that rates are held against, and what is stressed."""
    targets = samples(observed.last, "aztables_target_entities_per_second", "scope")
    assert targets == {("partition",): 2000, ("account",): 20000}
    record = observed.record
    info = samples(observed.last, "aztables_run_info", "run", "profile", "endpoint", "table")
    wanted = (record.run_id, "key-spread", "azurite", record.endpoint.table)
    assert info == {wanted: 1}
    assert set(re.findall(r'\brun="([^"]+)"', observed.last)) == {record.run_id}


def test_the_last_state_is_pushed(observed: Observed) -> None:
    """The Pushgateway got the same series once, in a group named after the run."""
    (push,) = (seen for seen in observed.pushed if seen.method == "PUT")
    assert push.path == f"/metrics/job/aztables/run/{observed.record.run_id}"
    name, labels = "aztables_attempts_total", ("partition", "status", "error_code", "scope")
    pushed = samples(push.body.decode(), name, *labels)
    assert pushed == samples(observed.last, name, *labels)


@pytest.mark.skipif(not WITH_OTLP, reason="the extra otlp is missing: run make dev")
def test_the_last_state_is_sent_to_a_receiver(observed: Observed) -> None:
    """By OTLP, with the end of the run and the counts of the metrics page."""
    *_, sent = (seen for seen in observed.pushed if seen.method == "POST")
    name, labels = "aztables_attempts_total", ("partition", "status", "error_code", "scope")
    counted: Counter[tuple[str, ...]] = Counter()
    phases = set()
    for (of, found), value in received(sent.body).items():
        if of == name:
            counted[tuple(dict(found)[label] for label in labels)] += int(value)
        elif of == "aztables_run_phase" and value:
            phases.add(dict(found)["phase"])
    assert counted == samples(observed.last, name, *labels)
    assert phases == {"done"}


def test_nobody_sees_a_traceback(observed: Observed) -> None:
    """Refusals are results, not exceptions."""
    assert "Traceback" not in observed.process.said
    assert "nanobind" not in observed.process.said
