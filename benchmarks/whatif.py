"""What a what-if and a screening cost an operation, against reading the trace alone, by CPU time.

Traces of a million upserts, made beforehand, in which each limit has its own pattern. Resident
memory is compared with that for a trace three times as long.
"""

from __future__ import annotations

# ruff: noqa: E402
import dataclasses
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.gateway.limits import GatewayLimits
from harness.model.process import search_rarely
from harness.trace.blocks import MOST_OPERATIONS, BlockColumns, RowShape
from harness.trace.head import TraceHead
from harness.trace.operations import TracedQuery
from harness.trace.reader import Trace
from harness.trace.whatif.projection import Projection
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.scheme import Scheme, as_recorded, parse_scheme
from harness.trace.whatif.screening import screen
from harness.trace.writer import TraceWriter

OPERATIONS = 1_000_000
LONGER = 3
PER_S = 5000
WANTED_PER_S = 200_000
MOST_MORE_MB = 20
START_MS = 1_795_000_000_000
RECORDED = as_recorded()
BUCKETS = {"keys": {"partition_key": "{partition_key}-{row_key:bucket16}"}}
SPREAD = parse_scheme("buckets", BUCKETS, "buckets.toml")
ROWS = {"keys": {"partition_key": "{row_key}", "row_key": "{partition_key}"}}
OF_ROWS = parse_scheme("rows", ROWS, "rows.toml")
CANDIDATES = [
    parse_scheme(template, {"keys": {"partition_key": template}}, "candidates")
    for template in (
        "{partition_key:hash2}-{partition_key}",
        "{partition_key}-{row_key:bucket4}",
        "{partition_key}-{row_key:bucket8}",
        "{partition_key}-{row_key:bucket16}",
        "{partition_key}-{row_key:bucket64}",
        "{partition_key}-{row_key:first4}",
        "{partition_key:first6}",
        "{row_key:hash1}-{partition_key}",
        "{row_key:last3}",
        "all",
    )
]
"""Of a screening, which reads a trace once for all of them."""
SCREENED_PER_S = 2_000_000

Keys = Callable[[random.Random, int], tuple[str, str]]


def spread(rng: random.Random, number: int) -> tuple[str, str]:
    return f"p{rng.randrange(500):03}", f"r{number % 10_000:08}"


def log(rng: random.Random, number: int) -> tuple[str, str]:
    return f"2026-11-23T{number // (10 * PER_S):06}", f"{number:08}"


def hot_tenant(rng: random.Random, number: int) -> tuple[str, str]:
    tenant = 0 if rng.random() < 0.6 else rng.randrange(1, 200)
    return f"tenant{tenant:03}", f"r{number % 10_000:08}"


def distinct(rng: random.Random, number: int) -> tuple[str, str]:
    return f"{number * 2_654_435_761 % 2**32:08x}", "only"


