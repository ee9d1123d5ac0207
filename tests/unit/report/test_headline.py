"""The first words of a page: the verdict in one short sentence, and what a stall was."""

from __future__ import annotations

from typing import Any

import pytest

from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.findings import GapPart, StallPart
from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.measure.record.record import RunRecord
from harness.model.errors import printable
from harness.model.figures import number
from harness.model.operation import WHOLE_TABLE
from harness.model.services.blobs import AZURITE_BLOBS
from harness.report.events import moved_together, stall_sentence
from harness.report.headline import headline, is_warming_up
from harness.report.limits import account_limit, partition_limit
from harness.report.web.key_figures import key_figures
from tests.support.records import altered, kept, with_partitions

RECORD = kept()
BLOBS = altered(RECORD.endpoint, kind=AZURITE_BLOBS.name)
STALL = StallPart(
    start_s=17, length_s=2, before_per_s=667.4, rate_per_s=2.0, waited=57, keys=(("a", 57),)
)


def judged(result: str, limited_by: str = "unknown", **changes: Any) -> RunRecord:
    verdict = altered(RECORD.verdict, result=result, limited_by=limited_by)
    return altered(RECORD, verdict=verdict, **changes)


def enforcing(*moves: MovePart, partition: float = 250.0) -> EnforcedPart:
    return EnforcedPart(
        partition_per_s=partition, account_per_s=2500.0, server_per_s=500.0, moves=moves
    )


def move(key: str, start_s: float) -> MovePart:
    return MovePart(start_s=start_s, offline_s=3.0, key=key, from_server=0, to_server=1)


def throttled_most(*keys: str) -> RunRecord:
    """Throttled attempts nearly all for the first of ``keys``."""
    record = with_partitions(judged("throttled", "partition", enforced=enforcing()), keys)
    parts = tuple(
        altered(part, attempts_by_status={"503 ServerBusy partition": 1 if place else 98})
        for place, part in enumerate(record.partitions)
    )
    return altered(record, partitions=parts)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            judged("throttled", "partition", enforced=enforcing()),
            "Partition 'p0' was throttled: its limit is 250 entities/s.",
        ),
        (
            judged("throttled", "account", enforced=enforcing()),
            "The account was throttled: its limit is 2,500 entities/s.",
        ),
        (
            with_partitions(judged("throttled", "partition"), ["a", "b"]),
            "2 partitions were throttled, 'a' the most.",
        ),
        (
            throttled_most(WHOLE_TABLE, "b", "c"),
            "Queries over several partitions were throttled.",
        ),
        (
            with_partitions(judged("throttled", "partition"), ["a", WHOLE_TABLE]),
            "1 partition was throttled, 'a' the most.",
        ),
        (
            throttled_most("a", "b", "c"),
            "Partition 'a' was throttled: its limit is 250 entities/s. 2 others had 2.0%",
        ),
        (judged("client_limited", "users"), "There were too few users for the requested rate."),
        (
            judged("client_limited", "generator"),
            "The generator was the limit, not the endpoint.",
        ),
        (judged("endpoint_limited", "endpoint"), "The endpoint was the limit: it served less"),
        (
            judged("within_target", "load", throttled_ratio=0.0),
            "Nothing was throttled at 1,692 entities/s: the partition took 85% of its target.",
        ),
        (judged("over_target", "load"), "The account went over its target."),
        (
            judged("no_target", "load", throttled_ratio=0.0, endpoint=BLOBS),
            "Nothing was throttled at 1,692 lines/s. The documents name no target for blobs.",
        ),
        (kept("run-v1-search.json"), "At least 250 entities/s can be sustained."),
    ],
)
def test_the_verdict_in_a_short_sentence(record: RunRecord, said: str) -> None:
    """It names what was the limit, and holds rates against the limit that was in force."""
    assert headline(record).startswith(said)
    assert len(headline(record)) < 100


def test_an_inconclusive_run_names_its_failures_once() -> None:
    """Its reason is its headline, and has them."""
    why = (
        "6 measured operations are fewer than 100. 1 of 8 attempts failed (12%): 500 InternalError."
    )
    record = judged("inconclusive", "unknown")
    changes = {
        "sentence": f"Inconclusive: {why}",
        "why": why,
        "failures": "12% of the attempts failed (500 InternalError).",
    }
    verdict = record.verdict.model_copy(update=changes)
    assert headline(altered(record, verdict=verdict)) == why


def test_an_enforced_limit_is_the_one_in_force() -> None:
    """Published targets are in force only where no gateway enforces others."""
    assert (partition_limit(RECORD), account_limit(RECORD)) == (2000.0, 20_000.0)
    held = altered(RECORD, enforced=enforcing())
    assert (partition_limit(held), account_limit(held)) == (250.0, 2500.0)
    free = altered(RECORD, enforced=enforcing(partition=1e9))
    assert (partition_limit(free), account_limit(free)) == (2000.0, 2500.0)


