"""The practices held against what a run did, read from its record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.measure.record.measured import PartitionPart, RatesPart
from harness.measure.record.record import RunRecord
from harness.model.operation import FOLDED, WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Result
from harness.model.services.queues import QUEUES
from harness.profile.checks.recorded import seen_in
from harness.profile.practices.checklist import findings_of
from harness.profile.practices.practice import Severity
from harness.report.sentences import hottest, hottest_share
from tests.support.behaviour import attempt, insert, measured, query, result, watched, write
from tests.support.command import Command
from tests.support.profiles import look_of, severity_of, shipped
from tests.support.records import altered, kept, with_partitions

OFFENDS, CONSIDER, FINE, UNTOLD = Severity
GUIDS = [f"0f8fad5b-d9cb-469f-a165-{n:012d}" for n in range(40)]
BUSY = "ServerBusy"


def stressed(name: str = "single-partition", **changes: Any) -> RunRecord:
    """The kept record with the settings of a profile of this version."""
    settings = shipped(name).model_dump(mode="json")
    record = kept().model_copy(update={"profile": {"name": name, **settings}, **changes})
    return RunRecord.from_json(record.to_json())


def inserts(keys: Iterable[str], table: str = "") -> list[Result]:
    return [result(insert(key, f"r{n}", table=table), at_s=2 * n) for n, key in enumerate(keys)]


def reads(count: int) -> list[Result]:
    read = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    return [result(read, at_s=2 * n) for n in range(count)]


def scans(operation: Operation, count: int = 20, **answer: Any) -> list[Result]:
    return [result(operation, attempt(2 * n, 200), **answer) for n in range(count)]


def retries(*waits_s: float) -> list[Result]:
    """An operation that was throttled, and sent again after each of these waits."""
    at_s, attempts = 0.0, []
    for wait_s in waits_s:
        attempts.append(attempt(at_s, 503, code=BUSY))
        at_s += 0.01 + wait_s
    return [result(insert("p"), *attempts, attempt(at_s))]


LATER = [f"t{n:04d}" for n in range(100)]
SPREAD = [f"t{n * 7919 % 101:04d}" for n in range(100)]
RANGE = KeyRange(row_from="a")
RACES = [result(insert("p", f"race{n}__Full"), at_s=2 * n) for n in range(8, 12)]
BATCH = transaction(tuple(insert("p", f"r{n}") for n in range(20)))
FULL = {"entities": 1000, "entities_returned": 1000, "bytes_received": 2_048_000}

CASES: list[tuple[str, Severity, list[Result], str]] = [
    ("append-only", CONSIDER, inserts(LATER), "later and later"),
    ("append-only", CONSIDER, inserts(LATER[::-1]), "earlier and earlier"),
    ("append-only", FINE, inserts(SPREAD), "several places"),
    ("date-key", CONSIDER, inserts(f"2024-05-{1 + n % 28:02d}" for n in range(60)), "date"),
    ("zero-padding", CONSIDER, inserts(f"n{n}" for n in range(8, 12)), "different widths"),
    (
        "zero-padding",
        CONSIDER,
        [*inserts(f"n{n}" for n in range(8, 12)), *scans(query(WHOLE_TABLE))],
        "different widths",
    ),
    (
        "zero-padding",
        OFFENDS,
        [
            *inserts(f"n{n}" for n in range(8, 12)),
            *scans(query(WHOLE_TABLE, key_range=KeyRange(partition_from="n2"))),
        ],
        "misses some of the numbers",
    ),
    ("zero-padding", CONSIDER, RACES, "RowKeys have different widths"),
    (
        "zero-padding",
        OFFENDS,
        [*RACES, *scans(query("p", key_range=RANGE), entities=5, entities_returned=5)],
        "not a range of RowKeys",
    ),
    ("constant-partition-key", CONSIDER, inserts(["p"] * 9, "Logs"), "All 9 operations on table L"),
    ("constant-partition-key", OFFENDS, inserts(["p"] * 1200), "All 1,200 operations"),
    ("constant-partition-key", FINE, inserts(LATER), "several PartitionKeys"),
    ("guid-partition-key", CONSIDER, inserts(GUIDS), "GUIDs"),
    ("guid-partition-key", OFFENDS, [*inserts(GUIDS), *scans(query(WHOLE_TABLE))], "whole table"),
    (
        "guid-row-key",
        OFFENDS,
        [*(result(insert("p", row)) for row in GUIDS), *scans(query(key_range=RANGE))],
        "range of rows",
    ),
    (
        "guid-row-key",
        FINE,
        [*(result(insert("p", row)) for row in GUIDS), *scans(query())],
        "no query needs",
    ),
    ("key-length", OFFENDS, inserts(["p" * 120]), "120 characters"),
    ("key-characters", OFFENDS, inserts(["Zürich"]), "A key of the table"),
    ("key-characters", CONSIDER, inserts(["two words"]), "A key of the table"),
    ("query-density", OFFENDS, scans(query(), entities=500, entities_returned=5), "1.0%"),
    ("query-density", FINE, scans(query(), entities=5, entities_returned=5), "returns all of"),
    (
        "query-density",
        CONSIDER,
        scans(query(filter="Size gt 1"), entities=5, entities_returned=5, estimated=True),
        "20 times",
    ),
    (
        "table-queries",
        OFFENDS,
        scans(query(WHOLE_TABLE), entities=500),
        "500 entities each time, and all of them count. It was sent 20 times.",
    ),
    (
        "table-queries",
        CONSIDER,
        scans(query(WHOLE_TABLE, key_range=KeyRange(partition_from="a")), entities=50),
        "50 entities of several partitions",
    ),
    ("filtering", CONSIDER, scans(query(), **FULL), "20 full pages"),
    ("filtering", FINE, scans(query(top=1000), **FULL), "No query returns"),
    ("projection", CONSIDER, scans(query(), **FULL), "20 of 20 queries of partition_scan had no"),
    ("projection", CONSIDER, scans(query(), **FULL), "2.0 KiB"),
    ("projection", FINE, scans(query(select=("A",)), **FULL), "selects properties"),
    (
        "data-series",
        CONSIDER,
        [*inserts(["p"] * 30), *scans(query(), entities_returned=24, entities=24)],
        "reads 24 of one partition",
    ),
    ("blobs", CONSIDER, [result(BATCH), *scans(query(), entities=20)], "in batches"),
    (
        "transactions",
        OFFENDS,
        [result(insert("p", f"r{n}"), at_s=n / 1000) for n in range(250)],
        "247 requests fewer, 99% of the single writes",
    ),
    (
        "transactions",
        CONSIDER,
        [result(BATCH), *(result(insert("p", f"s{n}"), at_s=n / 1000) for n in range(250))],
        "Other writes are in transactions",
    ),
    ("transactions", FINE, inserts(SPREAD), "0 of 100 single writes"),
    ("transactions", FINE, [result(BATCH)], "Every write was in a transaction"),
    (
        "upsert",
        OFFENDS,
        [*reads(1), result(write(Kind.UPSERT_MERGE, "p"), at_s=0.1)],
        "1 of 1 single write followed a read",
    ),
    (
        "upsert",
        FINE,
        [*reads(1), result(write(Kind.UPDATE_MERGE, "p", etag="W/1"), at_s=0.1)],
        "1 write after a read named the ETag",
    ),
    ("upsert", FINE, [result(write(Kind.UPDATE_MERGE, "p"))], "(ETag *)"),
    ("back-off", OFFENDS, retries(0.03, 0.02, 0.01), "3 of 3 retries after a throttled request"),
    ("back-off", CONSIDER, retries(0.0, 0.05, 1.0), "2 of 3 retries after a throttled request"),
    ("back-off", CONSIDER, retries(0.01, *[1.0] * 4), "1 of 5 retries"),
    ("back-off", CONSIDER, retries(*[1.0] * 5), "Only 0 of 4 further waits"),
    ("back-off", FINE, retries(0.5, 1.0, 2.0, 4.0), "3 of 3 further waits were longer"),
    ("back-off", CONSIDER, inserts(["p"]), "none was sent again"),
    (
        "non-retryable",
        OFFENDS,
        [result(insert("p"), attempt(0.0, 400), attempt(0.1))],
        "1 request",
    ),
    ("non-retryable", FINE, inserts(["p"]), "No request"),
    ("key-change", UNTOLD, inserts(["p"]), "cannot be seen"),
    ("index-rows", UNTOLD, inserts(["p"]), "cannot be seen"),
    ("parallelism", UNTOLD, inserts(["p"]), "cannot be seen"),
    ("connections", UNTOLD, inserts(["p"]), "not in the record"),
    ("large-partitions", UNTOLD, inserts(["p"]), "not in the record"),
    ("ramp", FINE, inserts(["p"]), "from 932 to 1,512"),
    ("account-target", FINE, inserts(["p"]), "1,894 entities/s, 9.5%"),
    ("entity-size", FINE, inserts(["p"]), "1,024"),
    ("hot-partition", OFFENDS, inserts(["p"]), "8.7% of the attempts on partition 'p0' were thr"),
]
"""Practice; how bad; what an application did; a part of the sentence."""


@pytest.mark.parametrize(("name", "severity", "results", "said"), CASES)
def test_what_an_application_did_is_held_against_a_practice(
    name: str, severity: Severity, results: list[Result], said: str
) -> None:
    """The sentence has the figure of the run; there is a change only where one is needed."""
    look = look_of(name, seen_in(watched(results)))
    assert look.severity is severity, look.why
    assert said in look.why
    assert bool(look.change) == (severity in (OFFENDS, CONSIDER))
    assert not look.setting


@pytest.mark.parametrize(
    ("rates", "severity"),
    [([0, 400, 900, 1500], FINE), ([0, 2000, 2000], CONSIDER), ([0, 900, 1800, 3500], FINE)],
)
def test_a_burst_is_a_steep_rise(rates: list[float], severity: Severity) -> None:
    """From little to more than half of a partition's target within a second."""
    points = [kept().series[0].model_copy(update={"entities": rate}) for rate in rates]
    assert severity_of("ramp", seen_in(watched(inserts(["p"]), series=tuple(points)))) is severity


