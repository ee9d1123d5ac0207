"""Memory of a ledger that meets a million PartitionKeys, above that of one that meets one.

Each is a process of its own, with a ledger that counts and a master's that merges what it drains,
as in a distributed run. The peaks of their memory are compared. What an `add` costs is held
against the least that can be done: counting the keys in a dict.

A million keys come once each, and between them 300 hot ones, more than are told apart.
"""

from __future__ import annotations

import functools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from pydantic import TypeAdapter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.measure.counts.ledger import Delta, Ledger  # noqa: E402
from harness.model.operation import Kind, Operation  # noqa: E402
from harness.model.outcome import Attempt, Outcome, Result, Scope  # noqa: E402
from harness.model.partition import EXACT_PARTITIONS  # noqa: E402

KEYS = 1_000_000
HOT_KEYS = 300
HOT_EACH = 11
RESULTS = KEYS * HOT_EACH // (HOT_EACH - 1)
RESULTS_OF_ONE = 100_000
DRAIN_EVERY = 20_000
BLOCK = 1_000
PER_SECOND = 10_000
BEGIN_S = 1_700_000_000
END_S = BEGIN_S + RESULTS // PER_SECOND
THROTTLED_EACH = 10 * HOT_EACH
BOUND_MB = 50
HANGS_AFTER_S = 300.0


def main() -> int:
    """Compare the two and say so."""
    deadline = time.monotonic() + HANGS_AFTER_S
    try:
        one, many = (measured(name, deadline) for name in ("one", "many"))
    except (subprocess.SubprocessError, ValueError) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    above_mb = (many["peak_kib"] - one["peak_kib"]) / 1024
    print(
        f"ledger with {KEYS + HOT_KEYS:,} keys: {above_mb:.1f} MB above one key ({BOUND_MB} "
        f"allowed), {many['told_apart']} partitions told apart ({EXACT_PARTITIONS} allowed), sums "
        f"{'exact' if many['exact'] else 'WRONG'}; Ledger.add takes {many['add_us']:.1f} us, "
        f"{many['add_us'] / many['dict_us']:.0f} times a count in a dict"
    )
    holds = above_mb < BOUND_MB and many["told_apart"] <= EXACT_PARTITIONS and many["exact"]
    if not holds:
        print("a bound does not hold", file=sys.stderr)
    return 0 if holds else 1


def measured(name: str, deadline: float) -> dict[str, float]:
    """What a process of its own found."""
    answer = subprocess.run(
        [sys.executable, __file__, name],
        stdout=subprocess.PIPE,
        timeout=max(1.0, deadline - time.monotonic()),
        check=True,
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def watch(results: int, *, one: bool) -> dict[str, float]:
    """Put ``results`` results through both ledgers, all of one key or of a million."""
    ledger, master = Ledger("worker"), Ledger("master")
    ledger.open_window(BEGIN_S, END_S)
    adding_s = 0.0
    wire = TypeAdapter(Delta)
    for first in range(0, results, BLOCK):
        block = [result_of(number, one=one) for number in range(first, first + BLOCK)]
        began = time.process_time()
        for result in block:
            ledger.add(result)
        adding_s += time.process_time() - began
        if (first + BLOCK) % DRAIN_EVERY == 0:
            master.merge(wire.validate_python(wire.dump_python(ledger.drain())))
    snapshot = master.snapshot(start=BEGIN_S, end=END_S)
    # Read before the dict is filled, which is not bounded.
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = [*snapshot.partitions, *([] if snapshot.folded is None else [snapshot.folded])]
    return {
        "peak_kib": peak_kib,
        "told_apart": len(snapshot.partitions),
        "exact": (
            snapshot.counts.entities == sum(row.entities for row in rows) == results
            and snapshot.counts.attempts == sum(snapshot.attempts.values())
            and snapshot.throttled == results // THROTTLED_EACH
        ),
        "add_us": adding_s / results * 1e6,
        "dict_us": count_in_a_dict(results, one=one) / results * 1e6,
    }


def count_in_a_dict(results: int, *, one: bool) -> float:
    """CPU seconds for counting the same keys and nothing else."""
    counts: dict[str, int] = {}
    counting_s = 0.0
    for first in range(0, results, BLOCK):
        block = [key_of(number, one=one) for number in range(first, first + BLOCK)]
        began = time.process_time()
        for key in block:
            counts[key] = counts.get(key, 0) + 1
        counting_s += time.process_time() - began
    return counting_s


def key_of(number: int, *, one: bool) -> str:
    """PartitionKey of a result."""
    if one:
        return "customer-0"
    if number % HOT_EACH == 0:
        return f"hot-{number // HOT_EACH % HOT_KEYS}"
    return f"customer-{number}"


def result_of(number: int, *, one: bool) -> Result:
    """An upsert that succeeded; some of hot keys after a throttled attempt."""
    sent_s = BEGIN_S + number / PER_SECOND
    return Result(
        operation=Operation(
            kind=Kind.UPSERT_MERGE, partition_key=key_of(number, one=one), row_key=str(number)
        ),
        outcome=Outcome.SUCCESS,
        sent_s=sent_s,
        done_s=sent_s + 0.004,
        attempts=attempts_in(int(sent_s), number % THROTTLED_EACH == 0),
        due_s=sent_s,
        entities=1,
    )


@functools.lru_cache(maxsize=4)
def attempts_in(second: int, throttled: bool) -> tuple[Attempt, ...]:
    """One attempt, or one after a throttled one; those of a second are alike."""
    good = Attempt(status=204, sent_s=float(second), latency_s=0.003)
    if not throttled:
        return (good,)
    refused = Attempt(
        status=503,
        sent_s=float(second),
        latency_s=0.001,
        error_code="ServerBusy",
        scope=Scope.PARTITION,
    )
    return (refused, good)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one = sys.argv[1] == "one"
        print(json.dumps(watch(RESULTS_OF_ONE if one else RESULTS, one=one)))
        sys.exit(0)
    sys.exit(main())
