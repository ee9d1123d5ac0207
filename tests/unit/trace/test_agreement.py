"""A record held against a log: what agrees, what is missing, what is too much, and the clock."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given

from harness.measure.record.record import RunRecord
from harness.measure.record.service_log import ServiceLogPart
from harness.model.errors import SetupError
from harness.model.outcome import Scope
from harness.report.service_log import agreement, logged_rows
from harness.trace.logs.agreement import Agreement, agreement_with, failed_by_id
from harness.trace.logs.entries import LogEntry
from tests.support.evidence import START, evidence, recorded, snapshot_of, watched_evidence

SECONDS, PER_S = 10, 20
RECORD = recorded(evidence(snapshot_of({"p0": 100, "p1": 100}, throttled_per_s=2)))
"""Each second 20 operations of each partition, two of which were throttled once."""
ALL = 2 * SECONDS * (PER_S + 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    at_s: float
    key: str
    status: int = 204
    sender: str = "0"
    number: int = 0

    def entry(self, run: RunRecord = RECORD) -> LogEntry:
        return LogEntry(
            at_s=self.at_s,
            operation="InsertOrMergeEntity",
            status=self.status,
            text="Success",
            duration_ms=4.0,
            server_ms=3.0,
            url=f"https://contoso.table.core.windows.net/{run.endpoint.table}"
            f"(PartitionKey='{self.key}',RowKey='r')",
            request_id=f"{run.run_id}-{self.sender}-{self.number:x}",
            agent="",
            address="",
            account="contoso",
            bytes_sent=0,
            bytes_received=0,
            part=0,
        )


def lines() -> list[Line]:
    """What the service would have logged of `RECORD`."""
    found: list[Line] = []
    for second in range(SECONDS):
        for key in ("p0", "p1"):
            statuses = [503] * 2 + [204] * PER_S
            for place, status in enumerate(statuses):
                at_s = START + second + place / len(statuses)
                number = len(found)
                found.append(Line(at_s=at_s, key=key, status=status, number=number))
    return found


def held(
    logged: Iterable[LogEntry],
    record: RunRecord = RECORD,
    errors: Iterable[Mapping[str, object]] = (),
) -> ServiceLogPart:
    found = Agreement(record, failed_by_id(errors))
    for entry in logged:
        found.add(entry)
    return found.part("log")


def held_whole(entries: list[LogEntry], record: RunRecord) -> ServiceLogPart:
    """Likewise, with the clock looked for."""
    return agreement_with(record, {}, lambda: entries).part("log")


def test_the_log_of_the_same_requests_agrees() -> None:
    """One sentence says how many attempts are in the log."""
    part = held(line.entry() for line in lines())
    assert agreement(part) == f"The service's log agrees: {ALL} of {ALL} attempts."


def test_requests_of_the_loading_of_an_audit_and_of_other_runs_are_left_out() -> None:
    """Only ids with the number of a worker are those of the load."""
    others = [
        Line(at_s=START + 1, key="p0", sender=sender).entry()
        for sender in ("loading", "0-audit", "x-0", "")
    ]
    foreign = Line(at_s=START + 1, key="p0").entry()._replace(request_id="app-1")
    part = held([*(line.entry() for line in lines()), *others, foreign])
    assert part.logged == ALL
    assert part.agrees


def test_one_missing_line_in_a_thousand_is_named_and_no_contradiction() -> None:
    """Logs are written without a promise to be complete."""
    record = recorded(evidence(snapshot_of({f"p{number}": 100 for number in range(6)})))
    whole = [
        Line(at_s=START + second + place / PER_S, key=f"p{number}").entry(record)
        for second in range(SECONDS)
        for place in range(PER_S)
        for number in range(6)
    ]
    part = held(whole[1:], record)
    assert agreement(part) == (
        "The service's log agrees: 1,199 of 1,200 attempts; 1 is missing in the log."
    )


def test_a_missing_line_that_a_log_may_lack_is_none_of_a_partition() -> None:
    """One of 1,200 is no contradiction, even of a partition with few attempts."""
    keys = [f"p{number}" for number in range(60)]
    record = recorded(evidence(snapshot_of(dict.fromkeys(keys, 2), operations_per_s=2)))
    whole = [
        Line(at_s=START + second + place / 2, key=key).entry(record)
        for second in range(SECONDS)
        for place in range(2)
        for key in keys
    ]
    part = held(whole[1:], record)
    assert part.agrees
    assert not part.partitions_apart
    rows = dict(logged_rows(record.model_copy(update={"service_log": part})))
    assert "the same number" not in rows["by partition"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda line: [] if line.at_s < START + 1 else [line],
            f"it has {ALL - 44} of {ALL} attempts",
        ),
        (
            lambda line: [line, line] if line.number < 3 else [line],
            "3 answers in the log are not in the record",
        ),
        (
            lambda line: [dataclasses.replace(line, status=500 if line.status == 503 else 204)],
            f"it has {ALL - 40} of {ALL} attempts and 40 answers in the log are not in the record",
        ),
        (
            lambda line: [] if line.at_s > START + 5 else [line],
            "and it ends before the run does",
        ),
    ],
    ids=["missing", "too many", "another status", "cut"],
)
def test_what_the_log_does_not_explain_is_said(
    change: Callable[[Line], list[Line]], said: str
) -> None:
    """What is missing, too much, of another status or cut is in the sentence."""
    part = held(line.entry() for one in lines() for line in change(one))
    assert not part.agrees
    assert said in agreement(part)


def test_a_partition_with_requests_of_another_one_is_named() -> None:
    """Equal sums do not hide that partitions differ."""
    moved = [
        dataclasses.replace(line, key="p1") if line.key == "p0" and line.number % 4 else line
        for line in lines()
    ]
    part = held(line.entry() for line in moved)
    assert {one.name for one in part.partitions_apart} == {"p0", "p1"}


def test_a_partition_that_the_run_does_not_know_is_named() -> None:
    """A request of the run to a key that it did not count is shown."""
    moved = [dataclasses.replace(line, key="px") if line.number == 7 else line for line in lines()]
    part = held(line.entry() for line in moved)
    assert ("px", 0, 1) in [(one.name, one.attempts, one.logged) for one in part.partitions_apart]


def test_seconds_that_the_log_lacks_are_named() -> None:
    """A gap in the log has its time."""
    part = held(line.entry() for line in lines() if not START + 4 <= line.at_s < START + 6)
    at = dt.datetime.fromtimestamp(START + 4, dt.UTC)
    assert f"{at:%H:%M:%S}" in [one.name for one in part.seconds_apart]


@given(ahead_s=st.floats(-3600, 3600))
def test_the_difference_of_the_clocks_is_found(ahead_s: float) -> None:
    """Counts over time show how far the clock of the service is ahead."""
    part = held(line.entry()._replace(at_s=line.at_s + ahead_s) for line in lines())
    assert part.clock_s == pytest.approx(ahead_s, abs=0.06)
    assert not part.seconds_apart


@pytest.mark.parametrize("answer", [(0, "connection_reset"), (502, "UpstreamMissing")])
def test_seconds_without_answers_are_no_gaps(answer: tuple[int, str]) -> None:
    """While an endpoint was gone, it logged nothing, whatever a gateway answered in its place."""
    gone = snapshot_of({"p0": 100}, throttled_per_s=15, answer=answer)
    record = recorded(evidence(gone))
    whole = [
        Line(at_s=START + second + place / PER_S, key="p0").entry(record)
        for second in range(SECONDS)
        for place in range(PER_S)
    ]
    assert record.series[0].attempts > 1.5 * PER_S
    shifted = [line._replace(at_s=START + 5 + (line.at_s - START) / 2) for line in whole]
    assert held(whole, record).agrees
    assert held(shifted, record).agrees


@pytest.mark.parametrize("ahead_s", [-30.0, 30.0])
def test_clocks_that_differ_by_an_unknown_time_make_no_gaps(ahead_s: float) -> None:
    """A fifth of the lines is missing, evenly: in no second, and not at the end."""
    logged = [
        line.entry()._replace(at_s=line.at_s + ahead_s) for line in lines() if line.number % 5
    ]
    part = held(logged)
    assert part.clock_s is None
    assert not part.seconds_apart
    assert not part.ends_early
    rows = dict(logged_rows(RECORD.model_copy(update={"service_log": part})))
    assert rows["server latency"] == "not known, as the clock is not"


def test_a_log_of_a_slow_clock_does_not_end_early() -> None:
    """The difference of the clocks is known: the last line is that of the last second."""
    logged = (line.entry()._replace(at_s=line.at_s - 30) for line in lines() if line.number % 50)
    part = held(logged)
    assert part.clock_s == pytest.approx(-30, abs=0.06)
    assert not part.ends_early


def test_a_lost_answer_stands_for_no_missing_line() -> None:
    """By their ids, the log has the attempts without an answer; it lacks one of the others."""
    lost = snapshot_of({"p0": 100}, throttled_per_s=1, answer=(0, "connection_reset"))
    record = recorded(evidence(lost))
    ids = [f"{record.run_id}-0-{number:x}" for number in range(SECONDS)]
    whole = [
        Line(at_s=START + number * SECONDS / 210, key="p0", number=number).entry(record)
        for number in range(SECONDS * (PER_S + 1))
    ]
    errors = [{"client_request_id": one, "status": 0} for one in ids]
    assert held(whole, record, errors).agrees
    part = held(whole[:-1], record, errors)
    assert part.missing == 1
    assert not part.agrees


def test_no_clock_is_said_where_too_much_is_missing() -> None:
    """Half a log tells no clock."""
    part = held(line.entry() for line in lines() if line.number % 2)
    assert part.clock_s is None


def test_a_line_too_many_is_not_explained_by_an_attempt_of_another_id() -> None:
    """Of attempts without an answer the ids are known: the log has none of them."""
    lost = snapshot_of({"p0": 100}, throttled_per_s=1, answer=(0, "connection_reset"))
    record = recorded(evidence(lost))
    whole = [
        Line(at_s=START + second + place / PER_S, key="p0", number=PER_S * second + place)
        for second in range(SECONDS)
        for place in range(PER_S)
    ]
    logged = [line.entry(record) for line in [*whole, whole[0]]]
    ids = [f"{record.run_id}-0-{PER_S * SECONDS + number:x}" for number in range(SECONDS)]
    lost_ids = [{"client_request_id": one, "status": 0} for one in ids]
    assert held(logged, record).agrees
    assert not held(logged, record, lost_ids).agrees


def test_failed_attempts_are_found_by_their_ids() -> None:
    """A refused request that the log lacks is one that was not found."""
    refused = [line for line in lines() if line.status == 503]
    errors: list[dict[str, object]] = [
        {"client_request_id": line.entry().request_id, "status": 503} for line in refused
    ]
    part = held(
        (line.entry() for line in lines() if line.number != refused[0].number), RECORD, errors
    )
    assert (part.joined, part.found) == (len(refused), len(refused) - 1)


def test_the_server_latency_stands_beside_the_clients() -> None:
    """The rest of the client's latency is that of network and client."""
    record = recorded(evidence(snapshot_of({"p0": 100, "p1": 100})))
    whole = [line.entry() for line in lines() if line.status == 204]
    record = record.model_copy(update={"service_log": held(whole, record)})
    rows = dict(logged_rows(record))
    assert rows["server latency"] == "p50 3.00 ms, p90 3.00 ms, p99 3.00 ms"
    assert rows["network and client"].startswith("25% of p50")