def test_a_search_by_a_property_reads_no_batch() -> None:
    """A filter picks rows out of many batches, which blobs would not help."""
    search = scans(query(filter="Level eq 1"), entities=20)
    assert severity_of("blobs", seen_in(watched([result(BATCH), *search]))) is None


@pytest.mark.parametrize("name", ["data-series", "blobs", "guid-row-key", "guid-partition-key"])
def test_nothing_is_said_without_an_occasion(name: str) -> None:
    """An application that only inserts gives no occasion for these."""
    assert severity_of(name, seen_in(watched(inserts(SPREAD)))) is None


def test_frequent_inserts_at_one_end_offend() -> None:
    """Where most operations insert, all of them go to one server."""
    results = inserts(f"t{n:05d}" for n in range(4500))
    assert severity_of("append-only", seen_in(watched(results))) is OFFENDS


def test_scans_are_compared_with_point_queries() -> None:
    """Shares come from the operations of every record, the scanned entities from the queries."""
    read = kept().operations[0].model_copy(update={"type": "point_query", "count": 10})
    scan = read.model_copy(update={"kind": "row_range_scan", "type": "query", "count": 30})
    results = scans(query(key_range=RANGE), 30, entities=30)
    look = look_of("partition-queries", seen_in(watched(results, operations=(read, scan))))
    assert look.severity is CONSIDER
    assert look.why.startswith("75% of the reads")
    assert "30.0 a query" in look.why


