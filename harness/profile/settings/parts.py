"""The parts of a profile, each a table of the TOML file. Units are in the names.

The defaults are those of the shipped profiles, so that a profile states only what is special to it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field

from harness.model.entity import MAX_ENTITY_BYTES, MAX_TRANSACTION_OPERATIONS
from harness.model.figures import listed
from harness.model.operation import Kind
from harness.model.services.queues import MAX_MESSAGES
from harness.model.services.service import PUBLISHED, Service, Targets
from harness.model.sessions import SDK, SESSIONS
from harness.model.target import Throughput
from harness.workload.entity_factory import EntityFactory, Payload
from harness.workload.mix import Action
from harness.workload.tasks import MessageShape

EXAMPLE_RUN_ID = "00000000T000000Z-00000000"
"""A run id for sizes that are computed before a run: every run id has this length."""
TWO_WEEKS_S = 14 * 24 * 3600
MOST_RATE = 10_000_000
LEAST_RATE = 0.001
"""One in 1,000 s: no run takes long enough for lower rates."""

_Seconds = Annotated[float, Field(ge=0, le=600)]
Rest = Annotated[float, Field(ge=0, le=3600)]
_Timeout = Annotated[float, Field(gt=0, le=600)]
Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE)]
_Write = Literal[
    "insert", "upsert_merge", "upsert_replace", "update_merge", "update_replace", "delete"
]
Weight = Annotated[float, Field(ge=0)]


class Part(pydantic.BaseModel):
    """A part of a profile: frozen, with the exact types, without unknown settings."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Entity(Part):
    """The entities that are written."""

    size_bytes: Annotated[int, Field(ge=1, le=MAX_ENTITY_BYTES)] = 1024
    """Stored size of a written entity, before compression, or bytes of a message; the targets hold
    for 1 KiB."""
    compressible: Share = 1.0
    """Share of its text that repeats; the rest is random letters and digits."""
    compress: bool = False
    """Compress the text with gzip before it is sent, and decompress what is read."""

    def factory(self, run_id: str) -> EntityFactory:
        """What makes these entities."""
        return EntityFactory(
            self.size_bytes, run_id, Payload(self.compressible, compress=self.compress)
        )


