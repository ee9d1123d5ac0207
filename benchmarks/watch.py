"""What the books of a watched application cost the gateway, in CPU and in time.

A metering process of `harness watch` and a gateway that only counts its own page stand before the
same server, which answers 204, and get the same PUTs of 1 KB over 20 connections, by turns.
Requests are held against the CPU time of the process in the middle; the median of the ratios is
shown. For the added time the same PUTs go out at 500 requests/s, through the metering process and
directly. At the end each PUT has a PartitionKey of its own for half a minute, and the memory of the
metering process is shown. It grows until the gateway knows 200,000 rows, its most (`MOST_ROWS` in
`harness/gateway/contents.py`), and is flat from there. Measured once: 59 MB at the start, 118
MB after 200,000 keys, 119 MB after 300,000 and after 390,000. The counting alone, without HTTP:
102 MB after 200,000 keys, 103 MB after 1,200,000.
"""

from __future__ import annotations

import queue
import statistics
import sys
import tempfile
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gateway import CONNECTIONS, PER_S, TURNS, median_ms, per_cpu_second
from benchmarks.parts.serving import NULL_SERVER, CannotMeasure, point_requests, serving
from harness.gateway.limits import limits_path
from harness.gateway.process import start_gateway
from harness.watch.metering import MeteringProcess, MeteringSettings, Reports

WANTED_SHARE = 0.85
WANTED_PER_S = 4000
WANTED_MS = 0.5
WANTED_MB = 150
KEYS_FOR_S = 30.0
MB = 1_000_000


def main() -> int:
    """Measure by turns, and print both comparisons."""
    costs: list[tuple[float, float]] = []
    times: list[tuple[float, float]] = []
    limits = limits_path("none")
    reports: Reports = queue.SimpleQueue()
    try:
        with serving(NULL_SERVER) as (server, _), tempfile.TemporaryDirectory() as folder:
            upstream = f"http://127.0.0.1:{server}"
            settings = MeteringSettings(
                name="gateway-1", upstream=upstream, listen="127.0.0.1:0", limits=str(limits)
            )
            with (
                start_gateway(upstream=upstream, limits=limits) as gateway,
                MeteringProcess(settings, reports, Path(folder) / "log", {}) as metering,
            ):
                port = int(gateway.url.rpartition(":")[2])
                metered = int(metering.first_report().urls["table"].rpartition(":")[2])
                for _ in range(TURNS):
                    costs.append(
                        (per_cpu_second(metered, metering.pid), per_cpu_second(port, gateway.pid))
                    )
                    times.append((median_ms(metered), median_ms(server)))
                process = psutil.Process(metering.pid)
                before_mb = process.memory_info().rss / MB
                keys, _ = point_requests(
                    metered, connections=CONNECTIONS, seconds=KEYS_FOR_S, keys=10**9
                )
                after_mb = process.memory_info().rss / MB
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    shares = [ours / bare for ours, bare in costs]
    ours, bare = (statistics.median(column) for column in zip(*costs, strict=True))
    added = [through - direct for through, direct in times]
    print(
        f"requests per second of CPU time, {CONNECTIONS} connections, PUTs of 1 KB, {TURNS} turns\n"
        f"  metering process     {ours:8,.0f}   (wanted: {WANTED_PER_S:,} or more)\n"
        f"  gateway              {bare:8,.0f}\n"
        f"  ratio                {statistics.median(shares):8.2f}   "
        f"(from {min(shares):.2f} to {max(shares):.2f}; wanted: {WANTED_SHARE:g} or more)\n"
        f"median answer at {PER_S:g} requests/s\n"
        f"  added                {statistics.median(added):8.2f} ms "
        f"(from {min(added):.2f} to {max(added):.2f}; wanted: {WANTED_MS:g} ms at most)\n"
        f"memory of the metering process, in MB (wanted after a million keys: below {WANTED_MB})\n"
        f"  before               {before_mb:8.0f}\n"
        f"  after {keys:9,} keys {after_mb:8.0f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