def test_of_a_watch_all_requests_for_entities_count() -> None:
    """An application chooses its ids; its tables are compared by name."""
    snapshot = snapshot_of({"Orders/p0": 100})
    record = recorded(watched_evidence(snapshot), watched=watched_evidence(snapshot).watched)
    url = "https://contoso.table.core.windows.net/orders(PartitionKey='p0',RowKey='r')"
    whole = [
        Line(at_s=START + second + place / PER_S, key="p0")
        .entry(record)
        ._replace(url=url, request_id=f"sdk-{second}-{place}")
        for second in range(SECONDS)
        for place in range(PER_S)
    ]
    table = whole[0]._replace(operation="CreateTable")
    part = held([*whole, table], record)
    assert part.agrees
    assert (part.logged, part.by_id, part.partitions) == (SECONDS * PER_S, False, 1)


def logged_of_watch(ahead_s: float = 0.0) -> tuple[RunRecord, list[LogEntry]]:
    """An application with 20 upserts a second, and what a service logged by a clock that is ahead.

    It pauses in its fourth second.
    """
    snapshot = snapshot_of({"orders/p0": 100})
    series = [
        point if second != 3 else dataclasses.replace(point, attempts=0, entities=0, operations=0)
        for second, point in enumerate(snapshot.series)
    ]
    attempts = {(204, "", Scope.NONE): (SECONDS - 1) * PER_S}
    snapshot = dataclasses.replace(snapshot, series=tuple(series), attempts=attempts)
    found = watched_evidence(snapshot)
    record = recorded(found, watched=found.watched)
    (part,) = record.partitions
    part = part.model_copy(update={"attempts_by_status": {"204": (SECONDS - 1) * PER_S}})
    entries = [
        Line(at_s=START + second + (place + 0.5) / PER_S + ahead_s, key="p0")
        .entry(record)
        ._replace(
            url="https://contoso.table.core.windows.net/orders(PartitionKey='p0',RowKey='r')",
            request_id=f"sdk-{second}-{place}",
        )
        for second in range(SECONDS)
        for place in range(PER_S)
        if second != 3
    ]
    return record.model_copy(update={"partitions": (part,)}), entries


