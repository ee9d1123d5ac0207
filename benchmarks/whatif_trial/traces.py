"""Three made traces with what recorded examples lack: scans, prefix ranges, bursts, several tables.

Each is made of a seed: the same operations at the same instants in every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.model.operation import ALL_KEYS, WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.trace.head import TraceHead
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from tests.support.memory_tables import MemoryTables
from tests.support.recorded import STARTED_S, executed

SECONDS = 15
Made = Iterator[tuple[float, Operation]]


def _write(kind: Kind, table: str, partition_key: str, row_key: str) -> Operation:
    return Operation(
        kind=kind,
        partition_key=partition_key,
        row_key=row_key,
        table=table,
        properties={"Value": 1},
    )


def _query(table: str, partition_key: str, keys: KeyRange = ALL_KEYS) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key=partition_key, table=table, key_range=keys)


def _instants(rng: random.Random, per_s: Callable[[int], int]) -> Iterator[float]:
    for second in range(SECONDS):
        yield from sorted(second + rng.random() for _ in range(per_s(second)))


def orders(rng: random.Random) -> Made:
    """Orders of 40 tenants by Zipf: inserts, point reads, a tenant's day or all its orders,
    transactions of four lines, and one nightly scan.
    """
    tenants = [f"tenant{number:02}" for number in range(40)]
    shares = [1 / (rank + 1) for rank in range(40)]
    written = {tenant: ["2026-11-01T00-000000"] for tenant in tenants}
    for number, at_s in enumerate(_instants(rng, lambda second: 120)):
        [tenant] = rng.choices(tenants, shares)
        day = 1 + number * 10 // (120 * SECONDS)
        row, chosen = f"2026-11-{day:02}T{number % 24:02}-{number:06}", rng.random()
        if number == 1200:
            yield at_s, _query("orders", WHOLE_TABLE)
        elif chosen < 0.45:
            written[tenant].append(row)
            yield at_s, _write(Kind.INSERT, "orders", tenant, row)
        elif chosen < 0.6:
            rows = [f"{row}-{line}" for line in range(4)]
            written[tenant] += rows
            parts = [_write(Kind.INSERT, "orders", tenant, one) for one in rows]
            yield at_s, transaction(tuple(parts))
        elif chosen < 0.85:
            row = rng.choice(written[tenant])
            point = Kind.POINT_QUERY
            yield at_s, Operation(kind=point, partition_key=tenant, row_key=row, table="orders")
        elif chosen < 0.95:
            first, before = f"2026-11-{day:02}", f"2026-11-{day + 1:02}"
            yield at_s, _query("orders", tenant, KeyRange(row_from=first, row_before=before))
        else:
            yield at_s, _query("orders", tenant)


def bursts(rng: random.Random) -> Made:
    """Readings of 60 sensors in bursts, in partitions of a minute, which are read as a range of
    partitions; alarms of sensors in a table of their own.
    """
    for number, at_s in enumerate(_instants(rng, lambda second: 400 if second % 5 == 2 else 50)):
        minute, sensor = f"2026-11-20T10:{int(at_s) // 3:02}", f"sensor{rng.randrange(60):02}"
        chosen = rng.random()
        if chosen < 0.75:
            yield at_s, _write(Kind.INSERT, "readings", minute, f"{sensor}-{number:06}")
        elif chosen < 0.9:
            yield at_s, _write(Kind.UPSERT_REPLACE, "alarms", sensor, f"{number % 50:02}")
        elif chosen < 0.98:
            yield at_s, _query("alarms", sensor)
        else:
            hour = KeyRange(partition_from="2026-11-20T10", partition_before="2026-11-20T11")
            yield at_s, _query("readings", WHOLE_TABLE, hour)


def stock(rng: random.Random) -> Made:
    """Articles of six shops that are upserted, deleted and listed; carts that are written in
    transactions and read.
    """
    for at_s in _instants(rng, lambda second: 140):
        shop = f"shop{min(rng.randrange(6), rng.randrange(6))}"
        article, cart = f"article-{rng.randrange(400):04}", f"cart{rng.randrange(300):03}"
        chosen = rng.random()
        if chosen < 0.4:
            yield at_s, _write(Kind.UPSERT_REPLACE, "stock", shop, article)
        elif chosen < 0.45:
            yield at_s, _write(Kind.DELETE, "stock", shop, article)
        elif chosen < 0.6:
            parts = [
                _write(Kind.UPSERT_MERGE, "carts", cart, f"{n}") for n in rng.sample("0123", 2)
            ]
            yield at_s, transaction(tuple(parts))
        elif chosen < 0.8:
            point = Kind.POINT_QUERY
            yield at_s, Operation(kind=point, partition_key=cart, row_key="1", table="carts")
        elif chosen < 0.92:
            first = article[:10]
            yield at_s, _query("stock", shop, KeyRange(row_from=first, row_before=first + ":"))
        else:
            yield at_s, _query("carts", cart)


MADE = {"orders": orders, "bursts": bursts, "stock": stock}


def make(name: str, path: Path, seed: int = 1) -> None:
    """Write the trace to a new folder."""
    tables, recorder = MemoryTables(), Recorder()
    for at_s, operation in MADE[name](random.Random(f"{seed}/{name}")):
        recorder.add(executed(tables, operation, STARTED_S + at_s), "app")
    head = TraceHead(started_ms=STARTED_S * 1000, source="run", name="app", run_id=name)
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))
