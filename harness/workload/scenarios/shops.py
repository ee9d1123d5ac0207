"""Orders and products: found by several keys, in several tables."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Kind, Operation
from harness.workload import simulated_time as times
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Pointers, Recent, Scenario, Setting
from harness.workload.simulated_time import HOUR, Clock, EvenSpread, Instant

ORDER_DAYS = 10
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

    ``fields.customer.values`` is the number of customers,
    ``keys.rows_per_partition`` the number of orders of a customer.
    """

    field = "customer"
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
            self._copy(self._loaded(number))
            for day in range(ORDER_DAYS)
            for number in numbers[day::ORDER_DAYS]
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
        day = rng.randrange(ORDER_DAYS + 1)
        loaded = 0 if day == ORDER_DAYS else len(range(day, self.loaded_rows, ORDER_DAYS))
        return self.query(
            times.day(day).date,
            table="OrdersByDate",
            name="orders_of_day",
            key_range=KeyRange(entities=loaded, exact=day < ORDER_DAYS or not self._moving),
        )

    def place_order(self, rng: random.Random) -> Steps:
        """A new order, then its copy."""
        new = Order(
            customer=self.named("customer", self.pick(rng)),
            order_id=self.new_id(after=self.loaded_rows),
            day=ORDER_DAYS,
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
            day=number % ORDER_DAYS,
        )

    def _order(self, order: Order, name: str = "") -> Operation:
        return self.insert(*order.key, _order_content(order), table="Orders", name=name)

    def _copy(self, order: Order, name: str = "") -> Operation:
        # A whole copy, so that readers do not need the original, and the key of the original.
        partition_key, row_key = order.key
        pointer = {"TargetPartition": partition_key, "TargetRow": row_key}
        content = {**_order_content(order), **pointer}
        return self.insert(*order.by_date, content, table="OrdersByDate", name=name)


def _order_content(order: Order) -> dict[str, EdmValue]:
    return {"Status": "placed", "Customer": order.customer, "OrderId": order.order_id}


_LOADED_HOURS = 12
"""Loaded orders are from the first half of each day; new orders are from the rest of the last."""

_Key = tuple[str, str]


