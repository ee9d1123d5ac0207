"""Customers, products and orders."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import HOUR, Clock, EvenSpread, Instant

_LOADED_HOURS = 12
"""Loaded orders are from the first half of each day; new orders are from the rest of the last."""

_Key = tuple[str, str]


class CustomersProductsOrders(Scenario):
    """Three tables: customers by city, products by category, orders by day.

    The data partitioning strategies, "Partitioning Azure Table storage". The RowKeys are the
    customer ID, the product number, and the time at which the order was received.

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
