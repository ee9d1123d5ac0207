"""What a profile may say. Units are in the names; what is not here is an error.

The defaults are those of the shipped profiles, so that a profile says only what is special to it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field

from harness.measure.conditions import parse_condition
from harness.model.entity import (
    MAX_ENTITY_BYTES,
    MAX_TRANSACTION_BYTES,
    MAX_TRANSACTION_OPERATIONS,
    key_problem,
)
from harness.model.operation import Kind
from harness.workload.entities import EntityFactory, wire_bytes
from harness.workload.keys import NumberedKeys

PART_OVERHEAD_BYTES = 700
"""Headers and multipart borders of one operation in a transaction, about."""
EXAMPLE_RUN_ID = "00000000T000000Z-00000000"
"""As long as any run's."""


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Keys(_Part):
    """Which partitions there are, and which is touched next."""

    partitions: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    prefix: str = "p"
    rows_per_partition: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    distribution: Literal["uniform", "zipfian"] = "uniform"
    theta: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 0.99

    @pydantic.field_validator("prefix")
    @classmethod
    def _prefix_is_a_key(cls, prefix: str) -> str:
        # A number of up to six digits follows.
        if (problem := key_problem(prefix + "000000")) is not None:
            raise ValueError(f"PartitionKey {problem}")
        return prefix


class Entity(_Part):
    """The entities that are written."""

    size_bytes: Annotated[int, Field(ge=1, le=MAX_ENTITY_BYTES)] = 1024

    @pydantic.field_validator("size_bytes")
    @classmethod
    def _can_be_made(cls, size_bytes: int) -> int:
        keys = NumberedKeys(count=1)
        EntityFactory(size_bytes, EXAMPLE_RUN_ID).properties(
            keys.partition_key(0), keys.inserted_row_key(0, 0), 0
        )
        return size_bytes


class Mix(_Part):
    """How often each kind of operation is sent, as weights."""

    point_query: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    insert: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    upsert_merge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    upsert_replace: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    update_merge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    update_replace: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    delete: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    transaction: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @pydantic.model_validator(mode="after")
    def _something_is_sent(self) -> Self:
        if not any(self.weights().values()):
            raise ValueError("every weight is 0; nothing would be sent")
        return self

    def weights(self) -> dict[Kind, float]:
        """The weights by kind, in a fixed order."""
        return {Kind(name): float(getattr(self, name)) for name in type(self).model_fields}


class Transaction(_Part):
    """What a transaction of the mix holds."""

    operations: Annotated[int, Field(ge=2, le=MAX_TRANSACTION_OPERATIONS)] = 10
    kind: Literal["insert", "upsert_merge", "upsert_replace", "update_merge", "update_replace"] = (
        "upsert_merge"
    )


class Load(_Part):
    """How many users send, how fast, and for how long."""

    users: Annotated[int, Field(ge=1, le=100_000)] = 20
    spawn_rate_per_s: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 10.0
    settle_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 3.0
    run_time_s: Annotated[int, Field(ge=1, le=14 * 24 * 3600)] = 30
    max_entities_per_s: Annotated[float, Field(gt=0)] | None = None
    emulator_max_entities_per_s: Annotated[float, Field(gt=0)] = 500.0


class Loading(_Part):
    """What happens between loading the table and the load."""

    settle_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 2.0
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4


class Retry(_Part):
    """When an operation is sent again."""

    strategy: Literal["none", "fixed", "exponential", "schedule"] = "exponential"
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    backoff_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 0.5
    minimum_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 0.1
    maximum_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 8.0
    delays_s: tuple[Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)], ...] = (
        2.0, 4.0, 10.0, 30.0,
    )  # fmt: skip


class Session(_Part):
    """How requests are sent."""

    kind: Literal["sdk", "sdk-default"] = "sdk"
    connections: Annotated[int, Field(ge=1, le=10_000)] = 500
    connect_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 5.0
    read_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0


class Limits(_Part):
    """What a run may cost, and when it stops itself."""

    billable_transactions: Annotated[int, Field(ge=1)] | None = None
    stop_on_account_throttling: bool = True


def _condition(text: str) -> str:
    parse_condition(text)
    return text


class Profile(_Part):
    """One question, and the load that answers it."""

    question: Annotated[str, Field(min_length=1)]
    user_class: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    seed: Annotated[int, Field(ge=0)] = 1
    conditions: tuple[Annotated[str, pydantic.AfterValidator(_condition)], ...] = ()
    keys: Keys = Keys()
    entity: Entity = Entity()
    mix: Mix = Mix(point_query=50, upsert_merge=40, transaction=10)
    transaction: Transaction = Transaction()
    loading: Loading = Loading()
    load: Load = Load()
    retry: Retry = Retry()
    session: Session = Session()
    limits: Limits = Limits()

    @pydantic.model_validator(mode="after")
    def _parts_fit(self) -> Self:
        problems = list(self._misfits())
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _misfits(self) -> list[str]:
        """What no part can tell alone."""
        problems = []
        operations = self.transaction.operations
        loaded_rows = self.mix.transaction > 0 and self.transaction.kind != "insert"
        if loaded_rows and operations > self.keys.rows_per_partition:
            problems.append(
                f"transaction.operations ({operations}) is more than keys.rows_per_partition "
                f"({self.keys.rows_per_partition}); a transaction names each RowKey once"
            )
        keys = NumberedKeys(count=self.keys.partitions, prefix=self.keys.prefix)
        partition_key, row_key = keys.partition_key(0), keys.inserted_row_key(0, 0)
        factory = EntityFactory(self.entity.size_bytes, EXAMPLE_RUN_ID)
        try:
            properties = factory.properties(partition_key, row_key, 0)
        except ValueError as error:
            problems.append(f"entity.size_bytes: {error}")
            return problems
        one = wire_bytes(partition_key, row_key, properties) + PART_OVERHEAD_BYTES
        if self.mix.transaction > 0 and operations * one > MAX_TRANSACTION_BYTES:
            problems.append(
                f"transaction.operations x entity.size_bytes: {operations} operations of about "
                f"{one:,} bytes are over the 4 MiB that a transaction may have"
            )
        return problems
