"""What the SDK and the session add to a request: `execute` against the transport under it.

Both send the same upsert, over one connection, to the server that only answers, by turns of some
hundred requests. CPU time counts, so that waiting for the server does not.
"""

from __future__ import annotations

# ruff: noqa: E402
from gevent import monkey

monkey.patch_all()

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from azure.core.rest import HttpRequest

from harness.endpoint.endpoint import emulator_endpoint
from harness.endpoint.http.channel import Channel
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.http.pool import LimitedPool
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions.sdk import GeventTransport, SdkSession
from harness.model.operation import Kind, Operation
from harness.model.process import steady_clock
from harness.workload.budget import Budget
from harness.workload.entity_factory import EntityFactory
from harness.workload.retry import ScheduledBackoff

SERVER = ROOT / "harness" / "doctor" / "null_server.py"
RUN_ID = "00000000T000000Z-00000000"
SIZE_BYTES = 900
TURNS = 20
REQUESTS = 300


def main() -> int:
    """Start the server, measure, say the ratio."""
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if not line:
                print("not measured: the server did not start", file=sys.stderr)
                return 1
            return compare(f"http://127.0.0.1:{int(line)}")
        finally:
            server.kill()


def compare(url: str) -> int:
    """Measure both at the server."""
    endpoint, clock = emulator_endpoint(url), steady_clock()
    session = SdkSession(
        SessionOptions(
            endpoint=endpoint,
            table="stress",
            run_id=RUN_ID,
            retry=ScheduledBackoff(),
            budget=Budget(),
            clock=clock,
            rng=random.Random(1),
            connections=1,
            connect_timeout_s=5.0,
            read_timeout_s=10.0,
        )
    )
    pool = LimitedPool(endpoint.url, connections=1, connect_timeout_s=5.0, read_timeout_s=10.0)
    channel = Channel(pool, clock=clock, budget=Budget())
    transport = GeventTransport(channel)
    operation = Operation(
        kind=Kind.UPSERT_MERGE,
        partition_key="p0",
        row_key="0-00000000",
        properties=EntityFactory(SIZE_BYTES, RUN_ID).properties("p0", "0-00000000", 0),
    )
    request = HttpRequest(
        "PATCH",
        f"{endpoint.url}/stress(PartitionKey='p0',RowKey='0-00000000')",
        headers={"Content-Type": "application/json", "Authorization": "x" * 70},
        content="x" * SIZE_BYTES,
    )

    def bare() -> bool:
        exchange = Exchange(RUN_ID)
        transport.send(request, exchange=exchange)
        return exchange.status == 204

    def whole() -> bool:
        return session.execute(operation).outcome.succeeded

    try:
        if not (bare() and whole()):
            print("not measured: the server did not answer as it should", file=sys.stderr)
            return 1
        turns = [(cpu_us(bare), cpu_us(whole)) for _ in range(TURNS)]
    finally:
        session.close()
        transport.close()
    ratio = statistics.median(execute / send for send, execute in turns)
    send, execute = (statistics.median(column) for column in zip(*turns, strict=True))
    print(
        f"session / transport: an upsert through the SDK and the session takes {ratio:.1f} times "
        f"the CPU of its bare request ({execute:.0f} against {send:.0f} us)"
    )
    return 0


def cpu_us(do: Callable[[], bool]) -> float:
    """CPU microseconds of one call, of many in a row."""
    began = time.process_time()
    for _ in range(REQUESTS):
        do()
    return (time.process_time() - began) / REQUESTS * 1e6


if __name__ == "__main__":
    sys.exit(main())