class Mix(Part):
    """How often each action is done, as weights."""

    point_query: Weight = Field(default=0.0, description="One entity by both keys.")
    row_range_scan: Weight = Field(default=0.0, description="Consecutive rows of one partition.")
    partition_scan: Weight = Field(default=0.0, description="All rows of one partition.")
    partition_range_scan: Weight = Field(default=0.0, description="Consecutive partitions.")
    full_table_scan: Weight = Field(default=0.0, description="All rows of the table.")
    insert: Weight = Field(default=0.0, description="A new row.")
    upsert_merge: Weight = Field(default=0.0, description="Insert-or-merge of a loaded row.")
    upsert_replace: Weight = Field(default=0.0, description="Insert-or-replace of a loaded row.")
    update_merge: Weight = Field(default=0.0, description="Merge into a loaded row.")
    update_replace: Weight = Field(default=0.0, description="Replace a loaded row.")
    delete: Weight = Field(default=0.0, description="Delete the oldest inserted row.")
    transaction: Weight = Field(default=0.0, description="Several writes, as [transaction] says.")
    series_merge: Weight = Field(default=0.0, description="Merge one hour of a data series.")
    conditional_update: Weight = Field(default=0.0, description="Read, then update with the ETag.")
    read_then_write: Weight = Field(default=0.0, description="Read, then insert or update.")
    key_change: Weight = Field(default=0.0, description="Move a row to another key.")
    put_message: Weight = Field(default=0.0, description="Put a message into a queue.")
    get_messages: Weight = Field(default=0.0, description="Get messages, which hides them.")
    peek_messages: Weight = Field(default=0.0, description="Look at messages.")
    update_message: Weight = Field(
        default=0.0, description="Hide a message that was got for longer; get one if there is none."
    )
    delete_message: Weight = Field(
        default=0.0, description="Delete a message that was got; get one if there is none."
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

    rows: Count = 100
    """Rows of a row range scan."""
    partitions: Count = 10
    """Partitions of a partition range scan."""
    by_key_bounds: bool = False
    """Range scans ask for the keys between those of two numbers, even where keys do not sort by
    number; what they miss is counted. By default they then scan the partition or the table."""
    returned_share: Annotated[float, Field(ge=0.001, le=1)] = 1.0
    """Query density: share of the scanned entities that pass a filter."""
    select: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Projection: properties to return; none is all."""
    top: Count | None = None
    """Most entities that a query returns."""


class Messages(Part):
    """What is asked of queues: session queue."""

    most: Annotated[int, Field(ge=1, le=MAX_MESSAGES)] = 1
    """Messages that one get or peek returns at most."""
    hidden_s: Annotated[int, Field(ge=1, le=7 * 24 * 3600)] = 30
    """Visibility time-out: seconds in which nobody else gets a message that was got or updated."""

    @property
    def shape(self) -> MessageShape:
        return MessageShape(most=self.most, hidden_s=self.hidden_s)


class Transaction(Part):
    """What a transaction of the mix holds."""

    operations: Annotated[int, Field(ge=2, le=MAX_TRANSACTION_OPERATIONS)] = 10
    """Entities in one transaction."""
    kinds: Annotated[tuple[_Write, ...], Field(max_length=MAX_TRANSACTION_OPERATIONS)] = (
        "upsert_merge",
    )
    """What the operations do, in turn."""

    @pydantic.field_validator("kinds")
    @classmethod
    def _are_some(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not kinds:
            raise ValueError("name at least one kind")
        return kinds

    @property
    def moving(self) -> tuple[bool, ...]:
        """Whether each of the kinds adds or removes rows."""
        return tuple(Kind(name).moves_rows for name in self.kinds)


class Audit(Part):
    """After the run, look up every acknowledged write."""

    enabled: bool = False
    """Compare what is stored with what was acknowledged."""
    most_rows: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    """Of more rows, a sample of this size is looked up."""


class Loading(Part):
    """How the table is loaded before the load."""

    settle_s: Rest = 2.0
    """Seconds between loading and load."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Transactions in flight at the same time."""


class Retry(Part):
    """When an operation is sent again."""

    strategy: Literal["none", "fixed", "exponential", "schedule"] = "exponential"
    """No retry, the same wait, a growing wait, or the waits of a list."""
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Most retries of an operation."""
    backoff_s: _Seconds = 0.5
    """The fixed wait; z of the exponential formula."""
    minimum_s: _Seconds = 0.1
    """Exponential: added to every wait."""
    maximum_s: _Seconds = 8.0
    """Longest wait of exponential, and longest that the service may ask for."""
    delays_s: tuple[_Seconds, ...] = (2.0, 4.0, 10.0, 30.0)
    """Schedule: the waits, one for each retry."""

    @property
    def most(self) -> int:
        """Most retries of an operation."""
        if self.strategy == "none":
            return 0
        return len(self.delays_s) if self.strategy == "schedule" else self.retries


class Session(Part):
    """How requests are sent."""

    kind: Annotated[
        str,
        pydantic.WithJsonSchema({"type": "string", "enum": list(SESSIONS)}),
        Field(description=" ".join(f"{one.name}: {one.described}" for one in SESSIONS.values())),
    ] = SDK.name
    connections: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Most connections of a process to an account."""
    connect_timeout_s: _Timeout = 5.0
    """For a connection to one address of the host."""
    read_timeout_s: _Timeout = 30.0
    """For a whole answer, from the end of the request on."""

    @pydantic.field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in SESSIONS:
            raise ValueError(f"must be {listed(list(map(repr, SESSIONS)), 'or')}")
        return kind


class RaisedTargets(Part):
    """Limits of an Azure Storage account that Azure support has raised, in entities/s."""

    partition: Annotated[float, Field(ge=PUBLISHED.partition, le=MOST_RATE)] = PUBLISHED.partition
    """Entities per second of one partition. Default: the published target."""
    account: Annotated[float, Field(ge=PUBLISHED.account, le=MOST_RATE)] = PUBLISHED.account
    """Entities per second of the account. Default: the published target."""


class EndpointSettings(Part):
    """What is known of the endpoint and cannot be asked for."""

    targets: RaisedTargets | None = None
    """Azure Storage: what the account serves if support has raised its limits; of several accounts,
    each. Every comparison with them says that they are not the published targets."""
    provisioned_ru_per_s: Annotated[float, Field(ge=1, le=MOST_RATE)] | None = None
    """Cosmos DB: request units a second that were provisioned for the table, or for its database if
    its tables share them. Unset, rates are held against the 10,000 RU/s of a partition only."""
    physical_partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Cosmos DB: physical partitions that share the provisioned throughput evenly: the Metrics page
    of the account shows them. Unset, it is the smallest number that can have it."""

    @pydantic.model_validator(mode="after")
    def _has_one_unit(self) -> Self:
        if self.physical_partitions is not None and self.provisioned_ru_per_s is None:
            raise ValueError(
                "endpoint.physical_partitions needs endpoint.provisioned_ru_per_s, which they share"
            )
        if self.targets is not None and self.provisioned_ru_per_s is not None:
            raise ValueError(
                "endpoint.targets is for Azure Storage, and endpoint.provisioned_ru_per_s for "
                "Azure Cosmos DB: set one of them"
            )
        return self

    def of(self, service: Service) -> Service:
        raised = self.targets
        if raised is None:
            return service
        return service.held_to(Targets(partition=raised.partition, account=raised.account))

    @property
    def throughput(self) -> Throughput:
        return Throughput(
            ru_per_s=self.provisioned_ru_per_s, physical_partitions=self.physical_partitions
        )


class Limits(Part):
    """What a run may cost, and when it stops itself."""

    billable_transactions: Annotated[int, Field(ge=1)] | None = None
    """Budget of requests to each account, loading and cleaning included; reaching it ends a run."""
    stop_on_account_throttling: bool = True
    """End a run against a real account when the account, or one of several, is throttled."""