@pytest.mark.parametrize("ahead_s", [-55.0, -7.0, -1.0, 0.0, 5.0, 45.0])
def test_the_clock_of_a_service_is_found_without_ids(ahead_s: float) -> None:
    """The log of a watch agrees whatever the clock of the service says, and the clock is named."""
    record, entries = logged_of_watch(ahead_s)
    part = held_whole(entries, record)
    assert part.agrees, agreement(part)
    assert part.clock_s == pytest.approx(ahead_s, abs=0.1)


def test_missing_lines_of_a_service_with_another_clock_are_few() -> None:
    """Two of a hundred lines are missing: not those that its clock puts elsewhere."""
    record, entries = logged_of_watch(5.0)
    part = held_whole([one for place, one in enumerate(entries) if place % 50], record)
    assert (part.missing, part.agrees) == (4, False)
    assert part.clock_s == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize("ahead_s", [0.0, 5.0])
def test_other_requests_near_a_watch_are_left_out(ahead_s: float) -> None:
    """Those of a minute before are of something else; those of another account are, too."""
    record, entries = logged_of_watch(ahead_s)
    before = [one._replace(at_s=one.at_s - 70 - SECONDS) for one in entries]
    assert held_whole([*before, *entries], record).agrees
    host = record.endpoint.model_copy(update={"host": "acme.table.core.windows.net"})
    found = Agreement(record.model_copy(update={"endpoint": host}), {})
    for entry in entries:
        found.add(entry)
    assert not found.logged


