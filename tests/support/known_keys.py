"""Thirteen made-up applications, small, of which it is known what their keys should be.

Each is one seeded half minute on tables in memory, so that queries scan what they would.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.gateway.limits import GatewayLimits, Rate, Servers
from harness.measure.record.advice import KeyAnswer
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.trace.head import TraceHead
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from tests.support.memory_tables import MemoryTables
from tests.support.recorded import STARTED_S, executed

SECONDS, EVERY_S = 30, 0.02
PROPERTIES = ("CustomerId", "Email")
"""What is recorded with ``--trace-properties``."""
LIMITS = GatewayLimits(
    partition=Rate(entities_per_s=40.0),
    account=Rate(entities_per_s=400.0),
    servers=Servers(entities_per_s=80.0),
)
"""The published limits for a fiftieth of the traffic."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownApplication:
    """An application with a known answer.

    Attributes:
        made: Its operations: those before the recording, then None, then one for each instant. The
            argument says what time it is, UTC.
        rate: Multiple of the traffic to ask about.
        known: The known answer, in words.
        answer: What is said.
        keys: Texts, of which each PartitionKey that is as good has one; empty if none is named.
    """

    name: str
    made: Callable[[random.Random, Callable[[], dt.datetime]], Iterator[Operation | None]]
    rate: float
    answer: KeyAnswer
    known: str
    keys: tuple[str, ...] = ()


def record_known(application: KnownApplication, path: Path, seed: int = 1) -> None:
    """Record half a minute of it."""
    tables, recorder = MemoryTables(), Recorder(PROPERTIES)
    now_s = [float(STARTED_S)]
    made = application.made(
        random.Random(seed), lambda: dt.datetime.fromtimestamp(now_s[0], tz=dt.UTC)
    )
    for operation in made:
        if operation is None:
            break
        tables.execute(operation)
    while now_s[0] < STARTED_S + SECONDS:
        operation = next(made)
        assert operation is not None
        recorder.add(executed(tables, operation, now_s[0]), "app")
        now_s[0] += EVERY_S
    head = TraceHead(
        started_ms=STARTED_S * 1000,
        source="watch",
        name=application.name,
        properties=",".join(PROPERTIES),
    )
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))


def _write(key: str, row: str, table: str = "", **properties: str) -> Operation:
    return Operation(
        kind=Kind.UPSERT_REPLACE,
        partition_key=key,
        row_key=row,
        table=table,
        properties={"Value": 1, **properties},
    )


def _read(key: str, row: str, table: str = "") -> Operation:
    return Operation(kind=Kind.POINT_QUERY, partition_key=key, row_key=row, table=table)


def _rows(key: str, beginning: str = "", *, top: int | None = None) -> Operation:
    """A query of the rows of a partition that begin so."""
    keys = KeyRange()
    if beginning:
        keys = KeyRange(row_from=beginning, row_before=beginning[:-1] + chr(ord(beginning[-1]) + 1))
    return Operation(kind=Kind.QUERY, partition_key=key, key_range=keys, top=top)


_Now = Callable[[], dt.datetime]


