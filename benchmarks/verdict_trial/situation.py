"""What situations of the trial are made of: faults, loads, and what may not be said."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks.verdict_trial.plays import Play, Run, Service
from tests.support.situation import Truth

Rule = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation(Truth):
    """One situation.

    Attributes:
        group: What is played: a closed or an open load, a search, workers, accounts, ...
        cause: What is done.
        truth: What is true then.
        causes: How many causes act at once.
    """

    name: str
    group: str
    cause: str
    truth: str
    play: Play
    causes: int = 1
    exit_code: int | None = None


# Faults of the service.
PARTITION = {"status": 503, "code": "ServerBusy", "message": "The server is busy."}
ACCOUNT = {**PARTITION, "message": "Operations per second is over the account limit."}
ERROR = {"status": 500, "code": "InternalError", "message": "Sorry."}


def bucket(per_s: float, *keys: str) -> Rule:
    """Each partition, or each of these, has a token bucket of so many entities/s."""
    return {**PARTITION, "per_s": per_s, "partitions": list(keys)}


def account(per_s: float) -> Rule:
    """All partitions have one token bucket."""
    return {**ACCOUNT, "per_s": per_s, "each": "account"}


def of(*rules: Rule, **haproxy: Any) -> tuple[Service, ...]:
    return (Service(rules=rules, haproxy=haproxy),)


# Loads.
AT_150 = "load.max_entities_per_s=150 load.emulator_max_entities_per_s=150"
POINTS = "mix={point_query=50,upsert_merge=50}"
LARGE = "mix={transaction=100} transaction.operations=100"
"""Transactions of 100: many entities/s cost the machine little."""
UNSTOPPED = "limits.stop_on_account_throttling=false"
TEN_KEYS = "fields.key.values=10 fields.key.prefix=p keys.rows_per_partition=10"
TWENTY_KEYS = "fields.key.values=20 fields.key.prefix=p keys.rows_per_partition=100"
PATIENT = "session.read_timeout_s=10"
IMPATIENT = "session.read_timeout_s=1"


def at(per_s: int) -> str:
    return f"load.max_entities_per_s={per_s} load.emulator_max_entities_per_s={per_s}"


def one(more: str, **run: Any) -> Run:
    """A run of one partition of 100 entities."""
    return Run(settings=f"keys.rows_per_partition=100 {more}", **run)


def ten(more: str, **run: Any) -> Run:
    """A run of ten partitions, p0 to p9."""
    return Run(profile="key-spread", settings=f"{TEN_KEYS} {POINTS} {more}", **run)


def twenty(more: str, **run: Any) -> Run:
    """A run of twenty partitions in a storage account, by large transactions."""
    settings = f"{TWENTY_KEYS} {LARGE} {more}"
    options = {"options": "-u 8 -t 10s", **run}
    return Run(profile="key-spread", settings=settings, rows=2000, azure=True, **options)


def search(start: int, most: int, more: str = "", **run: Any) -> Run:
    steps = f"search.start_per_s={start} search.max_per_s={most} search.settle_s=1"
    steps += " search.hold_s=3 search.confirm_s=4 search.measure_s=20 search.precision=0.15"
    steps += " search.most_steps=8"
    settings = f"keys.rows_per_partition=100 {steps} {more}"
    return Run(profile="find-limit", settings=settings, **{"options": "-u 20", **run})


AMPLE = "limits.billable_transactions=1000000"
"""A budget that ends no search."""

# What may not be said.
THROTTLED = ("Throttled:", " was throttled:", "were throttled,")
FAILING = ("Failing:", "The endpoint, or the way to it")
CAPACITY = ("at its capacity",)
SILENT = ("did not answer",)
SPLIT = ("finer PartitionKey",)
MORE = ("Use --processes", "machines with")
WITHIN = ("Within target",)
