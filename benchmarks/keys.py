"""What choosing and naming a key costs: each picker and each design against `random.random()`.

Up to a million partitions. All are timed by turns in one run, and the best turn counts.
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

from harness.profile.designs import Documented, documented_designs
from harness.profile.settings.keys import FieldSettings, Keys, design_of
from harness.workload.keys.design import KeyDesign
from harness.workload.keys.pickers import PICKERS, Shape

KEYS = 1_000_000
CALLS = range(1, 20_001)
TURNS = 7


def main() -> int:
    """Time everything and say it."""
    rng = random.Random(1)
    turns: dict[str, Callable[[], float]] = {"random.random()": lambda: random_us(rng)}
    turns |= {f"draw {name}": draw(name, rng) for name in PICKERS}
    designs = {one.name: design_named(one) for one in documented_designs()}
    turns |= {f"key of {name}": keys(design) for name, design in designs.items()}
    turns |= {f"new key of {name}": new_keys(design) for name, design in designs.items()}
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
    shape = Shape()
    picker = PICKERS[name](KEYS, shape)

    def turn() -> float:
        began = time.process_time()
        for _ in CALLS:
            picker.draw(rng)
        return us_since(began)

    return turn


def keys(design: KeyDesign) -> Callable[[], float]:
    """Name a loaded row of each of as many partitions, over all of them."""
    partitions = [number * design.count // len(CALLS) for number in range(len(CALLS))]

    def turn() -> float:
        began = time.process_time()
        for partition in partitions:
            design.key(partition, 0)
        return us_since(began)

    return turn


def new_keys(design: KeyDesign) -> Callable[[], float]:
    """Name a new row and its place."""

    def turn() -> float:
        began = time.process_time()
        for number in CALLS:
            design.new(0, 7, number)
        return us_since(began)

    return turn


def us_since(began: float) -> float:
    """CPU microseconds of a call since ``began``."""
    return (time.process_time() - began) / len(CALLS) * 1e6


def design_named(documented: Documented) -> KeyDesign:
    """The design with a million partitions, or with a thousand values of each field."""
    settings = documented.settings
    fields = {
        name: FieldSettings(**{**field, **({"values": 1000} if "values" in field else {})})
        for name, field in settings.get("fields", {}).items()
    }
    settings["keys"].pop("partitions", None)
    settings["keys"].pop("rows_per_partition", None)
    alone = not fields and "{" in settings["keys"]["partition_key"]
    more = {"partitions": KEYS} if alone else {"rows_per_partition": 1}
    return design_of(fields, Keys(**{**settings["keys"], **more}))


if __name__ == "__main__":
    sys.exit(main())