def stalled(stall: StallPart, *moves: MovePart, users: int = 60) -> str | None:
    throttling = altered(RECORD.throttling, stalls=(stall,))
    changes = {"throttling": throttling, "enforced": enforcing(*moves), "users": users}
    return stall_sentence(RECORD.model_copy(update=changes))


def test_a_stall_is_told_with_its_move_and_who_waited() -> None:
    """All users end up waiting for the one partition that moved: that is the finding."""
    fell = "he rate fell from 667 to 2.0 entities/s for 2 s: 57 of 60 users waited for"
    assert stalled(STALL, move("a", 16.1)) == f"When partition 'a' moved, t{fell} it."
    assert stalled(STALL, move("b", 16.1)) == f"When partition 'b' moved, t{fell} partition 'a'."
    assert stalled(STALL, move("a", 4.0)) == f"T{fell} partition 'a'."
    over = altered(STALL, keys=((WHOLE_TABLE, 31),))
    words = fell.removesuffix(" for") + ", 31 of them for queries over several partitions."
    assert stalled(over) == f"T{words}"
    others = altered(STALL, keys=(("a", 31), ("b", 20)))
    assert stalled(others, move("a", 16.1), move("b", 16.2)) == (
        f"When 2 partitions moved, t{fell} throttled partitions, 31 of them for 'a'."
    )
    assert stalled(altered(STALL, waited=0)) is None
    assert stall_sentence(RECORD) is None


def test_where_nobody_was_seen_to_wait_an_outage_is_told() -> None:
    """In a watch, and in records of earlier versions; a single second is none."""
    gap = GapPart(start_s=17, length_s=4, recovered_s=5)
    throttling = altered(RECORD.throttling, gaps=(gap,))
    record = altered(RECORD, throttling=throttling, enforced=enforcing(move("a", 16.0)))
    assert stall_sentence(record) == "When partition 'a' moved, nothing succeeded for 4 s."
    short = altered(gap, length_s=1)
    throttling = altered(RECORD.throttling, gaps=(short,))
    assert stall_sentence(altered(RECORD, throttling=throttling)) is None


def test_moves_at_the_same_time_are_one_event() -> None:
    """A server's range moves as a whole, whichever of its partitions was refused."""
    moves = (move("c", 30.0), move("a", 10.0), move("b", 11.0))
    together = moved_together(altered(RECORD, enforced=enforcing(*moves)))
    assert [(one.keys, one.start_s, one.end_s) for one in together] == [
        (["a", "b"], 10.0, 14.0),
        (["c"], 30.0, 33.0),
    ]


@pytest.mark.parametrize(("measured_s", "warming"), [(0, True), (4, True), (40, False)])
def test_a_run_warms_up_until_enough_is_measured(measured_s: int, warming: bool) -> None:
    """Then it may be inconclusive for other reasons."""
    record = judged("inconclusive", measured_s=measured_s)
    assert is_warming_up(record) is warming
    assert not is_warming_up(judged("throttled", measured_s=measured_s))


def test_other_processes_are_named_as_the_limit() -> None:
    """The share of the machine that they used is said with it."""
    limited = judged("client_limited", "machine")
    machine = {"name": "m", "cores": 2, "workers": 1, "busy_share": 0.9, "cpu_percent": 100.0}
    load = MachineLoadPart.model_validate({**machine, "workers_percent": 20.0})
    part = CapacityPart(
        session="sdk", operations_per_cpu_s=1.0, entities_per_cpu_s=1.0, machines=(load,)
    )
    generator = altered(limited.generator, capacity=part)
    assert headline(altered(limited, generator=generator)) == (
        "Other processes (80% of its CPU) kept the machine busy: the rate is not the endpoint's "
        "limit."
    )
    assert headline(limited).startswith("Other processes kept the machine busy")


def test_a_lower_bound_has_its_sign_in_the_headline_and_in_the_key_figures() -> None:
    """What queries scanned is estimated; a partition that they did not touch has exact rates."""
    query = altered(RECORD.operations[0], kind="scan", uncertain=3)
    (hot,) = RECORD.partitions
    scanned = altered(hot, entities_by_kind={"scan": hot.entities})
    record = altered(
        judged("within_target", operations=(query,), partitions=(scanned,)), throttled_ratio=0.0
    )
    assert headline(record).startswith("Nothing was throttled at ≥")
    assert " took ≥" in headline(record)
    assert next(key_figures(record)).value.startswith("≥")
    assert printable(headline(record), ascii_only=True).count(">=") == 2

    of_others = altered(hot, entities_by_kind={"insert": hot.entities})
    exact = altered(record, partitions=(of_others,))
    assert next(key_figures(exact)).value == number(hot.entities_per_s.mean)