def test_missing_lines_are_no_other_clock() -> None:
    """Half of the lines is missing: nothing is looked for at other times."""
    record, entries = logged_of_watch()
    part = held_whole(entries[::2], record)
    assert (part.missing, part.clock_s) == (len(entries) // 2, None)


def test_what_a_watch_did_beside_tables_is_not_in_their_log() -> None:
    """Neither its attempts, nor its partitions, nor its errors, nor its seconds are missing."""
    counts = {"Orders/p0": 100, "(queues)/work": 300, "(blobs)/box/a": 200}
    snapshot = snapshot_of(counts, throttled_per_s=2)
    record = recorded(watched_evidence(snapshot), watched=watched_evidence(snapshot).watched)
    url = "https://contoso.table.core.windows.net/orders(PartitionKey='p0',RowKey='r')"
    logged = [
        Line(at_s=START + second + place / 30, key="p0", status=503 if place < 2 else 204)
        .entry(record)
        ._replace(url=url, request_id=f"sdk-{second}-{place}")
        for second in range(SECONDS)
        for place in range(record.partitions[-1].operations // SECONDS + 2)
    ]
    lost = {"table": "(blobs)", "client_request_id": "sdk-of-blob", "status": 404}
    part = held(logged, record, [lost])
    assert part.agrees
    assert (part.answered, part.partitions, part.joined) == (len(logged), 1, 0)
    rows = dict(logged_rows(record.model_copy(update={"service_log": part})))
    assert "network and client" not in rows
    folded = record.model_copy(update={"partitions_folded": record.partitions[0]})
    with pytest.raises(SetupError, match="which attempts were on tables is not known"):
        held([], folded)
