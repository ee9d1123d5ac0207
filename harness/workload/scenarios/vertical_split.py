"""One entity split vertically: small hot fields in one table, large cold ones in another.

The data partitioning strategies, "Partitioning Azure Table storage": fields go into the groups in
which they are accessed together. Both rows of a product have the same key; its stock and price,
which change all the time, are not written together with a description that nearly never does.
"""

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
        self._width = len(str(setting.partitions - 1))
        self._total = setting.partitions * setting.rows
        self._added: Recent[_Key] = Recent()

    def loading(self) -> Iterator[Operation]:
        """Category by category, the hot table first."""
        for make in (self._hot, self._cold):
            yield from self.batched(
                make(self._loaded(category, product))
                for category in range(self.setting.partitions)
                for product in range(self.setting.rows)
            )

    def read_stock(self, rng: random.Random) -> Operation:
        """What is left of a product, and what it costs."""
        return self.get(*self._any(rng), table="ProductHot", name="read_stock")

    def sell(self, rng: random.Random) -> Operation:
        """The stock changes; nothing large is touched."""
        return self.write(
            Kind.UPDATE_MERGE,
            *self._any(rng),
            {"Stock": rng.randrange(1000)},
            table="ProductHot",
            name="sell",
        )

    def stock_of_category(self, rng: random.Random) -> Operation:
        """Stock and price of a whole category, in few bytes."""
        return self.query(
            self._category(self.pick(rng)),
            table="ProductHot",
            name="stock_of_category",
            key_range=KeyRange(entities=self.setting.rows, exact=not self.does("add_product")),
        )

    def show_product(self, rng: random.Random) -> Steps:
        """All of a product: two reads, which is the price of the split."""
        key = self._any(rng)
        hot = self.get(*key, table="ProductHot", name="show_hot")
        cold = self.get(*key, table="ProductCold", name="show_cold")
        yield from self.in_sequence([hot, cold])

    def edit_description(self, rng: random.Random) -> Operation:
        """What is large is replaced."""
        return self._cold(self._any(rng), "edit_description", Kind.UPSERT_REPLACE)

    def add_product(self, rng: random.Random) -> Steps:
        """A new product: the cold row first, so that whoever sees the hot one finds both."""
        key = self._category(self.pick(rng)), self.new_id(after=self._total)
        if (yield from self.in_sequence([self._cold(key, "add_cold"), self._hot(key, "add_hot")])):
            self._added.add(key)

    def _category(self, number: int) -> str:
        return f"category-{number:0{self._width}d}"

    def _any(self, rng: random.Random) -> _Key:
        """Key of a product that is there."""
        new = self._added.sometimes(rng)
        return new or self._loaded(self.pick(rng), rng.randrange(self.setting.rows))

    def _loaded(self, category: int, product: int) -> _Key:
        return self._category(category), f"{category * self.setting.rows + product:08d}"

    def _hot(self, key: _Key, name: str = "") -> Operation:
        content = {"Stock": 100, "Price": 9.5}
        return self.insert(*key, content, table="ProductHot", name=name, fill=False)

    def _cold(self, key: _Key, name: str = "", kind: Kind = Kind.INSERT) -> Operation:
        content = {"Description": f"All about product {key[1]}."}
        return self.write(kind, *key, content, table="ProductCold", name=name)