@pytest.mark.parametrize(
    "name",
    ["append-only", "transactions", "upsert", "back-off", "non-retryable"],
)
def test_an_older_record_does_not_say(name: str) -> None:
    """What only the requests tell is named as missing, not as followed."""
    look = look_of(name, seen_in(kept()))
    assert look.severity is UNTOLD
    assert "harness watch" in look.why


@pytest.mark.parametrize("name", ["filtering", "projection", "data-series", "blobs"])
def test_an_older_record_with_queries_does_not_say(name: str) -> None:
    """Queries are counted in every record; what they ask for is not."""
    scan = kept().operations[0].model_copy(update={"kind": "partition_scan", "type": "query"})
    assert severity_of(name, seen_in(kept().model_copy(update={"operations": (scan,)}))) is UNTOLD


@pytest.mark.parametrize(("returned", "severity"), [(900, FINE), (300, CONSIDER), (20, OFFENDS)])
def test_density_is_known_of_every_record(returned: int, severity: Severity) -> None:
    """Entities scanned and returned are sums of each operation."""
    content = {"kind": "partition_scan", "type": "query", "count": 10, "entities": 1000}
    scan = type(kept().operations[0]).model_validate(
        {
            **kept().operations[0].model_dump(),
            **content,
            "entities_returned": returned,
        }
    )
    assert (
        severity_of("query-density", seen_in(kept().model_copy(update={"operations": (scan,)})))
        is severity
    )


