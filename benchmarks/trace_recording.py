"""What the recording of a trace costs a generator.

Upserts and transactions of 100 with session ``wire``, with and without ``--trace``: `locust`
commands with ten users that take turns at one server, which only answers. The ratio is that of the
entities a CPU second.
"""

from __future__ import annotations

import signal
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import CannotMeasure
from benchmarks.parts.turns import by_turns, folder_of_its_own, harness, server

TURNS = 6
WANTED = 0.95


def main() -> int:
    """Measure by turns and say the ratios."""
    together = (
        *("--set", "mix.upsert_merge=0", "--set", "mix.transaction=1"),
        *("--set", "transaction.operations=100"),
    )
    mixes = {"upserts": (), "transactions": together}
    try:
        with folder_of_its_own() as folder, server(folder) as (answering, (port, *_)):
            url = f"http://127.0.0.1:{port}"
            generators = {}
            for name, mix in mixes.items():
                file = ("--trace", str(folder / f"{name}.parquet"))
                generators[name] = harness(url, folder, "--session", "wire", *mix)
                generators[f"{name} traced"] = harness(
                    url, folder, "--session", "wire", *mix, *file
                )
            found = by_turns(answering, port, generators, folder, TURNS)
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    for name in mixes:
        pairs = zip(found[f"{name} traced"], found[name], strict=True)
        ratios = [traced / plain for traced, plain in pairs]
        print(
            f"with / without --trace, {name}: {statistics.median(ratios):.2f} times the entities "
            f"of one core, {WANTED:g} wanted ({TURNS} turns from {min(ratios):.2f} to "
            f"{max(ratios):.2f})"
        )
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
