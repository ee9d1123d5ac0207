"""What is sent, in the words of a profile: keys, entities, the mix, queries, transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import Field

from harness.model.entity import MAX_ENTITY_BYTES, MAX_TRANSACTION_OPERATIONS, key_problem
from harness.profile.settings.part import EXAMPLE_RUN_ID, Part
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import PICKERS
from harness.workload.keys.row_keys import ROW_KEYS, RowKeys
from harness.workload.keys.scheme import KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES
from harness.workload.mix import Action


def _one_of(names: Iterable[str]) -> pydantic.WithJsonSchema:
    """That a text is one of ``names``, for editors; validators say it to people."""
    return pydantic.WithJsonSchema({"type": "string", "enum": list(names)})


_Rows = Annotated[int, Field(ge=1, le=1_000_000)]
# Told apart beforehand, so that a mistake in one form is not called one in the other too.
_RowsOfEach = Annotated[
    Annotated[_Rows, pydantic.Tag("number")] | Annotated[tuple[_Rows, ...], pydantic.Tag("list")],
    pydantic.Discriminator(lambda rows: "list" if isinstance(rows, tuple) else "number"),
]


def _known(name: str, names: Iterable[str]) -> str:
    if name not in names:
        raise ValueError(f"there is no such thing; there are: {', '.join(names)}")
    return name


def _default_rows(keys: dict[str, Any]) -> int:
    """Rows of each partition where a profile does not say it: as many as the scheme can have."""
    return 1 if SCHEMES[keys["scheme"]].one_row else 1000


class Keys(Part):
    """Which keys there are, and which is touched next."""

    scheme: Annotated[str, _one_of(SCHEMES)] = Field(
        default="spread",
        description="how PartitionKeys are made; `harness schemes` explains each",
    )
    partitions: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="how many PartitionKeys are loaded"
    )
    prefix: str = Field(
        default="p", description="what PartitionKeys start with, where the scheme allows"
    )
    periods: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1,
        description="days, months or years of each device or customer, where keys have a date",
    )
    rows_per_partition: _RowsOfEach = Field(
        default_factory=_default_rows,
        description="entities loaded into each partition; a list says it for each. Default: 1000, "
        "or 1 where the scheme gives each entity a partition of its own",
    )
    row_keys: Annotated[str, _one_of(("default", *ROW_KEYS))] = Field(
        default="default",
        description="how rows are named; default is what the scheme is documented with",
    )
    distribution: Annotated[str, _one_of(PICKERS)] = Field(
        default="uniform", description="which partition is touched next"
    )
    theta: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = Field(
        default=0.99, description="skew of zipfian and latest: 0 is none"
    )
    hot_operations: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.8, description="hotspot: this share of the operations ..."
    )
    hot_keys: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.2, description="hotspot: ... goes to this share of the partitions"
    )

    @pydantic.field_validator("prefix")
    @classmethod
    def _prefix_is_a_key(cls, prefix: str) -> str:
        # The longest that schemes put around it: a hash before, a number and a worker behind.
        if (problem := key_problem("000-" + prefix + "0000000000-0000")) is not None:
            raise ValueError(f"PartitionKey {problem}")
        return prefix

    @pydantic.field_validator("scheme")
    @classmethod
    def _scheme_is_known(cls, scheme: str) -> str:
        return _known(scheme, SCHEMES)

    @pydantic.field_validator("row_keys")
    @classmethod
    def _row_keys_are_known(cls, row_keys: str) -> str:
        return _known(row_keys, ("default", *ROW_KEYS))

    @pydantic.field_validator("distribution")
    @classmethod
    def _distribution_is_known(cls, distribution: str) -> str:
        return _known(distribution, PICKERS)

    def problems(self) -> Iterator[str]:
        """Every reason why there are no such keys, as sentences; with none they can be `made`."""
        rows, of_each = RowCounts(self.partitions, 1), self.rows_per_partition
        if isinstance(of_each, tuple) and len(of_each) != self.partitions:
            yield (
                f"rows_per_partition lists {len(of_each)} partitions, keys.partitions is "
                f"{self.partitions}"
            )
        else:
            rows = self.rows
        yield from SCHEMES[self.scheme].problems(rows, self.periods, self._row_keys(rows))

    def _row_keys(self, rows: RowCounts) -> RowKeys | None:
        return None if self.row_keys == "default" else ROW_KEYS[self.row_keys](rows.partitions)

    @property
    def rows(self) -> RowCounts:
        """How many rows each partition is loaded with."""
        return RowCounts(self.partitions, self.rows_per_partition)

    def made(self) -> KeyScheme:
        """The scheme."""
        rows = self.rows
        return SCHEMES[self.scheme](
            rows, prefix=self.prefix, periods=self.periods, row_keys=self._row_keys(rows)
        )


class Entity(Part):
    """The entities that are written."""

    size_bytes: Annotated[int, Field(ge=1, le=MAX_ENTITY_BYTES)] = Field(
        default=1024, description="stored size of a written entity; the targets hold for 1 KiB"
    )

    @pydantic.field_validator("size_bytes")
    @classmethod
    def _can_be_made(cls, size_bytes: int) -> int:
        EntityFactory(size_bytes, EXAMPLE_RUN_ID).properties("p0", "0-00000000", 0)
        return size_bytes


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Mix(Part):
    """How often each action is done, as weights."""

    point_query: Weight = Field(default=0.0, description="one entity by both keys")
    row_range_scan: Weight = Field(default=0.0, description="consecutive rows of one partition")
    partition_scan: Weight = Field(default=0.0, description="everything of one partition")
    partition_range_scan: Weight = Field(
        default=0.0, description="partitions that were made in a row"
    )
    full_table_scan: Weight = Field(default=0.0, description="everything")
    insert: Weight = Field(default=0.0, description="a new row")
    upsert_merge: Weight = Field(default=0.0, description="insert-or-merge of a loaded row")
    upsert_replace: Weight = Field(default=0.0, description="insert-or-replace of a loaded row")
    update_merge: Weight = Field(default=0.0, description="merge into a loaded row")
    update_replace: Weight = Field(default=0.0, description="replace a loaded row")
    delete: Weight = Field(default=0.0, description="delete the oldest row that was inserted")
    transaction: Weight = Field(
        default=0.0, description="entity group transaction; see [transaction]"
    )
    series_merge: Weight = Field(default=0.0, description="merge one hour's value of a data series")
    conditional_update: Weight = Field(default=0.0, description="read, then update with the ETag")
    read_then_write: Weight = Field(default=0.0, description="read to find out: insert or update?")
    key_change: Weight = Field(
        default=0.0, description="delete a row and insert it under another key"
    )

    @pydantic.model_validator(mode="after")
    def _something_is_sent(self) -> Self:
        if not any(self.weights().values()):
            raise ValueError("every weight is 0; nothing would be sent")
        return self

    def weights(self) -> dict[Action, float]:
        """The weights by action, in a fixed order."""
        return {Action(name): float(getattr(self, name)) for name in type(self).model_fields}


class Query(Part):
    """What the scans of the mix ask for."""

    rows: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=100, description="rows of a row range scan"
    )
    partitions: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=10, description="partitions of a partition range scan"
    )
    returned_share: Annotated[float, Field(ge=0.001, le=1.0)] = Field(
        default=1.0,
        description="query density: share of the walked entities that a filter lets through",
    )
    select: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(), description="projection: properties to return; none is all"
    )
    top: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="at most so many entities a query"
    )


class Transaction(Part):
    """What a transaction of the mix holds."""

    operations: Annotated[int, Field(ge=2, le=MAX_TRANSACTION_OPERATIONS)] = Field(
        default=10, description="entities in one transaction"
    )
    kinds: Annotated[
        tuple[
            Literal[
                "insert",
                "upsert_merge",
                "upsert_replace",
                "update_merge",
                "update_replace",
                "delete",
            ],
            ...,
        ],
        Field(max_length=MAX_TRANSACTION_OPERATIONS),
    ] = Field(default=("upsert_merge",), description="what its operations do, in turn")

    @pydantic.field_validator("kinds")
    @classmethod
    def _does_something(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not kinds:
            raise ValueError("a transaction does something; name one kind at least")
        return kinds
