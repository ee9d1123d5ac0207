"""The plan of a run survives Locust's transport; and users by stages."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Any

import pytest
from locust.rpc import Message

from harness.endpoint.accounts import Accounts
from harness.endpoint.endpoint import emulator_endpoint
from harness.model.errors import SetupError
from harness.model.services.cosmos import COSMOS_EMULATOR
from harness.model.services.storage import GATEWAY, GATEWAY_ALONE
from harness.profile.profile_loader import NamedProfile, parse
from harness.swarm.master.master_run import Cause, Ending
from harness.swarm.plan import RunPlan, new_plan, require_fitting


def sent(content: Any) -> Any:
    """What arrives of it at a worker."""
    return Message.unserialize(Message("spawn", content, "master").serialize()).data


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"load": {"operations_per_s": 40.0, "arrivals": "poisson"}},
        {"load": {"max_entities_per_s": math.inf}},
        {"stage": ({"for_s": 5, "to_entities_per_s": 50}, {"for_s": 5, "to_entities_per_s": 0})},
        {"search": {"start_per_s": 7, "p99_ms": math.inf}},
        {"scenario": "blog", "fields": {"month": {"values": 5}}, "actions": {"read_post": 3}},
        {
            "fields": {"key": {"values": ("a", "b")}},
            "keys": {"partition_key": "{key}", "rows_per_partition": (30, 40)},
        },
    ],
)
def test_a_plan_arrives_as_it_was_made(parts: dict[str, Any]) -> None:
    """Profile, tables and all, also of a scenario, and what was not set stays unset."""
    plan = made(parts)
    arrived = RunPlan.from_options(sent(plan.to_options()))
    assert arrived == plan
    assert arrived.profile.model_fields_set == plan.profile.model_fields_set
    assert arrived.table_names == ("stress1", "stress1Index")


def test_a_record_says_that_its_load_had_no_cap() -> None:
    """JSON has no infinity: without a cap in its settings, a load has the usual one."""
    without = made({"load": {"max_entities_per_s": float("inf")}})
    assert without.recorded_settings()["load"]["uncapped"] is True
    assert "uncapped" not in made({}).recorded_settings()["load"]


def test_an_own_class_is_recorded_without_the_settings_that_it_replaces() -> None:
    """A mix that nobody sends is no setting of the run, nor keys that were not loaded."""
    plan = made({})
    assert plan.recorded_settings().keys() >= {"question", "mix", "keys", "load"}
    own = dataclasses.replace(plan, own_class="Mine", loads=True).recorded_settings()
    assert own.keys() >= {"keys", "entity", "load"}
    assert own.keys().isdisjoint({"question", "mix", "query", "transaction"})
    assert (own["name"], own["profile"]) == ("Mine", "mine")
    unloaded = dataclasses.replace(plan, own_class="Mine", loads=False).recorded_settings()
    assert unloaded.keys().isdisjoint({"keys", "entity", "loading", "mix"})
    assert unloaded["load"] == own["load"]


def test_an_own_class_and_a_replay_do_not_go_together() -> None:
    """The class would send its own operations, and the record would name those of the trace."""
    profile = {"question": "q", "replay": {"trace": "app.parquet"}}
    with pytest.raises(SetupError, match="user class Mine makes its own operations, and profile r"):
        new_plan(
            NamedProfile(name="replayed", given="r", profile=parse(profile, source="a test")),
            dt.datetime.now(dt.UTC),
            Accounts((emulator_endpoint("http://127.0.0.1:1"),)),
            own_class="Mine",
        )


def made(parts: dict[str, Any]) -> RunPlan:
    """A plan of a profile with these parts."""
    return RunPlan(
        run_id="20260101T000000Z-00000000",
        profile_name="mine",
        profile=parse({"question": "Why?", **parts}, source="a test"),
        table="stress1",
        tables=("", "Index"),
        own_table=True,
        session="sdk",
        fingerprint="f",
        embedded=True,
        kind=COSMOS_EMULATOR,
    )


def test_an_audit_needs_an_endpoint_that_keeps_writes() -> None:
    """Every write would count as lost at one that acknowledges them only."""
    audited = made({"audit": {"enabled": True}})
    require_fitting(dataclasses.replace(audited, kind=GATEWAY))
    require_fitting(dataclasses.replace(made({}), kind=GATEWAY_ALONE))
    with pytest.raises(SetupError, match="endpoint keeps no writes"):
        require_fitting(dataclasses.replace(audited, kind=GATEWAY_ALONE))


def test_a_throttled_account_is_named_as_the_end_of_a_run() -> None:
    """Of several accounts; a single one needs no name."""
    assert str(Ending(Cause.ACCOUNT_THROTTLED)) == "throttling of the account"
    named = Ending(Cause.ACCOUNT_THROTTLED, account="orders1")
    assert str(named) == "throttling of the account orders1"
