"""The situations of the trial, as data: what is done, what is true, and what has to be said.

`truth` is for a reader; `outcome`, `sentence`, `first_screen`, `never` and `rate_per_s` decide, by
`tests.support.situation.Truth`. All are written before the situation is played.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks.verdict_trial.plays import Comparison, Play, Run, Service, Watch
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


# What may not be said.
THROTTLED = ("Throttled:", " was throttled:", "were throttled,")
FAILING = ("Failing:", "The endpoint, or the way to it")
CAPACITY = ("at its capacity",)
SILENT = ("did not answer",)
SPLIT = ("finer PartitionKey",)
MORE = ("Use --processes", "machines with")
WITHIN = ("Within target",)

CLOSED = [
    Situation(
        name="calm",
        group="closed",
        cause="nothing; 150 entities/s of one partition of a storage account",
        truth="within the target of 2,000 entities/s",
        play=one(AT_150, azure=True),
        outcome=("within_target",),
        sentence=("Within target", "nothing was throttled"),
        never=("failed", "Inconclusive", "mulator", *SILENT, *SPLIT, *CAPACITY),
    ),
    Situation(
        name="over-target",
        group="closed",
        cause="nothing; 2,600 entities/s of one partition of a storage account, all served",
        truth="the partition is over its target, though nothing is throttled",
        play=one(f"{LARGE} {at(2600)}", azure=True),
        outcome=("over_target",),
        sentence=("Over target", "nothing was throttled"),
        never=THROTTLED,
    ),
    Situation(
        name="partition-limit",
        group="closed",
        cause="a token bucket of 1,500 entities/s a partition; 2,500 are asked for",
        truth="the partition is throttled at a rate near its target: a finer key helps",
        play=one(f"{LARGE} {at(2500)}", azure=True, services=of(bucket(1500))),
        outcome=("throttled, partition",),
        sentence=("for partition 'p0'",),
        first_screen=("Use a finer PartitionKey",),
        never=(*WITHIN, "far below", "account was throttled", "Split the row"),
    ),
    Situation(
        name="haproxy-low",
        group="closed",
        cause="HAProxy lets 60 requests/s of each PartitionKey through; 150 are asked for",
        truth="throttled far below the target: no published limit is the cause",
        play=one(f"{POINTS} {AT_150}", services=of(per_s=60)),
        outcome=("throttled, unknown",),
        sentence=("for partition 'p0'", "of its target"),
        first_screen=("far below the target",),
        never=(*WITHIN, "its target is", *SPLIT),
    ),
    Situation(
        name="haproxy-hot-key",
        group="closed",
        cause="HAProxy limits one PartitionKey of ten, p4, to 5 requests/s",
        truth="only p4 is throttled",
        play=ten(AT_150, services=of(per_s=5, key="p4")),
        outcome=("throttled",),
        sentence=("all of them for partition 'p4'",),
        never=(*WITHIN, "partitions were throttled", "The account was throttled"),
    ),
    Situation(
        name="account-limit",
        group="closed",
        cause="a token bucket of 1,500 entities/s for the account; 20 partitions ask for 3,000",
        truth="the account's own limit throttles: no key helps",
        play=twenty(f"{at(3000)} {UNSTOPPED}", services=of(account(1500))),
        outcome=("throttled, account",),
        sentence=("for the account",),
        first_screen=("The account was throttled",),
        never=(*WITHIN, *SPLIT, "for partition 'p"),
    ),
    Situation(
        name="random-503",
        group="closed",
        cause="one attempt in 50 is refused with 503 at random, at 150 entities/s",
        truth="throttled, and no limit was near",
        play=one(AT_150, azure=True, services=of({**PARTITION, "chance": 0.02})),
        outcome=("throttled, unknown",),
        sentence=("Throttled", "No limit is known to be the cause"),
        never=(*WITHIN, "its target is", *SPLIT),
    ),
    Situation(
        name="killed",
        group="closed",
        cause="the service is killed in the third second",
        truth="the endpoint is gone, which says nothing about its capacity",
        play=one(AT_150, changes=((2.5, "service", "kill"),)),
        outcome=("failing",),
        sentence=("connection_refused", "say nothing about its capacity"),
        never=(*WITHIN, "entities/s is the limit", *SPLIT),
    ),
    Situation(
        name="stopped",
        group="closed",
        cause="the service is stopped (SIGSTOP) in the third second, for good",
        truth="the endpoint does not answer any more",
        play=one(f"{AT_150} {IMPATIENT}", changes=((2.5, "service", "stop"),)),
        outcome=("failing",),
        sentence=("timeout",),
        never=(*WITHIN, *SPLIT, "entities/s is the limit"),
    ),
    Situation(
        name="paused",
        group="closed",
        cause="the service is stopped for 2.5 s of 9 s, and goes on",
        truth="the endpoint did not answer for 2.5 s, nothing failed and nothing was throttled",
        play=one(
            f"{AT_150} {PATIENT}",
            options="-u 8 -t 9s",
            changes=((3.0, "service", "stop"), (5.5, "service", "continue")),
        ),
        first_screen=("did not answer for 2. | no operation succeeded for 2",),
        never=(*FAILING, *THROTTLED, "not of the endpoint"),
    ),
    Situation(
        name="slow",
        group="closed",
        cause="every answer takes 200 ms, however few are asked for; 8 users ask for 150/s",
        truth="the users wait for answers; more users would get more",
        play=one(f"{POINTS} {AT_150}", services=of({"delay_s": 0.2})),
        outcome=("endpoint_limited", "client_limited, users"),
        sentence=("waiting for answers | waited for an answer",),
        never=(*THROTTLED, *CAPACITY, *WITHIN),
    ),
    Situation(
        name="capacity",
        group="closed",
        cause="the service works on one request at a time, each for 10 ms; 400/s are asked for",
        truth="the endpoint is at its capacity of 100 requests/s",
        play=one(f"{POINTS} {at(400)}", options="-u 8 -r 1 -t 8s", services=of({"work_s": 0.01})),
        outcome=("endpoint_limited",),
        sentence=("at its capacity",),
        never=(*THROTTLED, *WITHIN, "more users are needed"),
    ),
    Situation(
        name="far-away",
        group="closed",
        cause="packets are underway for 60 ms each way; 8 users ask for 150/s",
        truth="the users wait for answers that are long underway",
        play=one(f"{POINTS} {AT_150}", azure=True, delay_ms=60.0),
        outcome=("endpoint_limited", "client_limited, users"),
        sentence=("waiting for answers | waited for an answer",),
        never=(*THROTTLED, *CAPACITY, *WITHIN),
    ),
    Situation(
        name="losses",
        group="closed",
        cause="2 % of the packets are lost; 40 users ask for 60/s",
        truth="TCP repeats what is lost: the rate is held and nothing fails",
        play=one(
            f"{POINTS} {at(60)}", options="-u 40 -t 8s", azure=True, delay_ms=5.0, loss_percent=2.0
        ),
        outcome=("within_target",),
        sentence=("nothing was throttled",),
        never=(*FAILING, *CAPACITY, *THROTTLED),
    ),
    Situation(
        name="unplugged",
        group="closed",
        cause="the network link is pulled for 3 s of 9 s; the client waits for 1 s",
        truth="requests time out: the way to the endpoint fails",
        play=one(
            f"{POINTS} {AT_150} {IMPATIENT}",
            options="-u 8 -t 9s",
            azure=True,
            delay_ms=1.0,
            changes=((3.0, "link", "pull"), (6.0, "link", "plug in")),
        ),
        outcome=("failing",),
        sentence=("timeout",),
        never=(*WITHIN, *THROTTLED, *CAPACITY),
    ),
    Situation(
        name="busy-machine",
        group="closed",
        cause="four processes use up both cores; 3,000 requests/s are asked for",
        truth="others keep the machine busy: the rate is no limit of the endpoint",
        play=one(f"{POINTS} {at(3000)}", options="-u 20 -t 7s", burnt=2),
        outcome=("client_limited",),
        sentence=("other processes",),
        never=(*WITHIN, *THROTTLED, *CAPACITY, *FAILING),
    ),
    Situation(
        name="busy-but-held",
        group="closed",
        cause="the run has only one core, which two other processes use; 100/s are held",
        truth="the rate is held; latencies are only upper bounds",
        play=one(
            at(100),
            options="-u 8 -t 7s --set \"conditions=['p99(service)<0.1ms','throttled_ratio<1%']\"",
            burnt=1,
            pinned=True,
        ),
        outcome=("within_target",),
        first_screen=("only upper bounds", "NOT DECIDED"),
        conditions=(None, True),
        never=(*THROTTLED, *CAPACITY, *FAILING, "FAIL:"),
    ),
    Situation(
        name="paused-generator",
        group="closed",
        cause="the run itself is stopped (SIGSTOP) for 2.5 s of 9 s, and goes on",
        truth="the generator was away, not the endpoint",
        play=one(
            AT_150,
            options="-u 8 -t 9s",
            changes=((3.0, "run", "stop"), (5.5, "run", "continue")),
        ),
        outcome=("client_limited", "inconclusive", "within_target"),
        never=(
            *SILENT,
            *FAILING,
            *THROTTLED,
            *CAPACITY,
            "no operation succeeded",
            "Use --processes",
        ),
    ),
    Situation(
        name="slow-generator",
        group="closed",
        cause="a client of 800 requests/s a core (sdk-default) is asked for 4,000/s",
        truth="the generator is the limit",
        play=one(f"{POINTS} {at(4000)}", options="-u 12 -t 7s --session sdk-default"),
        outcome=("client_limited, generator",),
        sentence=("not of the endpoint",),
        never=(*WITHIN, *THROTTLED, *CAPACITY, *FAILING),
    ),
    Situation(
        name="clock-forward",
        group="closed",
        cause="the clock of the machine is set 5 s ahead in the middle of a run",
        truth="the load went on at 100/s; no rate may be several times that",
        play=one(at(100), options="-u 8 -t 12s", changes=((4.0, "clock", "+5"),)),
        outcome=("within_target", "inconclusive", "client_limited"),
        never=(*FAILING, *THROTTLED, *CAPACITY, *SILENT),
    ),
    Situation(
        name="clock-back",
        group="closed",
        cause="the clock of the machine is set 5 s back in the middle of a run",
        truth="the load went on at 100/s; no rate may be several times that",
        play=one(at(100), options="-u 8 -t 9s", changes=((4.0, "clock", "-5"),)),
        outcome=("within_target", "inconclusive", "client_limited"),
        never=(*FAILING, *THROTTLED, *CAPACITY, *SILENT, "Over target"),
    ),
]

OPEN = [
    Situation(
        name="open-few-users",
        group="open",
        cause="every answer takes 200 ms; 100/s are due, and there are 10 users",
        truth="twenty users are needed: the endpoint is not at its capacity",
        play=one(
            f"{POINTS} load.operations_per_s=100",
            options="-u 10 -t 8s",
            services=of({"delay_s": 0.2}),
        ),
        outcome=("client_limited, users", "endpoint_limited"),
        sentence=("users",),
        never=(*WITHIN, *THROTTLED, *CAPACITY),
    ),
    Situation(
        name="open-capacity",
        group="open",
        cause="the service does one request at a time, each for 20 ms; 100/s are due",
        truth="the endpoint is at its capacity of 50/s",
        play=one(
            f"{POINTS} load.operations_per_s=100",
            options="-u 40 -r 10 -t 9s",
            services=of({"work_s": 0.02}),
        ),
        outcome=("endpoint_limited",),
        sentence=("of the wanted 100",),
        never=(*WITHIN, *THROTTLED, "more users are needed"),
    ),
    Situation(
        name="open-stalls",
        group="open",
        cause="for 0.7 s of every second no answer leaves; 50/s are due",
        truth="the rate is held, and the endpoint does not answer for 0.7 s again and again",
        play=one(
            f"{POINTS} load.operations_per_s=50",
            options="-u 60 -t 8s",
            services=of({"stall_s": 0.7}),
        ),
        outcome=("within_target",),
        first_screen=("did not answer",),
        never=(*THROTTLED, *FAILING),
    ),
    Situation(
        name="open-paused-generator",
        group="open",
        cause="the run itself is stopped (SIGSTOP) for 2.5 s of 9 s; 100/s are due",
        truth="the generator was away, not the endpoint: response latencies are its own",
        play=one(
            f"{POINTS} load.operations_per_s=100",
            options="-u 30 -t 9s",
            changes=((3.0, "run", "stop"), (5.5, "run", "continue")),
        ),
        first_screen=("sent at most 2,",),
        never=(*SILENT, *FAILING, *THROTTLED, *CAPACITY, "no operation succeeded"),
    ),
]

SEARCHES = [
    Situation(
        name="search-limit",
        group="search",
        cause="a token bucket of 1,000 entities/s; the search goes from 400 to 3,000",
        truth="about 1,000 entities/s, by throttling",
        play=search(400, 3000, LARGE, azure=True, services=of(bucket(1000))),
        outcome=("throttled",),
        sentence=("The limit is | Highest sustainable rate",),
        rate_per_s=(800.0, 1100.0),
        never=("Split the row",),
    ),
    Situation(
        name="search-generator",
        group="search",
        cause="the run has one core, which two other processes use; the search goes up to 6,000/s",
        truth="the generator is the limit: only a lower bound is known",
        play=search(300, 6000, f"{POINTS} search.factor=5", burnt=1, pinned=True),
        outcome=("client_limited",),
        sentence=("generator was the limit | At least | No sustainable rate",),
        never=(*CAPACITY, "were throttled, more than"),
    ),
    Situation(
        name="search-capacity",
        group="search",
        cause="the service does one request at a time, each for 8 ms: 125/s",
        truth="at most 125/s, by latency or by what was served",
        play=search(50, 600, POINTS, services=of({"work_s": 0.008})),
        outcome=("endpoint_limited",),
        rate_per_s=(80.0, 130.0),
        never=("throttled, more than", "more users may reach"),
    ),
    Situation(
        name="search-users",
        group="search",
        cause="every answer takes 200 ms; 4 users can send 20/s, and the search goes up to 200/s",
        truth="more users are needed: the endpoint's limit is not found",
        play=search(10, 200, POINTS, options="-u 4", services=of({"delay_s": 0.2})),
        outcome=("client_limited, users",),
        sentence=("more users",),
        never=("Highest sustainable", *CAPACITY),
    ),
]

WORKERS = [
    Situation(
        name="killed-worker",
        group="workers",
        cause="one of two workers is killed",
        truth="the record is incomplete",
        play=one(AT_150, workers=2, options="-u 8 -t 9s", changes=((3.0, "worker", "kill"),)),
        outcome=("inconclusive",),
        sentence=("last report is missing",),
        never=(*WITHIN, *FAILING),
    ),
    Situation(
        name="paused-worker",
        group="workers",
        cause="one of two workers is stopped (SIGSTOP) for 3 s of 10 s, and goes on",
        truth="a worker was away, not the endpoint",
        play=one(
            AT_150,
            workers=2,
            options="-u 8 -t 10s",
            changes=((3.0, "worker", "stop"), (6.0, "worker", "continue")),
        ),
        outcome=("within_target", "client_limited", "inconclusive"),
        never=(*SILENT, *FAILING, *CAPACITY, *MORE),
    ),
]

ACCOUNTS = [
    Situation(
        name="one-account-limited",
        group="accounts",
        cause="of two accounts the first has a token bucket of 30 entities/s",
        truth="the first account's own limit throttles",
        play=ten(at(200), services=(*of(account(30)), *of())),
        outcome=("throttled, account",),
        sentence=("for account",),
        never=(*WITHIN, *SPLIT),
    ),
    Situation(
        name="one-account-gone",
        group="accounts",
        cause="of two accounts the second is killed in the third second",
        truth="half of the requests fail: nothing is throttled",
        play=ten(AT_150, services=(*of(), *of()), changes=((2.5, "service", "kill"),)),
        outcome=("failing",),
        sentence=("connection_refused",),
        never=(*WITHIN, *THROTTLED),
    ),
]

WATCHES = [
    Situation(
        name="watch-limit",
        group="watch",
        cause="p1 of four keys has a token bucket of 4 entities/s; the SDK retries",
        truth="p1 is throttled, which the program does not see",
        play=Watch(between="time.sleep(0.01)", service=of(bucket(4, "p1"))[0]),
        outcome=("throttled",),
        sentence=("all of them for partition 'orders/p1'",),
        never=(*WITHIN, "asked for no more"),
    ),
    Situation(
        name="watch-slow",
        group="watch",
        cause="every answer takes 50 ms, and the program sends the next request at once",
        truth="within the target, but slow answers kept the program from asking for more",
        play=Watch(between="time.sleep(0)", seconds=10.0, service=of({"delay_s": 0.05})[0]),
        outcome=("within_target", "endpoint_limited"),
        never=("asked for no more", *THROTTLED, *FAILING),
    ),
    Situation(
        name="watch-busy",
        group="watch",
        cause="a program computes between writes, with a whole core",
        truth="the application is the limit",
        play=Watch(between="sum(range(1_500_000))", seconds=10.0),
        outcome=("client_limited, application",),
        sentence=("not the limit of the endpoint",),
        never=(*THROTTLED, *FAILING, *WITHIN),
    ),
]

COMPARISONS = [
    Situation(
        name="equal-runs",
        group="comparison",
        cause="two equal runs",
        truth="no difference",
        play=Comparison(runs=(one(AT_150), one(AT_150))),
        sentence=("No difference",),
        conditions=(True, True),
        never=(" is better", " is throttled less"),
    ),
    Situation(
        name="slower-run",
        group="comparison",
        cause="in the second run every answer takes 30 ms longer; both hold the rate",
        truth="the first run has better latencies, and an equal rate",
        play=Comparison(
            runs=(one(AT_150), one(AT_150, services=of({"delay_s": 0.03}))),
            fail_if=("entities_per_s < 95%", "p50(service) > 150%"),
        ),
        sentence=("latency",),
        conditions=(True, False),
        never=("Entities/s: A", "No difference that"),
    ),
    Situation(
        name="one-key-or-ten",
        group="comparison",
        cause="HAProxy lets 60 requests/s of a key through: one key, and ten keys, at 150/s",
        truth="one key is throttled, ten are not",
        play=Comparison(
            runs=(
                one(f"{POINTS} {AT_150}", services=of(per_s=60)),
                ten(AT_150, services=of(per_s=60)),
            ),
        ),
        sentence=("single-partition, which was throttled | B is throttled less than A",),
        conditions=(True, True),
        never=("No difference that", "A is throttled less"),
    ),
]

TWO_CAUSES = [
    Situation(
        name="limit-and-busy",
        group="closed",
        causes=2,
        cause="a token bucket of 40 entities/s, and four processes on both cores",
        truth="throttled, and latencies are only upper bounds",
        play=one(f"{POINTS} {at(100)}", services=of(bucket(40)), burnt=2),
        outcome=("throttled",),
        sentence=("for partition 'p0'",),
        first_screen=("only upper bounds",),
        never=(*WITHIN, *FAILING, "is the limit of the generator"),
    ),
    Situation(
        name="hidden-limit",
        group="closed",
        causes=2,
        cause="a bucket of 1,500 entities/s, never reached: 2 users wait 200 ms for each answer",
        truth="too few users for 2,500 entities/s; a limit of the partition was not reached",
        play=one(
            f"{LARGE} {at(2500)}",
            options="-u 2 -t 15s",
            azure=True,
            services=of(bucket(1500), {"delay_s": 0.2}),
        ),
        outcome=("endpoint_limited", "client_limited, users"),
        sentence=("waiting for answers | waited for an answer",),
        never=(*THROTTLED, *WITHIN, *CAPACITY, *SPLIT),
    ),
    Situation(
        name="account-behind-partition",
        group="closed",
        causes=2,
        cause="one of 20 keys takes half the load and has 400 entities/s; the account has 1,000",
        truth="both throttle: the hot partition and the account",
        play=twenty(
            f"{at(3000)} {UNSTOPPED} fields.key.distribution=zipfian fields.key.theta=1.3",
            services=of(bucket(400, "p00"), account(1000)),
        ),
        outcome=("throttled",),
        sentence=("account", "partition 'p00'"),
        never=WITHIN,
    ),
    Situation(
        name="stalls-and-limit",
        group="closed",
        causes=2,
        cause="one attempt in ten is refused with 503; for 0.6 s of every second no answer leaves",
        truth="throttled, and the endpoint does not answer for 0.6 s again and again",
        play=one(
            f"{POINTS} {at(60)}",
            options="-u 60 -t 8s",
            services=of({**PARTITION, "chance": 0.1, "stall_s": 0.6}, {"stall_s": 0.6}),
        ),
        outcome=("throttled",),
        first_screen=("did not answer",),
        never=(*WITHIN, *FAILING),
    ),
    Situation(
        name="errors-and-limit",
        group="closed",
        causes=2,
        cause="5 % of the attempts are answered 500, and 5 % are refused with 503",
        truth="the endpoint fails, and throttles: both are said",
        play=one(AT_150, services=of({**ERROR, "chance": 0.05}, {**PARTITION, "chance": 0.053})),
        outcome=("failing", "throttled"),
        sentence=("500 InternalError", "throttled"),
        never=(*WITHIN, *SPLIT, "its target is"),
    ),
    Situation(
        name="slow-and-busy",
        group="closed",
        causes=2,
        cause="every answer takes 50 ms, and four processes use both cores; 3,000/s are asked for",
        truth="nothing about the endpoint's capacity can be said",
        play=one(f"{POINTS} {at(3000)}", options="-u 40", services=of({"delay_s": 0.05}), burnt=2),
        outcome=("client_limited",),
        never=(
            *WITHIN,
            *THROTTLED,
            *CAPACITY,
            *FAILING,
            "not of the endpoint",
            "not the endpoint's",
        ),
    ),
    Situation(
        name="killed-worker-and-limit",
        group="workers",
        causes=2,
        cause="one of two workers is killed, and one attempt in ten is refused with 503",
        truth="incomplete; what is known was throttled",
        play=one(
            AT_150,
            workers=2,
            options="-u 8 -t 9s",
            services=of({**PARTITION, "chance": 0.1}),
            changes=((3.0, "worker", "kill"),),
        ),
        outcome=("inconclusive",),
        sentence=("last report is missing", "were throttled"),
        never=(*WITHIN, *FAILING),
    ),
    Situation(
        name="full-disk-and-limit",
        group="closed",
        causes=2,
        cause="the disk has room for 16 KB of results, and one attempt in ten is refused with 503",
        truth="throttled; the results could not be written",
        play=one(AT_150, services=of({**PARTITION, "chance": 0.1}), disk_bytes=16_384),
        sentence=("hrottled",),
        first_screen=("cannot be written",),
        exit_code=3,
        never=(*WITHIN, *FAILING),
    ),
    Situation(
        name="limit-then-killed",
        group="closed",
        causes=2,
        cause="one attempt in ten is refused with 503 until the service is killed",
        truth="the endpoint is gone, after it throttled",
        play=one(
            AT_150,
            services=of({**PARTITION, "chance": 0.1}),
            changes=((3.0, "service", "kill"),),
        ),
        outcome=("failing",),
        sentence=("connection_refused", "throttled"),
        never=(*WITHIN, *SPLIT),
    ),
    Situation(
        name="watch-limit-and-busy",
        group="watch",
        causes=2,
        cause="p1 of twelve keys has 0.7 entities/s, and four processes use both cores",
        truth="p1 is throttled, and latencies are only upper bounds",
        play=Watch(keys=12, seconds=18.0, service=of(bucket(0.7, "p1"))[0], burnt=2),
        outcome=("throttled",),
        sentence=("for partition 'orders/p1'",),
        first_screen=("only upper bounds",),
        never=(*WITHIN, "asked for no more"),
    ),
    Situation(
        name="search-limit-and-errors",
        group="search",
        causes=2,
        cause="a token bucket of 1,000 entities/s, and 5 % of the attempts are answered 500",
        truth="no more than about 1,000 entities/s, and the endpoint fails: both are said",
        play=search(
            400, 3000, LARGE, azure=True, services=of({**ERROR, "chance": 0.05}, bucket(1000))
        ),
        first_screen=("500 InternalError",),
        never=(*WITHIN, "ore users", "too few"),
    ),
]

# Written after the rules were mended of what the first fifty had shown.
AFTERWARDS = [
    Situation(
        name="moved-partition",
        group="closed",
        cause="from the fourth second on 40 requests to p3, one of ten keys, are refused with 503",
        truth="only p3 was throttled, for a while, and far below its target",
        play=ten(
            AT_150,
            options="-u 8 -t 10s",
            services=of({**PARTITION, "partitions": ["p3"], "after_s": 3.0, "at_most": 40}),
        ),
        outcome=("throttled, unknown",),
        sentence=("all of them for partition 'p3'", "No limit is known to be the cause"),
        never=(*WITHIN, *FAILING, "partitions were throttled", "its target is", *SPLIT),
    ),
    Situation(
        name="watch-errors",
        group="watch",
        cause="one request in ten is answered 500, and the SDK tries again",
        truth="the endpoint fails, which the program does not see",
        play=Watch(service=of({**ERROR, "every": 10})[0], seconds=10.0),
        outcome=("failing",),
        sentence=("500 InternalError",),
        never=(*WITHIN, *THROTTLED, "asked for no more"),
    ),
    Situation(
        name="equal-beside-others",
        group="comparison",
        cause="two equal runs, the second with one core, which two other processes use",
        truth="no difference: latencies of a busy machine decide nothing",
        play=Comparison(
            runs=(one(at(100)), one(at(100), burnt=1, pinned=True)),
            fail_if=("throttled_ratio > first + 1%", "p99(service) > 120%"),
        ),
        sentence=("No difference", "the machine was saturated"),
        conditions=(True, None),
        never=("latency: A", " is better"),
    ),
    Situation(
        name="limit-behind-slow-answers",
        group="open",
        causes=2,
        cause="every answer takes 100 ms, and a partition has 1,200 entities/s; 1,800 are due",
        truth="the partition is throttled near its target, though every answer is slow",
        play=one(
            f"{LARGE} load.entities_per_s=1800",
            options="-u 40 -t 14s",
            azure=True,
            services=of(bucket(1200), {"delay_s": 0.1}),
        ),
        outcome=("throttled, partition",),
        sentence=("for partition 'p0'",),
        first_screen=("Use a finer PartitionKey",),
        never=(*WITHIN, *FAILING, *CAPACITY, "too few users", "Split the row"),
    ),
    Situation(
        name="paused-generator-and-limit",
        group="closed",
        causes=2,
        cause="one attempt in ten is refused with 503, and the run is stopped for 2.5 s of 9 s",
        truth="throttled; the generator was away, not the endpoint",
        play=one(
            f"{POINTS} {at(100)}",
            options="-u 8 -t 9s",
            services=of({**PARTITION, "chance": 0.1}),
            changes=((3.0, "run", "stop"), (5.5, "run", "continue")),
        ),
        outcome=("throttled",),
        first_screen=("sent at most 2,",),
        never=(*WITHIN, *FAILING, *SILENT, *CAPACITY, "no operation succeeded", *MORE),
    ),
]

SITUATIONS = [
    *CLOSED,
    *OPEN,
    *SEARCHES,
    *WORKERS,
    *ACCOUNTS,
    *WATCHES,
    *COMPARISONS,
    *TWO_CAUSES,
    *AFTERWARDS,
]
