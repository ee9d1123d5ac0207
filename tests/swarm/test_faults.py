"""What a run records is what the service counted, whatever the service does to it.

A faulty table service of its own process, before a real Azurite, refuses, resets, hangs and
garbles by rules and by chance, and keeps books of every request. The record of each run is held
against them: attempts by status, of each partition, throttling by scope, what is billed, what is
written and what was returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from harness.endpoint.azurite.process import AzuriteProcess
from tests.support.faulty_runs import Case, Runs
from tests.support.locust_process import Stress, forked

pytestmark = pytest.mark.azurite

BUSY = {"status": 503, "code": "ServerBusy", "message": "The server is busy."}
OVER = "Operations per second is over the account limit."
READS = ["point", "query"]
ENVELOPED = [*READS, "transaction"]
"""Requests whose success has a body that is read."""

FAULTS: dict[str, list[dict[str, Any]]] = {
    "partition busy": [BUSY],
    "account busy": [{**BUSY, "message": OVER}],
    "timed out": [{"status": 500, "code": "OperationTimedOut", "message": "Timed out."}],
    "timed out but applied": [
        {"status": 500, "code": "OperationTimedOut", "message": "Timed out.", "apply": True}
    ],
    "internal error": [{"status": 500, "code": "InternalError", "message": "Sorry."}],
    "408": [{"status": 408, "code": "RequestTimeout", "message": "Slow."}],
    "429": [{"status": 429, "code": "TooManyRequests", "headers": {"x-ms-retry-after-ms": "50"}}],
    "502": [{"status": 502}],
    "504 but applied": [{"status": 504, "apply": True}],
    "reset before": [{"how": "reset"}],
    "reset after": [{"how": "reset", "apply": True}],
    "hang before": [{"how": "hang"}],
    "hang after": [{"how": "hang", "apply": True}],
    "slow": [{"delay_s": 0.3}],
    "truncated": [{"how": "truncate", "kinds": ENVELOPED}],
    "head truncated": [{"how": "truncate", "kinds": ["insert", "update", "upsert", "delete"]}],
    "closed": [{"how": "close"}],
    "no number": [{**BUSY, "headers": {"Retry-After": "9" * 5000}}],
    "garbage": [{"status": 200, "body": '{"value": [', "kinds": ENVELOPED}],
    "wrong type": [{"status": 200, "body": '{"value": {"a": 1}}', "kinds": ["query"]}],
    "redirected": [{"status": 307, "headers": {"Location": "http://127.0.0.1:9/elsewhere"}}],
    "not modified": [{"status": 304}],
    "status 600": [{"status": 600}],
}
"""By name: what is done to a share of the requests."""

PROFILES: dict[str, tuple[int, tuple[str, ...]]] = {
    "single-partition": (100, ("keys.rows_per_partition=100",)),
    "transactions": (100, ("keys.rows_per_partition=100", "transaction.operations=4")),
    "optimistic-locking": (10, ()),
    "query-types": (
        100,
        (
            *("fields.key.values=5", "keys.rows_per_partition=20"),
            *("query.rows=10", "query.partitions=2"),
        ),
    ),
    "bank-transfers": (60, ("fields.transfer.values=30", "actions.statement_of_account=2")),
}
"""By name: entities that are loaded, and what is changed, so that much happens in little time."""

SESSIONS = ("sdk", "wire")


def some(rules: Iterable[dict[str, Any]], share: float) -> list[dict[str, Any]]:
    """These rules for a share of the requests."""
    return [{**rule, "chance": share} for rule in rules]


MIXED = (
    {**BUSY, "phase": "loading", "at_most": 2},
    *(rule for rules in FAULTS.values() for rule in some(rules, 0.01)),
)
ENDLESS = (
    {"how": "loop", "kinds": ["query"], "target": "NextPartitionKey=loop"},
    {"how": "loop", "kinds": ["query"], "chance": 0.3},
)
ADVANCING = ({"how": "endless", "kinds": ["query"]},)
LATE = {**BUSY, "headers": {"Retry-After": "60"}}
AT_THE_END = {
    "asked to wait": (LATE, ("retry.maximum_s=60",)),
    "documented back-off": (
        BUSY,
        ("retry.backoff_s=30", "retry.minimum_s=3", "retry.maximum_s=90"),
    ),
    "schedule": (BUSY, ("retry.strategy='schedule'",)),
    "no answer": ({"how": "hang", "timeout_s": 30}, ("session.read_timeout_s=30",)),
}
"""By name: what is done to a third of the requests, so that most users wait when the run ends."""


def case(
    profile: str,
    session: str,
    *scripts: Iterable[dict[str, Any]],
    more: Iterable[str] = (),
    remote: bool = False,
) -> Case:
    """A process with one run for each of ``scripts``, and these settings."""
    entities, changed = PROFILES[profile]
    return Case(
        profile=profile,
        session=session,
        entities=entities,
        scripts=tuple(tuple(rules) for rules in scripts),
        more=(*(part for one in changed for part in ("--set", one)), *more),
        remote=remote,
    )


def at_the_end(what: str, session: str) -> Case:
    """A run that ends while most of its users wait for their operations."""
    rule, settings = AT_THE_END[what]
    more = ("-u", "40", *(part for one in settings for part in ("--set", one)))
    return case("single-partition", session, some([rule], 0.3), more=more)


CASES = {
    **{
        f"{profile}, {session}": case(profile, session, MIXED)
        for profile in PROFILES
        for session in SESSIONS
    },
    "two workers": case("single-partition", "wire", MIXED, more=forked(2)),
    **{
        f"asked to wait, {session}": at_the_end("asked to wait", session)
        for session in (*SESSIONS, "sdk-default")
    },
    "account over its limit": case(
        "single-partition",
        "wire",
        [{**LATE, "message": OVER, "after_s": 1, "at_most": 4}],
        more=("-t", "30s", "--set", "retry.maximum_s=60"),
        remote=True,
    ),
    "asked to wait for ever": case(
        "single-partition",
        "wire",
        [{**BUSY, "headers": {"Retry-After": "1000000000"}, "chance": 0.3}],
        more=("--set", "retry.maximum_s=0.1"),
    ),
    "pages without end, sdk": case("query-types", "sdk", ENDLESS),
    "pages without end, wire": case("query-types", "wire", ENDLESS),
    **{
        f"pages without end that are all new, {session}": case(
            "query-types", session, ADVANCING, more=("--set", "load.emulator_max_entities_per_s=30")
        )
        for session in (*SESSIONS, "sdk-default")
    },
}
SOON = {
    *("single-partition, sdk", "transactions, wire", "query-types, sdk", "bank-transfers, wire"),
    *("two workers", "account over its limit", "asked to wait for ever"),
    *("pages without end, sdk", "pages without end, wire"),
}
"""Each profile once and each session twice."""
LONG = {
    f"{what}, {session}": at_the_end(what, session)
    for what in AT_THE_END
    if what != "asked to wait"
    for session in SESSIONS
}
EACH = {
    f"each fault, {profile}, {session}": case(
        profile, session, *(some(rules, 0.1) for rules in FAULTS.values()), more=("-t", "2s")
    )
    for profile, session in (
        *((profile, session) for profile in PROFILES for session in SESSIONS),
        ("single-partition", "sdk-default"),
    )
}
"""One process for each, because starting it takes longer than a run."""
THOROUGH = {
    *(
        name
        for pair in itertools.product(PROFILES, SESSIONS)
        if (name := ", ".join(pair)) not in SOON
    ),
    *("each fault, single-partition, sdk", "each fault, single-partition, wire"),
    *("each fault, transactions, sdk", "each fault, transactions, wire"),
    *("each fault, query-types, sdk", "each fault, bank-transfers, wire"),
    *("each fault, optimistic-locking, sdk", "each fault, optimistic-locking, wire"),
}
"""What differs from the other cases by a pair of profile and session alone."""


def marked(name: str, *parts: str) -> Any:
    """The parameters of a test, with the marks of their case."""
    marks = [pytest.mark.thorough] if name in THOROUGH else []
    return pytest.param(name, *parts, marks=[*marks, *([] if name in SOON else [pytest.mark.long])])


@pytest.fixture(scope="module")
def runs(
    stress: Stress,
    azurite: AzuriteProcess,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Runs]:
    """The runs of all tests of this module that were asked for, begun at once."""
    made = Runs(stress, azurite, tmp_path_factory.mktemp("certificates"))
    wanted: dict[str, Case] = {}
    for item in request.session.items:
        called = getattr(item, "callspec", None)
        if item.path == request.path and called is not None:
            name = called.params["name"]
            wanted[name] = {**CASES, **LONG, **EACH}[name]
    # Those that take longest first.
    for name in sorted(wanted, key=lambda name: -len(wanted[name].scripts)):
        made.begin(name, wanted[name])
    yield made
    made.end()


@pytest.mark.parametrize("name", [marked(name) for name in CASES])
def test_the_record_is_what_the_service_counted(name: str, runs: Runs) -> None:
    """With every fault now and then, each request, refusal and entity is in the record once."""
    runs[name].agree()


@pytest.mark.parametrize("name", ["account over its limit"])
def test_a_remote_run_ends_when_its_account_is_throttled(name: str, runs: Runs) -> None:
    """The first refusal for the account ends it, although the operation waits to be sent again."""
    record = runs[name].record
    assert record.throttled["account"] >= 1
    assert "account" in record.ended_by


@pytest.mark.parametrize("name", ["asked to wait for ever"])
def test_what_the_service_asks_to_wait_is_bounded(name: str, runs: Runs) -> None:
    """No operation waits longer than `retry.maximum_s` says, whatever the service asks for."""
    record = runs[name].record
    assert record.throttled["partition"] > 10
    assert record.counts.in_flight == 0
    assert record.outcomes["success"] > record.counts.operations * 0.9


@pytest.mark.parametrize("name", ["pages without end, sdk", "pages without end, wire"])
def test_a_query_whose_pages_lead_nowhere_is_given_up(name: str, runs: Runs) -> None:
    """A page that leads to itself again is a failure, not a page more."""
    ran = runs[name]
    queries = [part for part in ran.record.operations if part.type == "query"]
    failed = sum(part.count - part.outcomes.get("success", 0) for part in queries)
    pages = sum(row.kind == "query" for row in ran.books.of("load"))
    assert failed > 0
    assert pages <= 10 * sum(part.count for part in queries)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_what_waits_when_the_run_ends_is_counted(name: str, runs: Runs) -> None:
    """Attempts of operations that the end of the run cut off are in the record."""
    runs[name].agree()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        marked(name, fault)
        for name in EACH
        for fault in FAULTS
        # The library below takes a head that breaks off for a whole one.
        if not (fault == "head truncated" and name.endswith("sdk-default"))
    ],
)
def test_the_record_is_what_the_service_counted_under_each_fault(
    name: str, fault: str, runs: Runs
) -> None:
    """With one fault in a tenth of the requests the same holds."""
    runs.of(name)[list(FAULTS).index(fault)].agree()


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.endswith(("new, sdk", "new, wire"))]
)
def test_pages_without_end_are_held_to_the_rate(name: str, runs: Runs) -> None:
    """Under a cap of 30 entities/s, 3 s and what eight queries are handed out at once."""
    requests = [row for row in runs[name].books.of("load") if row.kind == "query"]
    assert 8 <= len(requests) <= 3 * 30 + 8 * 3
