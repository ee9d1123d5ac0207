"""Signed upserts of about 900 bytes that one core makes: the whole harness against plain Locust.

Both are `locust` commands with ten users against the same server, which only answers. They run by
turns, a second or so each, and the median of the turns' ratios stands for many of them.
"""

from __future__ import annotations

import signal
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import CannotMeasure
from benchmarks.parts.turns import by_turns, folder_of_its_own, harness, plain, server

WANTED = 3.0
TURNS = 12


def main() -> int:
    """Measure by turns and say the ratio."""
    try:
        with folder_of_its_own() as folder, server(folder) as (answering, (port,)):
            ours = harness(f"http://127.0.0.1:{port}", folder)
            generators = {"plain": plain(port), "harness": ours}
            found = by_turns(answering, port, generators, folder, TURNS)
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    pairs = zip(found["harness"], found["plain"], strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"harness / plain Locust: {middle:.2f} times the upserts of one core, {WANTED:g} wanted "
        f"(half of {TURNS} turns between {low:.2f} and {high:.2f}; "
        f"{statistics.median(found['harness']):,.0f} against "
        f"{statistics.median(found['plain']):,.0f} a CPU second)"
    )
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
