"""Point requests that one core passes through the gateway: beside a bare proxy of aiohttp.

Both stand before the same server, which only answers, and get the same upserts over 20
connections. Answers are held against the CPU time of the process in the middle, so that other load
on the machine changes little. The two take turns, and the median of the ratios is shown. Wanted
are 4,000 a second where a bare proxy did 6,200: two thirds of it.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import PARTS, CannotMeasure, point_requests, serving
from harness.gateway.process import start_gateway

WANTED = 4000 / 6200
TURNS = 5
CONNECTIONS = 20
MEASURED_S = 3.0


def per_cpu_second(port: int, pid: int) -> float:
    """Answers that came through the process, for each second of CPU time it took."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    answers, _ = point_requests(port, connections=CONNECTIONS, seconds=MEASURED_S)
    after = process.cpu_times()
    return answers / (after.user + after.system - before.user - before.system)


def main() -> int:
    """Measure in turns and say the ratio."""
    pairs: list[tuple[float, float]] = []
    try:
        with serving("answering_server.py") as (server, _):
            upstream = f"http://127.0.0.1:{server}"
            limits = PARTS / "no_limits.toml"
            with (
                serving("bare_proxy.py", upstream) as bare,
                start_gateway(upstream=upstream, limits=limits) as gateway,
            ):
                port = int(gateway.url.rpartition(":")[2])
                for _ in range(TURNS):
                    pairs.append((per_cpu_second(port, gateway.pid), per_cpu_second(*bare)))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    ratios = [ours / theirs for ours, theirs in pairs]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"gateway / bare proxy: {statistics.median(ratios):.2f} of its point requests on one core "
        f"(wanted: {WANTED:.2f}; {ours:,.0f} against {theirs:,.0f} a CPU second, {TURNS} turns "
        f"from {min(ratios):.2f} to {max(ratios):.2f})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
