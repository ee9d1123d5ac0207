"""What choosing and naming a key costs: each picker and each scheme against `random.random()`.

A million partitions. All are timed by turns in one run, and the best turn counts.
"""

from __future__ import annotations

# ruff: noqa: E402
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.workload.keys.pickers import PICKERS, Shape
from harness.workload.keys.scheme import KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES

KEYS = 1_000_000
CALLS = range(1, 20_001)
TURNS = 7


def main() -> int:
    """Time everything and say it."""
    rng = random.Random(1)
    turns: dict[str, Callable[[], float]] = {"random.random()": lambda: random_us(rng)}
    turns |= {f"draw {name}": draw(name, rng) for name in PICKERS}
    turns |= {f"key of {name}": keys(scheme_named(name)) for name in SCHEMES}
    turns |= {f"new key of {name}": new_keys(scheme_named(name)) for name in SCHEMES}
    best = dict.fromkeys(turns, float("inf"))
    for _ in range(TURNS):
        for name, turn in turns.items():
            best[name] = min(best[name], turn())
    base = best.pop("random.random()")
    for name, took in best.items():
        print(f"{name:32} {took / base:5.1f} times random.random(), {took:.2f} us")
    return 0


def random_us(rng: random.Random) -> float:
    """CPU microseconds of `random.random()`, of many in a row; so for all that follow."""
    began = time.process_time()
    for _ in CALLS:
        rng.random()
    return us_since(began)


def draw(name: str, rng: random.Random) -> Callable[[], float]:
    """Draw from a million with the picker of this name."""
    shape = Shape(theta=0.99, hot_operations=0.8, hot_keys=0.2, start=0)
    picker = PICKERS[name](KEYS, shape)

    def turn() -> float:
        began = time.process_time()
        for _ in CALLS:
            picker.draw(rng)
        return us_since(began)

    return turn


def keys(scheme: KeyScheme) -> Callable[[], float]:
    """Name a loaded row of each of as many partitions, over all of them."""
    partitions = [number * scheme.count // len(CALLS) for number in range(len(CALLS))]

    def turn() -> float:
        began = time.process_time()
        for partition in partitions:
            scheme.partition_key(partition)
            scheme.row_key(partition, 0)
        return us_since(began)

    return turn


def new_keys(scheme: KeyScheme) -> Callable[[], float]:
    """Name a new row and its place."""

    def turn() -> float:
        began = time.process_time()
        for number in CALLS:
            scheme.inserted(0, 7, number)
        return us_since(began)

    return turn


def us_since(began: float) -> float:
    """CPU microseconds of a call since ``began``."""
    return (time.process_time() - began) / len(CALLS) * 1e6


def scheme_named(name: str) -> KeyScheme:
    """A scheme of as many of a million partitions as it can have."""
    for partitions in (KEYS, KEYS // 20, 1):
        rows = RowCounts(partitions, 1)
        if not any(SCHEMES[name].problems(rows, 1, None)):
            return SCHEMES[name](rows)
    raise ValueError(f"{name} has no partitions")


if __name__ == "__main__":
    sys.exit(main())
