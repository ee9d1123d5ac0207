"""One entity split vertically."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.operation import KeyRange, Kind, Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Recent, Scenario, Setting

_Key = tuple[str, str]


class VerticalSplit(Scenario):
    """Products by category, split into a hot and a cold table; two entities a product.

    The data partitioning strategies, "Partitioning Azure Table storage": fields that are accessed
    together are stored together. Stock and price, which change often, are written without the
    description, which rarely changes. Both rows of a product have the same key.

    ``keys.partitions`` is the number of categories,
    ``keys.rows_per_partition`` the number of products of a category.
    """

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
