"""The first words of a page: the verdict in one short sentence, and what a stall was."""

from __future__ import annotations

import pytest

from harness.measure.record.enforced import MovePart
from harness.measure.record.findings import GapPart, StallPart
from harness.model.errors import printable
from harness.model.figures import number
from harness.model.operation import WHOLE_TABLE
from harness.report.events import moved_together, stall_sentence
from harness.report.headline import headline, is_warming_up
from harness.report.limits import account_limit, partition_limit
from harness.report.web.key_figures import key_figures
from tests.support.records import altered, enforcing, judged, kept, move

RECORD = kept()
STALL = StallPart(
    start_s=17, length_s=2, before_per_s=667.4, rate_per_s=2.0, waited=57, keys=(("a", 57),)
)


def test_an_enforced_limit_is_the_one_in_force() -> None:
    """Published targets are in force only where no gateway enforces others."""
    (hot,) = RECORD.partitions
    assert (partition_limit(RECORD, hot), account_limit(RECORD)) == (2000.0, 20_000.0)
    held = altered(RECORD, enforced=enforcing())
    assert (partition_limit(held, hot), account_limit(held)) == (250.0, 2500.0)
    free = altered(RECORD, enforced=enforcing(partition=1e9))
    assert (partition_limit(free, hot), account_limit(free)) == (2000.0, 2500.0)


def test_without_a_target_no_rate_is_far_below_one() -> None:
    """The documents name none for blobs, and so what throttled is unknown."""
    (hot,) = RECORD.partitions
    blob = altered(hot, target=None, ratio=None)
    said = headline(altered(judged("throttled"), partitions=(blob,)))
    assert said.startswith("Requests were throttled, and no limit is known to be the cause: 'p0' ")


def test_a_partition_near_its_target_is_not_said_to_be_far_below_it() -> None:
    """Where most requests were throttled elsewhere, one of those partitions is named."""
    (hot,) = RECORD.partitions
    rates = dict.fromkeys(("mean", "best_1s", "best_10s"), 100.0)
    cold = altered(hot, key="cold", entities_per_s=altered(hot.entities_per_s, **rates))
    busy = altered(hot, attempts_by_status={"503 ServerBusy partition": 9999})
    unknown = judged("throttled", "unknown")
    said = headline(altered(unknown, partitions=(busy, cold)))
    assert "far below the target of a partition: 'cold' had 100 entities/s, 5.0% of it" in said
    assert "far below" not in headline(altered(unknown, partitions=(busy,)))


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
    refused = altered(record, verdict=altered(record.verdict, result="throttled"), accounts=())
    refused = altered(refused, verdict=altered(refused.verdict, limited_by="account"))
    assert headline(refused).count("≥") == 2

    of_others = altered(hot, entities_by_kind={"insert": hot.entities})
    exact = altered(record, partitions=(of_others,))
    assert next(key_figures(exact)).value == number(hot.entities_per_s.mean)


def test_users_who_waited_leave_open_whether_the_endpoint_was_the_limit() -> None:
    """Only latency that grew with the load shows that the endpoint was at its capacity."""
    calm = {"throttled_ratio": 0.0}
    said = headline(judged("endpoint_limited", "unknown", **calm))
    assert said.startswith("The endpoint or the number of users was the limit, without throttling")
    assert headline(judged("endpoint_limited", "endpoint", **calm)).startswith("The endpoint was")