def bucketed(rng: random.Random, number: int) -> tuple[str, str]:
    return f"p{rng.randrange(500):03}", f"r{number:08}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pattern of traffic, under one scheme.

    Attributes:
        scans: One in ten operations is a query of a partition.
    """

    keys: Keys
    scheme: Scheme = RECORDED
    operations: int = OPERATIONS
    per_s: int = PER_S
    scans: bool = False


CASES = {
    "an even spread over 500 partitions": Case(keys=spread),
    "a log, throttled": Case(keys=log),
    "a hot tenant, throttled": Case(keys=hot_tenant),
    "a hot tenant, throttled, with queries": Case(keys=hot_tenant, scans=True),
    "every key another": Case(keys=distinct),
    "a scheme with 16 buckets": Case(keys=bucketed, scheme=SPREAD),
    "a partition for each row": Case(keys=bucketed, scheme=OF_ROWS),
    "ten operations a second": Case(keys=spread, per_s=10, operations=200_000),
    "one operation a second": Case(keys=spread, per_s=1, operations=100_000),
    "three times the limit of the account": Case(keys=spread, per_s=60_000, operations=200_000),
    "the same, every key another": Case(keys=distinct, per_s=60_000, operations=200_000),
    "the same, with 16 buckets": Case(
        keys=bucketed, scheme=SPREAD, per_s=60_000, operations=200_000
    ),
}
"""Patterns that are few operations a second have fewer, so that each case takes seconds."""


def main() -> int:
    """Measure each case in a process of its own, and say it."""
    if len(sys.argv) > 2:
        return measure(Path(sys.argv[1]), sys.argv[2])
    broken = False
    with tempfile.TemporaryDirectory(prefix="whatif.") as folder:
        for name, case in CASES.items():
            path = Path(folder) / "made.parquet"
            longer = Path(folder) / "longer.parquet"
            made(path, case, case.operations)
            made(longer, case, LONGER * case.operations)
            plain_s, taken_s, screened_s, first_mb = figures(path, name)
            _, _, _, longer_mb = figures(longer, name)
            broken = broken or longer_mb > first_mb + MOST_MORE_MB
            per_s = case.operations / taken_s
            screened_per_s = len(CANDIDATES) * case.operations / screened_s
            print(
                f"what-if / reading, {name}: {taken_s / plain_s:.1f} times the CPU time; "
                f"{per_s / 1000:,.0f}k operations per CPU second, {WANTED_PER_S // 1000}k wanted; "
                f"screened {screened_per_s / 1000:,.0f}k for each of {len(CANDIDATES)} schemes, "
                f"{SCREENED_PER_S // 1000}k wanted; "
                f"{first_mb:.0f} MB, {longer_mb:.0f} MB for {LONGER} times the operations"
            )
            shutil.rmtree(path)
            shutil.rmtree(longer)
    return int(broken)


def figures(path: Path, case: str) -> tuple[float, ...]:
    """CPU seconds of reading, of a what-if and of a screening with it; resident memory in MB."""
    command = [sys.executable, __file__, str(path), case]
    return tuple(map(float, subprocess.check_output(command, text=True, timeout=300).split()))


def measure(path: Path, case: str) -> int:
    """Print the figures of one trace."""
    # As the command does.
    search_rarely()
    trace = Trace(path)
    began_s = time.process_time()
    for batch in trace.batches():
        zip(batch.at_ms, batch.shapes, batch.partition_keys, batch.row_keys, strict=True)
    plain_s = time.process_time() - began_s
    began_s = time.process_time()
    scheme = CASES[case].scheme
    rekeying = Rekeying(scheme, rows=CASES[case].scans)
    projection = Projection(rekeying, GatewayLimits(), rate=1.0, started_s=0)
    for batch in trace.batches():
        projection.add(batch)
    projection.finish()
    taken_s = time.process_time() - began_s
    began_s = time.process_time()
    screen(trace, CANDIDATES, partition_per_s=2000, account_per_s=20_000)
    print(plain_s, taken_s, time.process_time() - began_s, resident_mb())
    return 0


def resident_mb() -> float:
    """The most resident memory of this process so far."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    [most] = [line for line in lines if line.startswith("VmHWM")]
    return int(most.split()[1]) / 1024


def made(path: Path, case: Case, operations: int) -> None:
    """Write a trace of a pattern at a steady rate."""
    rng = random.Random(1)
    upsert: RowShape = ("app", "upsert_merge", "t", "upsert", "success", False, ((204, "", ""),))
    query: RowShape = ("app", "query", "t", "query", "success", False, ((200, "", ""),))
    with TraceWriter(path, TraceHead(started_ms=START_MS, source="made")) as writer:
        for first in range(0, operations, MOST_OPERATIONS):
            numbers = range(first, min(operations, first + MOST_OPERATIONS))
            block = BlockColumns()
            block.at = [START_MS + 1000 * number // case.per_s for number in numbers]
            block.took = [5] * len(numbers)
            block.shapes = [upsert, query]
            block.shape = [int(case.scans and number % 10 == 0) for number in numbers]
            keys = [case.keys(rng, number) for number in numbers]
            block.key = [key for key, _ in keys]
            block.row = [
                "" if scan else row for scan, (_, row) in zip(block.shape, keys, strict=True)
            ]
            for place, scan in enumerate(block.shape):
                if scan:
                    block.detail(place, TracedQuery())
            block.entities = [1] * len(numbers)
            block.returned = [0] * len(numbers)
            block.sent = [900] * len(numbers)
            block.received = [300] * len(numbers)
            writer.append([block.encode()])


if __name__ == "__main__":
    sys.exit(main())
