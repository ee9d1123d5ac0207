"""Draws that must not change by accident; with `UPDATE_GOLDEN=1` they are written anew."""

from __future__ import annotations

import json
import random

from harness.workload.keys.pickers import PICKERS, Shape
from tests.support.golden import check


def drawn(name: str, count: int) -> str:
    """The first draws of a picker as a line of the golden file."""
    shape = Shape(theta=0.99, hot_share=0.8, hot_values=10, start=2 * 7919)
    picker = PICKERS[name](count, shape)
    rng = random.Random(1)
    draws = [picker.draw(rng) for _ in range(50)]
    return json.dumps({"picker": name, "count": count, "draws": draws}) + "\n"


def test_the_first_draws_of_seed_1() -> None:
    """Seed and arguments decide which numbers are drawn, now and in later versions."""
    text = "".join(drawn(name, count) for name in PICKERS for count in (50, 1_000_000))
    check("draws-seed-1.jsonl", text)
