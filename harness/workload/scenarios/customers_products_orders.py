"""Customers, products and orders: three tables, each partitioned by how it is asked.

The data partitioning strategies, "Partitioning Azure Table storage": Customer Info by city with
the customer ID as RowKey, Product Info by product category with the product number, Order Info by
order date with the time at which the order was received.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.operation import KeyRange, Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import HOUR, Clock, EvenSpread, Instant

_LOADED_HOURS = 12
"""Loaded orders were received in the first half of each day; new ones come on the last."""

_Key = tuple[str, str]


class CustomersProductsOrders(Scenario):
    """Three tables: customers by city, products by category, orders by day.

    ``keys.partitions`` is the number of cities, of categories and of days,
    ``keys.rows_per_partition`` the number of rows of each.
    """

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
        self._width = len(str(setting.partitions - 1))
        self._received = EvenSpread(setting.rows, _LOADED_HOURS * HOUR)
        today = times.day(setting.partitions - 1)
        self._clock = Clock(today.after(_LOADED_HOURS * HOUR), setting.worker)

    def loading(self) -> Iterator[Operation]:
        """Table by table."""
        places = [
            (partition, row)
            for partition in range(self.setting.partitions)
            for row in range(self.setting.rows)
        ]
        yield from self.batched(self._customer(self._customer_key(*place)) for place in places)
        yield from self.batched(
            self.insert(
                *self._product_key(*place), {"Name": "Product", "Price": 9.5}, table="ProductInfo"
            )
            for place in places
        )
        yield from self.batched(
            self._order(
                times.day(day).after(self._received.at(row)),
                self._customer_key(day, row),
                self._product_key(day, row),
            )
            for day, row in places
        )

    def read_product(self, rng: random.Random) -> Operation:
        """One product."""
        key = self._product_key(*self._place(rng))
        return self.get(*key, table="ProductInfo", name="read_product")

    def products_of_category(self, rng: random.Random) -> Operation:
        """All products of a category: a partition, and nobody adds any."""
        category, _ = self._product_key(self.pick(rng), 0)
        return self.query(
            category,
            table="ProductInfo",
            name="products_of_category",
            select=("Name", "Price"),
            key_range=KeyRange(entities=self.setting.rows, exact=True),
        )

    def read_customer(self, rng: random.Random) -> Operation:
        """One customer."""
        key = self._customer_key(*self._place(rng))
        return self.get(*key, table="CustomerInfo", name="read_customer")

    def customers_of_city(self, rng: random.Random) -> Operation:
        """All customers of a city: a partition."""
        city, _ = self._customer_key(self.pick(rng), 0)
        return self.query(
            city,
            table="CustomerInfo",
            name="customers_of_city",
            key_range=KeyRange(entities=self.setting.rows, exact=not self.does("add_customer")),
        )

    def add_customer(self, rng: random.Random) -> Operation:
        """A new customer."""
        city, _ = self._customer_key(self.pick(rng), 0)
        new_id = self.new_id(after=self.setting.partitions * self.setting.rows)
        return self._customer((city, f"customer-{new_id}"), "add_customer")

    def change_price(self, rng: random.Random) -> Operation:
        """One property of a product changes."""
        price = 1 + rng.randrange(1000) / 10
        key = self._product_key(*self._place(rng))
        return self.merge(*key, {"Price": price}, table="ProductInfo", name="change_price")

    def place_order(self, rng: random.Random) -> Steps:
        """Read the customer, read the product, then store the order under the time it came."""
        customer = self._customer_key(*self._place(rng))
        product = self._product_key(*self._place(rng))
        reads = (
            self.get(*customer, table="CustomerInfo", name="read_customer"),
            self.get(*product, table="ProductInfo", name="read_product"),
        )
        if (yield from self.in_sequence(reads)):
            yield self._order(self._clock.next(), customer, product, "place_order")

    def orders_of_hour(self, rng: random.Random) -> Operation:
        """The orders of an hour of a day: a range of times into which nothing comes any more."""
        hour = rng.randrange(_LOADED_HOURS)
        begin = times.day(self.pick(rng)).after(hour * HOUR)
        walked = self._received.within(hour * HOUR, (hour + 1) * HOUR)
        return self.query(
            begin.date,
            table="OrderInfo",
            name="orders_of_hour",
            key_range=KeyRange(
                row_from=begin.time, row_before=begin.after(HOUR).time, entities=walked, exact=True
            ),
        )

    def _place(self, rng: random.Random) -> tuple[int, int]:
        return self.pick(rng), rng.randrange(self.setting.rows)

    def _customer_key(self, city: int, row: int) -> _Key:
        return f"city-{city:0{self._width}d}", f"customer-{self._serial(city, row)}"

    def _product_key(self, category: int, row: int) -> _Key:
        return f"category-{category:0{self._width}d}", f"product-{self._serial(category, row)}"

    def _serial(self, partition: int, row: int) -> str:
        return f"{partition * self.setting.rows + row:08d}"

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
