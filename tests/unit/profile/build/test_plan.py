"""The plan of a run: what it would do, by arithmetic that can be done by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from harness.model.services.blobs import AZURE_BLOBS, AZURITE_BLOBS
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, STORAGE
from harness.profile.build.plan import Plan, plan_of
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import parse, resolve
from tests.support.command import Command
from tests.support.keys import sized_settings
from tests.support.profiles import shipped

LOAD = {"users": 20, "spawn_rate_per_s": 10.0, "settle_s": 3.0, "run_time_s": 40}
"""2 s of ramp, 3 s of settling, 40 s measured."""


def planned(endpoint: Service = STORAGE, **parts: Any) -> Plan:
    parts["load"] = {**LOAD, **parts.get("load", {})}
    content = {"question": "Why?", "mix": {"point_query": 1, "upsert_merge": 1}, **parts}
    profile = parse(content, source="a test")
    return plan_of(profile, endpoint, observe(profile, 2000, endpoint))


def both(plan: Plan, what: str) -> float:
    """Reads and writes together."""
    parts = (plan.cost(reads=True), plan.cost(reads=False))
    return math.fsum(getattr(part, what) for part in parts)


def test_a_capped_load_is_its_rate_times_its_time() -> None:
    """2,000 entities/s for 45 s are 90,000 point operations, reads and writes apart."""
    plan = planned()
    assert plan.seconds == 45.0
    assert plan.operations == pytest.approx(90_000)
    assert both(plan, "operations") == pytest.approx(90_000)
    assert both(plan, "entities_per_s") == pytest.approx(2000)
    assert [planned.label for planned in plan.kinds if planned.kind.reads] == ["point_query"]
    reads = plan.cost(reads=True)
    assert reads is not None
    assert reads.operations == pytest.approx(45_000, rel=0.05)


@pytest.mark.parametrize(
    ("parts", "accounts"),
    [
        ({}, 1),
        ({"load": {"max_entities_per_s": 20_000.0}}, 1),
        ({"load": {"max_entities_per_s": 20_001.0}}, 2),
        ({"load": {"entities_per_s": 45_000.0}}, 3),
        ({"load": {"operations_per_s": 30_000.0}}, 2),
        ({"search": {"max_per_s": 60_000.0}}, 3),
        (
            {
                "stage": (
                    {"for_s": 9, "to_entities_per_s": 70_000},
                    {"for_s": 9, "jump": True, "to_entities_per_s": 10},
                )
            },
            4,
        ),
        ({"load": {"max_entities_per_s": math.inf}}, None),
    ],
)
def test_the_highest_wanted_rate_says_how_many_accounts_it_needs(
    parts: dict[str, Any], accounts: int | None
) -> None:
    """As many as the target of 20,000 entities/s goes into it, rounded up."""
    assert planned(**parts).accounts == accounts


def test_the_plan_names_the_accounts_and_the_source(command: Command) -> None:
    """Whoever wants 45,000 entities/s reads how many accounts that takes, and why."""
    said = command.words("plan", "key-spread", "--set", "load.max_entities_per_s=45000")
    assert "3 accounts for 45,000 entities/s: the published target of one is 20,000" in said
    assert "'Targets for data operations'" in said
    assert "-H once for each account" in said


def test_a_transaction_is_many_entities_and_one_request() -> None:
    """At 2,000 entities/s transactions of 100 are 20 billable transactions a second."""
    plan = planned(mix={"transaction": 1}, transaction={"operations": 100})
    assert both(plan, "entities") == pytest.approx(90_000)
    assert both(plan, "requests") == pytest.approx(900)
    assert plan.expected_transactions == pytest.approx(900 + 10 + 2)


def test_a_query_is_a_request_for_each_page() -> None:
    """A scan of 2,500 entities takes three requests and counts 2,500."""
    plan = planned(mix={"partition_scan": 1}, keys={"rows_per_partition": 2500})
    (scan,) = plan.kinds
    assert (scan.entities, scan.requests) == (2500.0, 3.0)
    assert both(plan, "requests") == pytest.approx(90_000 / 2500 * 3)


def test_a_range_of_a_blob_has_no_pages() -> None:
    """A request reads 4 MiB of lines of a blob, in place of 1,000 entities of a table."""
    log = shipped("log-in-blobs")
    reads = {
        kind: next(
            one for one in plan_of(log, kind, observe(log, 500, kind)).kinds if one.kind.reads
        )
        for kind in (AZURITE, AZURITE_BLOBS)
    }
    assert [one.requests for one in reads.values()] == [2.0, 1.0]
    assert {one.entities for one in reads.values()} == {1500.0}


def test_the_price_of_a_run_on_blobs_has_a_request_for_each_new_blob() -> None:
    """The first append to a blob creates it before; under load, any append may be such a one."""
    log = shipped("log-in-blobs")
    table, blobs = (plan_of(log, kind, observe(log, 500, kind)) for kind in (STORAGE, AZURE_BLOBS))
    assert (table.loading_requests, blobs.loading_requests) == (30, 31)
    assert blobs.most_loading * 30 == table.most_loading * 31
    assert blobs.most_load == 2 * table.most_load


def test_loading_is_counted_apart() -> None:
    """3 partitions of 150 rows are 6 requests, at the cap of an account some 0.2 s."""
    plan = planned(
        fields={"key": {"values": 3}},
        keys={"partition_key": "{key}", "rows_per_partition": 150},
    )
    assert (plan.loaded_entities, plan.loading_requests) == (450, 6)
    lengths = {phase.name: phase.seconds for phase in plan.phases}
    assert lengths == {
        "load the tables": 450 / 2000,
        "pause after loading": 2.0,
        "start the users": 2.0,
        "settle": 3.0,
        "measure": 40.0,
    }


def test_a_run_settles_before_its_stages_too() -> None:
    """Nothing is due in that time, which is a part of the run."""
    plan = planned(stage=[{"for_s": 60.0, "to_operations_per_s": 10.0}])
    assert [phase.seconds for phase in plan.phases[-2:]] == [3.0, 60.0]
    assert plan.seconds == 60.0


def test_an_emulator_has_a_cap_of_its_own() -> None:
    """Azurite is asked for 500 entities/s, and loaded as fast as it goes."""
    plan = planned(AZURITE)
    assert both(plan, "entities_per_s") == pytest.approx(500)
    assert plan.phases[0].seconds is None


def test_every_table_of_a_profile_is_planned() -> None:
    """An index table doubles what is loaded, and is created and deleted too."""
    plan = planned(**sized_settings("index-table", 5, 20))
    assert plan.tables == ("", "Index")
    assert plan.loaded_entities == 200
    assert plan.table_requests == 4


def test_a_schedule_is_added_up() -> None:
    """A ramp of 2 s to 1,000 operations/s, held for 43 s, is 44,000 operations."""
    plan = planned(load={"operations_per_s": 1000.0})
    assert plan.operations == pytest.approx(44_000)
    stages = ({"for_s": 10.0, "to_entities_per_s": 100.0}, {"for_s": 10.0, "to_entities_per_s": 0})
    assert planned(stage=stages).operations == pytest.approx(1000)


def test_without_a_rate_nothing_is_claimed() -> None:
    """Without a cap there is no expected number, and without a budget no bound."""
    plan = planned(load={"max_entities_per_s": math.inf})
    assert plan.cost(reads=True) is None
    assert plan.expected_transactions is None
    assert math.isinf(plan.most_transactions)
    assert planned(search={}).expected_transactions is None


def test_a_budget_bounds_what_a_run_may_cost() -> None:
    """The least of every retry there may be and of the budget is what it costs at most."""
    plan = planned()
    assert plan.expected_transactions is not None
    assert plan.most_transactions > 3 * plan.expected_transactions
    assert planned(limits={"billable_transactions": 1000}).most_transactions == 1000


def test_bytes_grow_with_the_entities() -> None:
    """Four times the entity is more to send and to receive, but not for its heads."""
    small, large = planned(), planned(entity={"size_bytes": 4096})
    for what in ("sent_bytes", "received_bytes"):
        assert 1.5 * both(small, what) < both(large, what) < 4 * both(small, what)
    selected = planned(mix={"partition_scan": 1}, query={"select": ["Count"]})
    assert both(selected, "received_bytes") < both(
        planned(mix={"partition_scan": 1}), "received_bytes"
    )


@pytest.mark.parametrize(
    ("time", "shown"), [("90", "1:30"), ("90s", "1:30"), ("5m", "5:00"), ("1h30m", "1:30:00")]
)
def test_the_command_takes_what_locust_takes(time: str, shown: str, command: Command) -> None:
    """Users and run time are those of the run's own options; nothing is sent."""
    out = command("plan", "key-spread", "-u", "50", "-t", time)
    (measured,) = [line for line in out.splitlines() if line.startswith("measure")]
    assert measured.split()[-1] == shown
    assert "no request is sent" in out
    assert "No price" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), True),
        (("--set", "limits.stop_on_account_throttling=false"), False),
        (("--host-kind", "azurite"), False),
    ],
)
def test_a_search_says_what_ends_it(options: tuple[str, ...], said: bool, command: Command) -> None:
    """Its time is an upper bound, -t too, and on an account its throttling ends it earlier."""
    out = command("plan", "find-limit-spread", "-t", "5m", *options)
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert lines["measure"].endswith("5:00 at most")
    assert " at most" in lines["total"]
    assert ("limits.stop_on_account_throttling = false" in " ".join(out.split())) is said


@pytest.mark.parametrize("kind", ["storage", "azurite"])
def test_a_plan_without_a_rate_is_shown(kind: str, command: Command) -> None:
    """Where no rate is wanted the text says so in place of figures."""
    uncapped = [
        "--set", "load.max_entities_per_s=inf", "--set", "load.emulator_max_entities_per_s=inf",
    ]  # fmt: skip
    assert "no target rate" in command("plan", "single-partition", "--host-kind", kind, *uncapped)
    assert "the search chooses" in command("plan", "find-limit", "--host-kind", kind)


def test_what_was_read_from_a_file_is_shown(tmp_path: Path) -> None:
    """A header that was taken for a value is the first one."""
    (tmp_path / "cities.csv").write_text("city\nbonn\nrome\n", encoding="utf-8")
    mine = tmp_path / "mine.toml"
    fields = '# Why?\n[fields.city]\nfrom = "cities.csv"\n[keys]\npartition_key = "{city}"\n'
    mine.write_text(f"{fields}[mix]\ninsert = 1\n", encoding="utf-8")
    planned = plan_of(resolve(str(mine)).profile, AZURITE)
    assert planned.values == (("city", "3 values of cities.csv, 'city' to 'rome'"),)
