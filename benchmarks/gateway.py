"""What the gateway costs: requests per second of CPU time, and the time it adds to an answer.

The gateway and a bare reverse proxy of aiohttp stand before the same server, which answers 204, and
get the same PUTs of 1 KB over 20 connections, by turns. Requests are held against the CPU time of
the process in the middle, so that other load on the machine changes little. The median of the
ratios is shown. For the added time the same PUTs go out at 500 requests/s, through the gateway and
directly.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import NULL_SERVER, CannotMeasure, point_requests, serving
from harness.gateway.limits import limits_path
from harness.gateway.process import start_gateway

WANTED_RATIO = 2.2
WANTED_MS = 0.5
TURNS = 7
CONNECTIONS = 20
PER_S = 500.0
MEASURED_S = 3.0


def per_cpu_second(port: int, pid: int) -> float:
    """Requests that came through the process, for each second of its CPU time."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    answers, _ = point_requests(port, connections=CONNECTIONS, seconds=MEASURED_S)
    after = process.cpu_times()
    return answers / (after.user + after.system - before.user - before.system)


def median_ms(port: int) -> float:
    """Median time of an answer at the paced rate."""
    _, milliseconds = point_requests(port, connections=CONNECTIONS, seconds=MEASURED_S, rate=PER_S)
    return milliseconds


def throughput(turns: list[tuple[float, float]]) -> str:
    """The lines about requests per second of CPU time."""
    ratios = [ours / bare for ours, bare in turns]
    ours, bare = (statistics.median(column) for column in zip(*turns, strict=True))
    return (
        f"requests per second of CPU time, {CONNECTIONS} connections, PUTs of 1 KB, "
        f"{len(turns)} turns\n"
        f"  gateway              {ours:8,.0f}\n"
        f"  bare aiohttp proxy   {bare:8,.0f}\n"
        f"  ratio                {statistics.median(ratios):8.2f}   "
        f"(from {min(ratios):.2f} to {max(ratios):.2f}; wanted: {WANTED_RATIO:g} or more)"
    )


def latency(turns: list[tuple[float, float]]) -> str:
    """The lines about the added time."""
    added = [through - direct for through, direct in turns]
    through, direct = (statistics.median(column) for column in zip(*turns, strict=True))
    return (
        f"median answer at {PER_S:g} requests/s, {len(turns)} turns\n"
        f"  through the gateway  {through:8.2f} ms\n"
        f"  direct               {direct:8.2f} ms\n"
        f"  added                {statistics.median(added):8.2f} ms "
        f"(from {min(added):.2f} to {max(added):.2f}; wanted: {WANTED_MS:g} ms at most)"
    )


def main() -> int:
    """Measure by turns, and print both comparisons."""
    costs: list[tuple[float, float]] = []
    times: list[tuple[float, float]] = []
    try:
        with serving(NULL_SERVER) as (server, _):
            upstream = f"http://127.0.0.1:{server}"
            with (
                serving("bare_proxy.py", upstream) as bare,
                start_gateway(upstream=upstream, limits=limits_path("none")) as gateway,
            ):
                port = int(gateway.url.rpartition(":")[2])
                for _ in range(TURNS):
                    costs.append((per_cpu_second(port, gateway.pid), per_cpu_second(*bare)))
                    times.append((median_ms(port), median_ms(server)))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    print(throughput(costs))
    print(latency(times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
