"""What scheduled load costs an operation, and how punctual it is.

The cost is that of asking the open loop when an operation is due and of noting in the ledger that
it was due and sent, beside a loop that does nothing and beside the closed loop's pacer. CPU time
counts, by turns, so that other load on the machine changes little. Wanted is less than 15 us.

Punctuality is measured as a worker has it: users who take turns, each of which sleeps until its
operation is due. Nothing is sent; an answer is a sleep, so that what is late is the pacing.
"""

from __future__ import annotations

# ruff: noqa: E402
from gevent import monkey

monkey.patch_all()

import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gevent
import gevent.lock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.measure.counts.ledger import Ledger
from harness.workload.pacing import STOP, ClosedLoop, OpenLoop, Pacer, RateStage, Schedule

WANTED_US = 15.0
TURNS = 15
OPERATIONS = 20_000
PER_S = 500.0
MEASURED_S = 5.0
USERS = 20
ANSWER_S = 0.01


def main() -> int:
    """Measure both and say them."""
    pacers: list[Pacer] = [
        # A schedule of some stages, and one share of it, as a worker has it.
        OpenLoop(stages()).share(0, 2),
        OpenLoop(stages(), poisson=random.Random(1)).share(0, 2),
        ClosedLoop(PER_S),
    ]
    ledger = Ledger("benchmark")
    turns = [
        (empty_us(), noting_us(ledger), *(asking_us(pacer) for pacer in pacers))
        for _ in range(TURNS)
    ]
    ledger.close()
    empty, noting, constant, poisson, closed = (
        statistics.median(column) for column in zip(*turns, strict=True)
    )
    ratio = statistics.median(turn[2] / turn[4] for turn in turns)
    empties = statistics.median((turn[1] + turn[2]) / turn[0] for turn in turns)
    print(
        f"open loop / closed loop: {ratio:.2f} times the CPU to ask when an operation is due; with "
        f"the ledger's notes {constant + noting - empty:.1f} us an operation, {empties:.0f} times "
        f"a loop that does nothing (wanted: less than {WANTED_US:g} us; {constant:.2f} us evenly "
        f"spaced, {poisson:.2f} at random, {closed:.2f} closed, {noting:.2f} noting, {empty:.3f} "
        "nothing)"
    )
    late_s = sorted(lateness_s())
    if len(late_s) < 0.5 * PER_S * MEASURED_S:
        print("not measured: the machine had no time", file=sys.stderr)
        return 1
    p50, p99 = (late_s[int(share * (len(late_s) - 1))] for share in (0.5, 0.99))
    print(
        f"late / gap between operations: {p50 * PER_S:.2f} at the median; at {PER_S:g} a second "
        f"for {MEASURED_S:g} s they leave {p50 * 1e3:.2f} ms (p50) and {p99 * 1e3:.2f} ms (p99) "
        f"after they are due ({len(late_s) / MEASURED_S:.1f}/s held)"
    )
    return 0


def stages() -> Schedule:
    """A ramp, and a staircase of twenty steps."""
    steps = [
        RateStage(for_s=60.0, to_per_s=per_s, from_per_s=per_s)
        for per_s in (PER_S * number for number in range(1, 21))
    ]
    return Schedule.of([RateStage(for_s=60.0, to_per_s=PER_S), *steps])


def empty_us() -> float:
    """CPU microseconds of a turn of a loop that does nothing."""
    return per_turn_us(lambda: [None for _ in range(OPERATIONS)])


def asking_us(pacer: Pacer) -> float:
    """CPU microseconds of asking when an operation is due, of an operation each."""
    following = pacer.next
    # Each turn of the benchmark begins where the last one ended, as a run does.
    first = next(BEGINNINGS) * OPERATIONS

    def ask() -> object:
        return [following(first / PER_S, sent) for sent in range(first, first + OPERATIONS)]

    return per_turn_us(ask)


def noting_us(ledger: Ledger) -> float:
    """CPU microseconds of noting that an operation was due and was sent."""
    note_due, note_sent = ledger.note_due, ledger.note_sent
    return per_turn_us(lambda: [(note_due(), note_sent()) for _ in range(OPERATIONS)])


BEGINNINGS = itertools.count()


def per_turn_us(do: Callable[[], object]) -> float:
    """CPU microseconds of each of so many operations."""
    began = time.process_time()
    do()
    return (time.process_time() - began) / OPERATIONS * 1e6


def lateness_s() -> list[float]:
    """How long after it was due each operation left."""
    pacer = OpenLoop(Schedule.constant(PER_S))
    pacer.end(MEASURED_S)
    turn = gevent.lock.Semaphore(1)
    late_s: list[float] = []
    began = time.monotonic()

    def user() -> None:
        while True:
            with turn:
                now_s = time.monotonic() - began
                due_s = pacer.next(now_s, len(late_s))
                if due_s is STOP:
                    return
                if due_s > now_s:
                    gevent.sleep(due_s - now_s)
                late_s.append(time.monotonic() - began - due_s)
            gevent.sleep(ANSWER_S)

    gevent.joinall([gevent.spawn(user) for _ in range(USERS)], timeout=MEASURED_S + 30.0)
    return late_s


if __name__ == "__main__":
    sys.exit(main())