def test_queries_over_partitions_are_known_of_every_record() -> None:
    """Their entities stand in the row of the table."""
    scan = kept().operations[0].model_copy(update={"kind": "mine", "type": "query", "count": 10})
    row = (
        kept()
        .partitions[0]
        .model_copy(update={"key": WHOLE_TABLE, "entities_by_kind": {"mine": 500}})
    )
    record = kept().model_copy(update={"operations": (scan,), "partitions": (row,)})
    assert severity_of("table-queries", seen_in(record)) is CONSIDER


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("back-off", FINE),
        ("parallelism", FINE),
        ("connections", FINE),
        ("ramp", FINE),
        ("large-partitions", FINE),
    ],
)
def test_the_settings_of_a_run_of_the_harness_are_known(name: str, severity: Severity) -> None:
    """Its record has the profile, so that what is set needs no figure."""
    assert severity_of(name, seen_in(stressed())) is severity
    assert severity_of("non-retryable", seen_in(stressed())) is None


def test_nothing_is_concluded_from_operations_of_which_none_succeeded() -> None:
    """A run that a failed loading ended had its cap, and a row that nobody wrote is not hot."""
    record = stressed()
    nothing = record.model_copy(
        update={
            "partitions": tuple(
                part.model_copy(update={"entities": 0, "entities_by_kind": {}})
                for part in record.partitions
            ),
            "counts": record.counts.model_copy(update={"entities": 0}),
        }
    )
    assert severity_of("hot-partition", seen_in(nothing)) is None
    row = look_of("hot-row", seen_in(nothing))
    assert row.severity is UNTOLD
    cap = look_of("parallelism", seen_in(record.model_copy(update={"operations": ()})))
    assert "at most 2,000 entities/s" in cap.why


@pytest.mark.parametrize(
    ("kind", "load", "severity", "says"),
    [
        # Whatever the best second had: a load that catches up after a stall is above its rate.
        ("storage", {}, FINE, "at most 2,000 entities/s"),
        ("storage", {"max_entities_per_s": 3000.0}, FINE, "at most 3,000 entities/s"),
        ("storage", {"entities_per_s": 50.0}, FINE, "at most 50.0 entities/s"),
        ("azurite", {}, FINE, "at most 500 entities/s"),
        # JSON has no infinity.
        ("storage", {"uncapped": True}, CONSIDER, "The rate has no cap"),
        ("azurite", {"emulator_max_entities_per_s": None}, CONSIDER, "The rate has no cap"),
        ("azurite", {"uncapped": True}, FINE, "at most 500 entities/s"),
    ],
)
def test_a_record_says_whether_the_load_had_a_cap(
    kind: str, load: dict[str, Any], severity: Severity, says: str
) -> None:
    """The settings say so, and where the endpoint was an emulator, those of an emulator."""
    record = stressed()
    rates = record.account.entities_per_s.model_copy(update={"best_1s": 9000.0})
    changed = {
        "profile": {**record.profile, "load": {**record.profile["load"], **load}},
        "endpoint": record.endpoint.model_copy(update={"kind": kind}),
        "account": record.account.model_copy(update={"entities_per_s": rates}),
    }
    look = look_of(
        "parallelism", seen_in(RunRecord.from_json(record.model_copy(update=changed).to_json()))
    )
    assert look.severity is severity
    assert says in look.why


def spread(count: int) -> tuple[PartitionPart, ...]:
    return with_partitions(kept(), [f"p{n:02d}" for n in range(count)]).partitions


def test_keys_of_every_record_are_looked_at() -> None:
    """Without its behaviour a record names the most used PartitionKeys."""
    record = with_partitions(kept(), [*GUIDS, "Zürich"])
    assert severity_of("guid-partition-key", seen_in(record)) is not None
    characters = look_of("key-characters", seen_in(record))
    assert characters.severity is OFFENDS
    assert "'Zürich'" in characters.why


