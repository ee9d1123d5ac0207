"""What advice about a million operations costs, against reading the trace alone, by CPU time.

Resident memory is that of the larger of its two processes, compared with that for a trace three
times as long.
"""

from __future__ import annotations

# ruff: noqa: E402
import datetime as dt
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.whatif import LONGER, MOST_MORE_MB, OPERATIONS, Case, made
from harness.trace.reader import Trace

WANTED_S = 60
ASKED = ("--rate", "5", "--json")
FIRST = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)


def orders(rng: random.Random, number: int) -> tuple[str, str]:
    """Orders of 200 tenants, of which one makes most."""
    tenant = 0 if rng.random() < 0.6 else rng.randrange(1, 200)
    when = FIRST + dt.timedelta(hours=number % 2000)
    return f"eu-{tenant % 5}_tenant{tenant:03}", f"{when:%Y-%m-%dT%H}_order-{number % 10_000:06}"


def main() -> int:
    """Measure it, and say it."""
    case = Case(keys=orders, per_s=1000)
    with tempfile.TemporaryDirectory(prefix="advise.") as folder:
        path, longer = Path(folder) / "made.parquet", Path(folder) / "longer.parquet"
        made(path, case, OPERATIONS)
        made(longer, case, LONGER * OPERATIONS)
        began_s = time.process_time()
        trace = Trace(path)
        for batch in trace.batches():
            zip(batch.at_ms, batch.shapes, batch.partition_keys, batch.row_keys, strict=True)
        plain_s = time.process_time() - began_s
        tried, wall_s, cpu_s, most_mb = advised(path)
        _, _, _, longer_mb = advised(longer)
    print(
        f"advice / reading: {cpu_s / plain_s:.0f} times the CPU time for {OPERATIONS:,} operations "
        f"and {tried} candidates, {cpu_s:.0f} CPU s, {wall_s:.0f} s with {os.cpu_count()} "
        f"processors, {WANTED_S} wanted; {most_mb:.0f} MB, {longer_mb:.0f} MB for {LONGER} times "
        "the operations"
    )
    return int(longer_mb > most_mb + MOST_MORE_MB)


def advised(path: Path) -> tuple[int, float, float, float]:
    """Candidates, seconds, CPU seconds and MB of an advice."""
    command = [sys.executable, "-m", "harness", "advise", str(path), *ASKED]
    began_s = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        found = json.load(child.stdout)
        # Its other process is among what it used.
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
    wall_s = time.monotonic() - began_s
    tried = found["tables"][0]["tried"]
    return tried, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
