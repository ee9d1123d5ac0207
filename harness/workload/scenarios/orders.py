"""Orders of an online shop."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Kind, Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Pointers, Recent, Scenario, Setting

DAYS = 10
"""Loaded orders are spread over these days; all new orders are from the day after."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    customer: str
    order_id: str
    day: int

    @property
    def key(self) -> tuple[str, str]:
        """PartitionKey and RowKey in Orders."""
        return self.customer, self.order_id

    @property
    def by_date(self) -> tuple[str, str]:
        """PartitionKey and RowKey in OrdersByDate."""
        return times.day(self.day).date, f"{self.customer}__{self.order_id}"


class Orders(Scenario):
    """Orders by customer, with a copy by date in a second table; two entities an order.

    The key design for blog posts, "Good PartitionKey examples": the customer, with the order id as
    RowKey. The performance checklist, "Denormalization": to find orders by date, a copy is stored
    under the date. The application writes both, one after the other.

    ``keys.partitions`` is the number of customers,
    ``keys.rows_per_partition`` the number of orders of a customer.
    """

    tables = ("Orders", "OrdersByDate")
    actions: ClassVar[Mapping[str, float]] = {
        "read_order": 30,
        "orders_of_customer": 25,
        "orders_of_day": 5,
        "place_order": 25,
        "ship_order": 10,
        "cancel_order": 5,
    }
    pointers = (Pointers(table="OrdersByDate", to="Orders"),)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._moving = self.does("place_order", "cancel_order")
        self._placed: Recent[Order] = Recent()

    def loading(self) -> Iterator[Operation]:
        """The orders customer by customer, then their copies day by day."""
        numbers = range(self.loaded_rows)
        yield from self.batched(self._order(self._loaded(number)) for number in numbers)
        yield from self.batched(
            self._copy(self._loaded(number)) for day in range(DAYS) for number in numbers[day::DAYS]
        )

    def read_order(self, rng: random.Random) -> Operation:
        return self.get(*self._any(rng).key, table="Orders", name="read_order")

    def orders_of_customer(self, rng: random.Random) -> Operation:
        """All orders of one customer: a partition."""
        return self.query(
            self.named("customer", self.pick(rng)),
            table="Orders",
            name="orders_of_customer",
            key_range=KeyRange(entities=self.setting.rows, exact=not self._moving),
        )

    def orders_of_day(self, rng: random.Random) -> Operation:
        """All orders of one day: a partition of the second table instead of a table scan."""
        day = rng.randrange(DAYS + 1)
        loaded = 0 if day == DAYS else len(range(day, self.loaded_rows, DAYS))
        return self.query(
            times.day(day).date,
            table="OrdersByDate",
            name="orders_of_day",
            key_range=KeyRange(entities=loaded, exact=day < DAYS or not self._moving),
        )

    def place_order(self, rng: random.Random) -> Steps:
        """A new order, then its copy."""
        new = Order(
            customer=self.named("customer", self.pick(rng)),
            order_id=self.new_id(after=self.loaded_rows),
            day=DAYS,
        )
        rows = [self._order(new, "place_order"), self._copy(new, "insert_copy")]
        if (yield from self.in_sequence(rows)):
            self._placed.add(new)

    def ship_order(self, rng: random.Random) -> Steps:
        """Two updates: the cost of storing an order twice."""
        order, change = self._any(rng), {"Status": "shipped"}
        kind = Kind.UPDATE_MERGE
        ship = self.write(kind, *order.key, change, table="Orders", name="ship_order")
        copy = self.write(kind, *order.by_date, change, table="OrdersByDate", name="update_copy")
        yield from self.in_sequence([ship, copy])

    def cancel_order(self, rng: random.Random) -> Steps:
        """Delete the worker's oldest order, then its copy; if there is none, place one."""
        order = self._placed.take()
        if order is None:
            yield from self.place_order(rng)
            return
        cancel = self.delete(*order.key, table="Orders", name="cancel_order")
        copy = self.delete(*order.by_date, table="OrdersByDate", name="delete_copy")
        yield from self.in_sequence([cancel, copy])

    def _any(self, rng: random.Random) -> Order:
        rows = self.setting.rows
        new = self._placed.sometimes(rng)
        return new or self._loaded(self.pick(rng) * rows + rng.randrange(rows))

    def _loaded(self, number: int) -> Order:
        return Order(
            customer=self.named("customer", number // self.setting.rows),
            order_id=f"{number:08d}",
            day=number % DAYS,
        )

    def _order(self, order: Order, name: str = "") -> Operation:
        return self.insert(*order.key, _content(order), table="Orders", name=name)

    def _copy(self, order: Order, name: str = "") -> Operation:
        # A whole copy, so that readers do not need the original, and the key of the original.
        partition_key, row_key = order.key
        pointer = {"TargetPartition": partition_key, "TargetRow": row_key}
        content = {**_content(order), **pointer}
        return self.insert(*order.by_date, content, table="OrdersByDate", name=name)


def _content(order: Order) -> dict[str, EdmValue]:
    return {"Status": "placed", "Customer": order.customer, "OrderId": order.order_id}