class CustomersProductsOrders(Scenario):
    """Three tables: customers by city, products by category, orders by day.

    The data partitioning strategies, "Partitioning Azure Table storage". The RowKeys are the
    customer ID, the product number, and the time at which the order was received.

    ``fields.group.values`` is the number of cities, of categories and of days,
    ``keys.rows_per_partition`` the number of rows of each.
    """

    field = "group"
    tables = ("CustomerInfo", "ProductInfo", "OrderInfo")
    actions: ClassVar[Mapping[str, float]] = {
        "read_product": 30,
        "products_of_category": 10,
        "place_order": 20,
        "orders_of_hour": 10,
        "read_customer": 10,
        "customers_of_city": 5,
        "change_price": 5,
        "add_customer": 5,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._received = EvenSpread(setting.rows, _LOADED_HOURS * HOUR)
        today = times.day(setting.partitions - 1)
        self._clock = Clock(today.after(_LOADED_HOURS * HOUR), setting.worker)

    def loading(self) -> Iterator[Operation]:
        """Table by table."""
        yield from self.batched(self._customer(self._customer_key(*at)) for at in self.places())
        product: dict[str, EdmValue] = {"Name": "Product", "Price": 9.5}
        yield from self.batched(
            self.insert(*self._product_key(*at), product, table="ProductInfo")
            for at in self.places()
        )
        yield from self.batched(
            self._order(
                times.day(day).after(self._received.at(row)),
                self._customer_key(day, row),
                self._product_key(day, row),
            )
            for day, row in self.places()
        )

    def read_product(self, rng: random.Random) -> Operation:
        key = self._product_key(*self.place(rng))
        return self.get(*key, table="ProductInfo", name="read_product")

    def products_of_category(self, rng: random.Random) -> Operation:
        """All products of a category: a partition that does not change."""
        return self.query(
            self.named("category", self.pick(rng)),
            table="ProductInfo",
            name="products_of_category",
            select=("Name", "Price"),
            key_range=KeyRange(entities=self.setting.rows, exact=True),
        )

    def read_customer(self, rng: random.Random) -> Operation:
        key = self._customer_key(*self.place(rng))
        return self.get(*key, table="CustomerInfo", name="read_customer")

    def customers_of_city(self, rng: random.Random) -> Operation:
        """All customers of a city: a partition."""
        return self.query(
            self.named("city", self.pick(rng)),
            table="CustomerInfo",
            name="customers_of_city",
            key_range=KeyRange(entities=self.setting.rows, exact=not self.does("add_customer")),
        )

    def add_customer(self, rng: random.Random) -> Operation:
        city, new_id = self.named("city", self.pick(rng)), self.new_id(after=self.loaded_rows)
        return self._customer((city, f"customer-{new_id}"), "add_customer")

    def change_price(self, rng: random.Random) -> Operation:
        """Merge one property of a product."""
        price = 1 + rng.randrange(1000) / 10
        key = self._product_key(*self.place(rng))
        return self.merge(*key, {"Price": price}, table="ProductInfo", name="change_price")

    def place_order(self, rng: random.Random) -> Steps:
        """Read the customer, read the product, then insert the order."""
        customer = self._customer_key(*self.place(rng))
        product = self._product_key(*self.place(rng))
        reads = (
            self.get(*customer, table="CustomerInfo", name="read_customer"),
            self.get(*product, table="ProductInfo", name="read_product"),
        )
        if (yield from self.in_sequence(reads)):
            yield self._order(self._clock.next(), customer, product, "place_order")

    def orders_of_hour(self, rng: random.Random) -> Operation:
        """The orders of one hour: a range of RowKeys that gets no new rows."""
        hour = rng.randrange(_LOADED_HOURS)
        begin = times.day(self.pick(rng)).after(hour * HOUR)
        scanned = self._received.within(hour * HOUR, (hour + 1) * HOUR)
        return self.query(
            begin.date,
            table="OrderInfo",
            name="orders_of_hour",
            key_range=KeyRange(
                row_from=begin.time, row_before=begin.after(HOUR).time, entities=scanned, exact=True
            ),
        )

    def _customer_key(self, city: int, row: int) -> _Key:
        return self.named("city", city), f"customer-{city * self.setting.rows + row:08d}"

    def _product_key(self, category: int, row: int) -> _Key:
        return self.named("category", category), f"product-{category * self.setting.rows + row:08d}"

    def _customer(self, key: _Key, name: str = "") -> Operation:
        content = {"Name": f"Name of {key[1]}", "City": key[0]}
        return self.insert(*key, content, table="CustomerInfo", name=name)

    def _order(self, at: Instant, customer: _Key, product: _Key, name: str = "") -> Operation:
        content = {
            "City": customer[0],
            "Customer": customer[1],
            "Category": product[0],
            "Product": product[1],
        }
        return self.insert(at.date, at.time, content, table="OrderInfo", name=name)


class VerticalSplit(Scenario):
    """Products by category, split into a hot and a cold table; two entities a product.

    The data partitioning strategies, "Partitioning Azure Table storage": fields that are accessed
    together are stored together. Stock and price, which change often, are written without the
    description, which rarely changes. Both rows of a product have the same key.

    ``fields.category.values`` is the number of categories,
    ``keys.rows_per_partition`` the number of products of a category.
    """

    field = "category"
    tables = ("ProductHot", "ProductCold")
    actions: ClassVar[Mapping[str, float]] = {
        "read_stock": 45,
        "sell": 30,
        "stock_of_category": 5,
        "show_product": 10,
        "edit_description": 2,
        "add_product": 3,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._added: Recent[_Key] = Recent()

    def loading(self) -> Iterator[Operation]:
        yield from self.batched(self._hot(self._loaded(*place)) for place in self.places())
        yield from self.batched(self._cold(self._loaded(*place)) for place in self.places())

    def read_stock(self, rng: random.Random) -> Operation:
        return self.get(*self._any(rng), table="ProductHot", name="read_stock")

    def sell(self, rng: random.Random) -> Operation:
        """Update the stock in the small row."""
        key, stock = self._any(rng), {"Stock": rng.randrange(1000)}
        return self.write(Kind.UPDATE_MERGE, *key, stock, table="ProductHot", name="sell")

    def stock_of_category(self, rng: random.Random) -> Operation:
        """Stock and price of a whole category, in few bytes."""
        return self.query(
            self.named("category", self.pick(rng)),
            table="ProductHot",
            name="stock_of_category",
            key_range=KeyRange(entities=self.setting.rows, exact=not self.does("add_product")),
        )

    def show_product(self, rng: random.Random) -> Steps:
        """All of a product: two reads, the cost of the split."""
        key = self._any(rng)
        hot = self.get(*key, table="ProductHot", name="show_hot")
        cold = self.get(*key, table="ProductCold", name="show_cold")
        yield from self.in_sequence([hot, cold])

    def edit_description(self, rng: random.Random) -> Operation:
        """Replace the large row."""
        return self._cold(self._any(rng), "edit_description", Kind.UPSERT_REPLACE)

    def add_product(self, rng: random.Random) -> Steps:
        """A new product: the cold row first, so that readers of the hot row find both."""
        key = self.named("category", self.pick(rng)), self.new_id(after=self.loaded_rows)
        if (yield from self.in_sequence([self._cold(key, "add_cold"), self._hot(key, "add_hot")])):
            self._added.add(key)

    def _any(self, rng: random.Random) -> _Key:
        return self._added.sometimes(rng) or self._loaded(*self.place(rng))

    def _loaded(self, category: int, product: int) -> _Key:
        return self.named("category", category), f"{category * self.setting.rows + product:08d}"

    def _hot(self, key: _Key, name: str = "") -> Operation:
        content = {"Stock": 100, "Price": 9.5}
        return self.insert(*key, content, table="ProductHot", name=name, fill=False)

    def _cold(self, key: _Key, name: str = "", kind: Kind = Kind.INSERT) -> Operation:
        content = {"Description": f"All about product {key[1]}."}
        return self.write(kind, *key, content, table="ProductCold", name=name)
