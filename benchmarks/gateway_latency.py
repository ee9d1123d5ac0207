"""What the gateway adds to the answer of a point request: 500 requests/s over 20 connections.

The same paced upserts go to a server that only answers, with the gateway in between and without.
The two take turns; the median of the differences between their medians is shown, and the ratio of
the medians. Wanted is less than 1 ms added.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import PARTS, CannotMeasure, point_requests, serving
from harness.gateway.process import start_gateway

WANTED_MS = 1.0
TURNS = 5
CONNECTIONS = 20
PER_S = 500.0
MEASURED_S = 4.0


def median_ms(port: int) -> float:
    """Median of the answers' times."""
    _, milliseconds = point_requests(port, connections=CONNECTIONS, seconds=MEASURED_S, rate=PER_S)
    return milliseconds


def main() -> int:
    """Measure in turns and say the difference."""
    pairs: list[tuple[float, float]] = []
    try:
        with serving("answering_server.py") as (server, _):
            upstream = f"http://127.0.0.1:{server}"
            limits = PARTS / "no_limits.toml"
            with start_gateway(upstream=upstream, limits=limits) as gateway:
                port = int(gateway.url.rpartition(":")[2])
                for _ in range(TURNS):
                    pairs.append((median_ms(port), median_ms(server)))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    added = [through - direct for through, direct in pairs]
    through, direct = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"through the gateway / direct: {through / direct:.2f} times the median answer, "
        f"{statistics.median(added):.2f} ms added (wanted: less than {WANTED_MS:g} ms; "
        f"{through:.2f} against {direct:.2f} ms, {TURNS} turns from {min(added):.2f} to "
        f"{max(added):.2f} ms)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