def test_a_hot_range_is_found_in_every_record() -> None:
    """Neighbouring partitions with most of the load may be on one server. What is the load is what
    the report shows: that of the measured time."""
    rates = [900 if place in (30, 31, 32) else 10 for place in range(60)]

    def at(per_s: float) -> RatesPart:
        return RatesPart(mean=per_s, best_1s=per_s, best_10s=per_s)

    parts = tuple(
        altered(part, entities_per_s=at(rate)) for part, rate in zip(spread(60), rates, strict=True)
    )
    account = altered(kept().account, entities_per_s=at(sum(rates)))
    record = altered(kept(), partitions=parts, account=account)
    shares, most = seen_in(record).shares, hottest(record)
    assert most is not None
    assert (shares.hottest, shares.hottest_share) == (most.key, hottest_share(record))
    look = look_of("hot-range", seen_in(record))
    assert look.severity is CONSIDER
    assert "'p30' to 'p32'" in look.why
    assert "83%" in look.why


def test_queues_beside_tables_say_nothing_about_tables() -> None:
    """A get of messages is no point query, and a queue has no rows."""
    get = Operation(kind=Kind.GET_MESSAGES, partition_key="jobs", table=QUEUES.beside, top=32)
    gets = [result(get, at_s=n, entities=9) for n in range(40)]
    seen = seen_in(measured([*inserts(LATER[:5], "orders"), *gets]))
    assert (seen.operations, seen.reads) == (5, 0)
    assert seen.hottest_service is QUEUES
    assert severity_of("hot-row", seen) is None
    assert "of the entities and messages" in look_of("hot-queue", seen).why


def test_ranges_need_every_partition() -> None:
    """Where the other partitions are counted together, no range has a known share."""
    folded = with_partitions(kept(), [f"p{n:02d}" for n in range(60)], folded=True)
    assert severity_of("hot-range", seen_in(folded)) is UNTOLD


def test_a_redacted_record_names_no_key() -> None:
    """Counts of the behaviour hold no key; aliases have no order and no shape."""
    parts = with_partitions(kept(), [f"key-{n:012x}" for n in range(40)]).partitions
    results = inserts(["secret-9", "secret-10", "secret ö"])
    redacted = {"redacted": True, "partitions": parts}
    findings = findings_of(seen_in(watched(results, **redacted)))
    texts = " ".join(finding.look.why for finding in findings)
    assert "secret" not in texts
    assert "Numbers in PartitionKeys have different widths." in texts
    assert seen_in(watched(results, **redacted)).shares.ranges == ()
    older = findings_of(seen_in(kept().model_copy(update=redacted)))
    untold = {finding.practice.name for finding in older if finding.severity is UNTOLD}
    assert {"date-key", "zero-padding", "key-length", "constant-partition-key"} <= untold


def test_folded_tables_make_no_table() -> None:
    """Tables beyond the limit are counted together, which tells nothing about their keys."""
    results = [row for n in range(30) for row in inserts([f"p{n}"], f"T{n}")]
    tables = seen_in(watched(results)).tables
    assert tables is not None
    assert FOLDED not in {table.table for table in tables}


def saved(record: RunRecord, folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(record.to_json(), encoding="utf-8")
    return str(folder)


def test_the_command_reads_a_record(tmp_path: Path, command: Command) -> None:
    """Text and JSON name the run, what it sent, and each practice; strict fails."""
    folder = saved(watched(inserts(["p"] * 1200)), tmp_path / "run")
    text = command("check", "--record", folder)
    content = json.loads(
        command("check", "--record", f"{folder}/run.json", "--json", "--strict", code=1)
    )
    assert content["name"] in text
    assert "what the run sent" in text
    assert "not in the record" in text
    assert content["shares"]["hottest_share"] == 1.0
    assert "constant-partition-key" in content["offended"]
    for finding in content["findings"]:
        assert finding["practice"] in text
        assert finding["sources"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a profile, a run with --record, or a file of keys"),
        (["single-partition", "--record", "RUN"], "leave PROFILE, --set and --host-kind out"),
        (
            ["--record", "RUN", "--set", "keys.rows_per_partition=2"],
            "leave PROFILE, --set and --host-kind out",
        ),
        (["--record", "RUN/.."], "holds 2 runs"),
        (["--record", "RUN/missing"], "cannot be read"),
    ],
)
def test_bad_input_is_refused(
    arguments: list[str], said: str, tmp_path: Path, command: Command
) -> None:
    """A profile and a record are compared one at a time, and one run at a time."""
    run = saved(kept(), tmp_path / "a")
    saved(kept(), tmp_path / "b")
    assert said in command.refused("check", *(one.replace("RUN", run) for one in arguments))