def _log_by_day(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    number = 0
    while True:
        number += 1
        yield _write(f"{now():%Y-%m-%d}", f"{now():%H%M%S}-{number:06}")


def _hot_tenant(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    tenants = ["contoso", *(f"tenant-{one:02}" for one in range(12))]
    for tenant in tenants:
        for number in range(50):
            yield _write(tenant, f"invoice-{number:06}")
    yield None
    while True:
        tenant = "contoso" if rng.random() < 0.6 else rng.choice(tenants)
        row = f"invoice-{rng.randrange(400):06}"
        yield _write(tenant, row) if rng.random() < 0.5 else _read(tenant, row)


def _hot_row(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    while True:
        if rng.random() < 0.38:
            yield _write("site-03", "page-007")
        else:
            yield _write(f"site-{rng.randrange(40):02}", f"page-{rng.randrange(100):03}")


def _devices(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    while True:
        device = f"device-{rng.randrange(200):03}"
        if rng.random() < 0.1:
            yield _rows(f"{now():%Y-%m-%d}", f"{device}_")
        else:
            yield _write(f"{now():%Y-%m-%d}", f"{device}_{now():%H%M%S%f}"[:-3])


def _too_coarse(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    days = [f"2023-{month:02}-{day:02}" for month in range(1, 11) for day in range(1, 29, 3)]
    for region in range(4):
        for day in days:
            for hour in range(4):
                yield _write(f"region-{region}_2023", f"{day}T{hour:02}")
    yield None
    while True:
        key, day = f"region-{rng.choice((0, 0, 0, 1, 2, 3))}_2023", rng.choice(days)
        yield _rows(key, f"{day}T") if rng.random() < 0.5 else _read(key, f"{day}T02")


def _too_fine(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    for device in range(20):
        for hour in range(4):
            for minute in range(60):
                yield _write(f"device-{device:02}_2023-11-14T{hour:02}{minute:02}", "00")
    yield None
    while True:
        name, chosen = f"device-{rng.randrange(20):02}", rng.random()
        begin = f"{name}_2023-11-14T{rng.randrange(4):02}{rng.randrange(6)}"
        if chosen < 0.1:
            yield _read(f"{begin}0", "00")
        elif chosen < 0.35:
            keys = KeyRange(partition_from=begin, partition_before=f"{begin}~")
            yield Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE, key_range=keys)
        else:
            yield _write(f"{name}_{now():%Y-%m-%dT%H%M}", f"{now():%S}")


def _orders(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    for number in range(200):
        yield _write(f"{now():%Y-%m}", f"customer-{number % 60:04}_order-{number:06}")
    yield None
    number = 200
    while True:
        number += 1
        customer, chosen = f"customer-{rng.randrange(60):04}", rng.random()
        if chosen < 0.001:
            yield _rows(f"{now():%Y-%m}")
        elif chosen < 0.15:
            yield _rows(f"{now():%Y-%m}", f"{customer}_")
        else:
            yield _write(f"{now():%Y-%m}", f"{customer}_order-{number:06}")


def _feed(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    for number in range(1200):
        yield _write("posts", f"user{number % 120:04}_{9_999_999_999 - number}")
    yield None
    number = 1200
    while True:
        number += 1
        user = f"user{min(119, int(rng.expovariate(1 / 40))):04}"
        if rng.random() < 0.6:
            yield _rows("posts", f"{user}_", top=10)
        else:
            yield _write("posts", f"{user}_{9_999_999_999 - number}")


def _two_properties(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    for number in range(400):
        yield _write(f"{number:06}", "account", Email=f"u{number}@example.com")
    yield None
    while True:
        number = rng.randrange(400)
        if rng.random() < 0.2:
            yield Operation(
                kind=Kind.QUERY,
                partition_key=WHOLE_TABLE,
                filter=f"Email eq 'u{number}@example.com'",
            )
        else:
            yield _read(f"{number:06}", "account")


def _tied(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    number = 0
    while True:
        number += 1
        store, chosen = f"store-{rng.choice((1, 1, 1, 2))}", rng.random()
        if chosen < 0.7:
            lines = ("head", *(f"line{line}" for line in range(rng.randint(1, 4))))
            yield transaction(tuple(_write(store, f"order-{number:06}_{line}") for line in lines))
        else:
            yield _rows(store, f"order-{rng.randrange(1, number + 1):06}_")


def _even(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    while True:
        yield _write(f"cart-{rng.randrange(2000):06}", f"item-{rng.randrange(9)}")


def _one_of_three(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    yield None
    number = 0
    while True:
        number += 1
        chosen = rng.random()
        if chosen < 0.05:
            yield _read(f"user-{rng.randrange(100):03}", "profile", "Users")
        elif chosen < 0.1:
            yield _read("settings", f"key-{rng.randrange(20):02}", "Settings")
        else:
            yield _write("events", f"event-{number:08}", "Events")


def _property(rng: random.Random, now: _Now) -> Iterator[Operation | None]:
    for number in range(600):
        guid = f"{rng.getrandbits(128):032x}"
        yield _write("orders", guid, CustomerId=f"c{number % 60:03}")
    yield None
    while True:
        guid, customer = f"{rng.getrandbits(128):032x}", f"c{rng.randrange(60):03}"
        if rng.random() < 0.1:
            asked = f"CustomerId eq '{customer}'"
            yield Operation(kind=Kind.QUERY, partition_key="orders", filter=asked)
        else:
            yield _write("orders", guid, CustomerId=customer)


CHANGE, FINE, NO_KEY = KeyAnswer.CHANGE, KeyAnswer.FINE, KeyAnswer.NO_KEY
KNOWN = tuple(
    KnownApplication(name=name, made=made, rate=rate, answer=answer, known=known, keys=keys)
    for name, made, rate, answer, known, keys in (
        ("log by day", _log_by_day, 1, CHANGE, "day and buckets", (":bucket", ":hash")),
        ("hot tenant", _hot_tenant, 2, CHANGE, "tenant and buckets", (":bucket", "{invoice")),
        ("hot row", _hot_row, 3, NO_KEY, "none: one row takes 38%", ()),
        ("readings by device", _devices, 1, CHANGE, "device", ("{device",)),
        ("time too coarse", _too_coarse, 1, CHANGE, "region and day", ("{row_date:",)),
        ("time too fine", _too_fine, 1, FINE, "device and hour, for the queries", ("{time:hour}",)),
        (
            "monthly report",
            _orders,
            1,
            CHANGE,
            "month and buckets by customer",
            ("{customer:bucket",),
        ),
        ("social feed", _feed, 1, CHANGE, "user", ("{user",)),
        ("two properties", _two_properties, 1, NO_KEY, "none: a second copy under Email", ()),
        ("tied by transactions", _tied, 1, CHANGE, "store and order", ("{order",)),
        ("even load", _even, 1, FINE, "none: today's are fine", ()),
        ("one of three", _one_of_three, 1, CHANGE, "buckets, of this table", (":bucket", "{event")),
        ("a property", _property, 1, CHANGE, "CustomerId", ("{CustomerId",)),
    )
)
