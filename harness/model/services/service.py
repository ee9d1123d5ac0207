"""What an endpoint is: its words, targets and dialect. Each concrete service is a value of this.

Code asks for the trait that it needs, never which service has it. Files that a concrete service
has for itself are listed in a test of `tests/rules/`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Literal

from harness.model.entity import MAX_KEY_CHARACTERS, MAX_PAGE_ENTITIES
from harness.model.figures import counted, number


@dataclasses.dataclass(frozen=True, slots=True)
class CountedUnit:
    """What the rates of a service count, in one word each."""

    one: str
    many: str

    @property
    def rate(self) -> str:
        return f"{self.many}/s"

    def counted(self, number: int) -> str:
        return counted(number, self.one, self.many)


ENTITIES = CountedUnit("entity", "entities")


Scope = Literal["partition", "account"]
"""What has a target."""
RAISED = "raised target"
GATEWAY_VIA = "1.1 table-stress-gateway"
"""The header ``Via`` (RFC 9110) by which answers tell that they passed the gateway."""
Server = Literal["table", "blob", "queue"]
"""The servers of Azurite that runs use."""


class LimitUnit(enum.Enum):
    """What the limits of a service count."""

    ENTITIES = enum.auto()
    REQUEST_UNITS = enum.auto()
    MESSAGES = enum.auto()
    UNDOCUMENTED = enum.auto()
    """Nothing that the documents name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Entities a second that one partition and one account serve, as published or as raised.

    Attributes:
        account: Infinite where no document names one.
        published: Those of the service where these are raised; None where these are published.
    """

    partition: float
    account: float = math.inf
    published: Targets | None = dataclasses.field(default=None, compare=False)

    @property
    def of_account(self) -> float | None:
        """The account's; None where no document names one."""
        return None if math.isinf(self.account) else self.account

    def word(self, scope: Scope) -> str:
        """What a target is called: one that is not the published one is a raised target."""
        published = self.published or self
        return "target" if getattr(self, scope) == getattr(published, scope) else RAISED

    def named(self, scope: Scope) -> str:
        return f"{self.word(scope)} of {number(getattr(self, scope))}"

    @property
    def origin(self) -> Literal["published", "raised"]:
        raised = RAISED in (self.word("partition"), self.word("account"))
        return "raised" if raised else "published"

    def note(self, unit: CountedUnit) -> str:
        """A sentence where they are not the published ones; else empty."""
        if self.published is None or self.origin == "published":
            return ""
        return (
            f"Targets are those of an account with raised limits (endpoint.targets): "
            f"{number(self.partition)} {unit.rate} for a partition and {number(self.account)} for "
            f"the account. The published ones are {number(self.published.partition)} and "
            f"{number(self.published.account)}."
        )


EXAMPLE_STORES = "stress00000000t000000z00000000"
"""The beginning of the names of a run's stores, which all have this length."""


def store_of(run: str, partition: str) -> str:
    """The name of the store that a run has for a partition; ``run`` begins all its names."""
    return f"{run}-{partition}"


PUBLISHED = Targets(partition=2000.0, account=20000.0)
"""Source: performance checklist for Table storage, "Targets for data operations"."""
UNLIMITED_PER_S = 1e9
"""Entities a second that no endpoint serves: a limit of a gateway that limits nothing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service, or what stands in for one on this machine.

    Attributes:
        name: Its identifier in records, labels and options.
        described: The name in outputs, which marks emulators.
        store: What holds them: a table, a container of blobs, or a queue.
        partitions: What has a name of its own in them.
        store_each: Whether each partition is a store of its own; see `store_of`.
        name_problem: Why the service would refuse the name of a store; None where it would not.
        uncompressed: Why it cannot have compressed entities; empty where it can.
        layout: What a unit and a partition are, where they are not an entity and a PartitionKey.
        same_as: To what its unit corresponds elsewhere, as a sentence; empty for entities.
        page_bytes: The most bytes that a request reads; None where pages are bounded in entities.
        requests_each: The most requests of an operation without retries and further pages. A
            write has a second one where it is the first of a process to its partition.
        targets: What an endpoint is held against; None where no target is in units a second.
        partition_bytes: The most that one partition stores; None where no document has a limit.
        key_characters: The most characters of a key.
        limits: What its limits count, and so which practices apply to it.
        throttles: Whether it answers that there is too much load.
        models_targets: Whether what throttles is a model of the targets, with limits of its own.
        keeps_writes: Whether what is written can be read afterwards.
        emulated: Whether it shares the machine with the load generator.
        machine: What the machine of the generator is called.
        server: The server of Azurite that stands in for it, if one does.
        port: Where that server listens unless it is told otherwise.
        beside: In place of the table, where its partitions are counted beside tables; empty where
            they are not. No table has such a name.
        beside_as: What such a partition is, and what of it counts as an entity.
        beside_unit: What a watch counts there; None for ``unit``.
        origin: What answered if it was not the service: the beginning of a footnote.
        selectable: Whether an option names it; others follow from what a run starts or sends.
        sdk_host: The only name of this machine to which SDKs speak its dialect; empty for any.
        session: The kind of session that sends to it alone; empty where all others do.
        hosts: What the names of its endpoints in Azure end in.
        other_hosts: What the other names of its accounts end in.
        server_header: What the header ``Server`` of its responses begins with, in lower case.
        merges_by_post: Whether a merge is a POST with ``X-HTTP-Method``, because it has no PATCH.
        audience: The service for which Entra ID makes a token, in its address.
        role: What a login needs in order to read and write.
        sas_rights: The permissions (``sp``) that a SAS for the account is advised to have.
    """

    name: str
    described: str
    unit: CountedUnit = ENTITIES
    store: Literal["table", "container", "queue"] = "table"
    partitions: str = "partitions"
    store_each: bool = False
    name_problem: Callable[[str], str | None] = lambda name: None
    uncompressed: str = ""
    layout: str = ""
    same_as: str = ""
    page_bytes: int | None = None
    requests_each: int = 1
    targets: Targets | None = PUBLISHED
    partition_bytes: int | None = None
    key_characters: int = MAX_KEY_CHARACTERS
    limits: LimitUnit = LimitUnit.ENTITIES
    throttles: bool = True
    models_targets: bool = False
    keeps_writes: bool = True
    emulated: bool = False
    machine: str = "the machine"
    server: Server = "table"
    port: int = 10002
    beside: str = ""
    beside_as: str = ""
    beside_unit: CountedUnit | None = None
    origin: str = ""
    selectable: bool = True
    sdk_host: str = ""
    session: str = ""
    hosts: tuple[str, ...] = ()
    other_hosts: tuple[str, ...] = ()
    server_header: str = ""
    merges_by_post: bool = False
    audience: str = "storage"
    role: str = (
        "Storage Table Data Contributor on the account. Owner, Contributor and Reader give no "
        "access to data, and Storage Table Data Reader does not write"
    )
    sas_rights: str = "rwdlacu"

    @property
    def field(self) -> str:
        """What a connection string calls its endpoint."""
        return f"{self.server.title()}Endpoint"

    @property
    def variable(self) -> str:
        """The variable in which an application may read the address of its endpoint."""
        return f"AZURE_STORAGE_{self.server.upper()}_ENDPOINT"

    @property
    def charges(self) -> bool:
        """Whether its limits are in request units."""
        return self.limits is LimitUnit.REQUEST_UNITS

    @property
    def reached(self) -> str:
        """By which session alone it is reached, as a part of a sentence; empty where by others."""
        return f", to which only session {self.session} sends" if self.session else ""

    @property
    def about(self) -> str:
        """What requests are about that are counted."""
        return self.unit.many if self.documented else self.partitions

    def alone_at(self, account: Service) -> Service:
        """An account, in the words of what alone an application used of it, and so held to that."""
        return dataclasses.replace(
            account,
            unit=self.beside_unit or self.unit,
            store=self.store,
            partitions=self.partitions,
            targets=self.targets,
            limits=self.limits,
            models_targets=account.models_targets and self.documented,
        )

    @property
    def documented(self) -> bool:
        """Whether the documents name its limits."""
        return self.limits is not LimitUnit.UNDOCUMENTED

    def page_of(self, entity_bytes: int) -> int:
        """The most entities of this size in the answer of one request."""
        if self.page_bytes is None:
            return MAX_PAGE_ENTITIES
        return max(1, self.page_bytes // entity_bytes)

    def requests_of(self, writes: int, partitions: int) -> int:
        """Requests of so many writes of one process to so many partitions, without retries."""
        return writes + (self.requests_each - 1) * partitions

    def held_to(self, targets: Targets | None) -> Service:
        """The same with raised targets, if a partition and an account have published ones.

        None changes nothing.
        """
        if targets is None or self.targets is None or self.targets.of_account is None:
            return self
        raised = dataclasses.replace(targets, published=self.targets)
        return dataclasses.replace(self, targets=raised)

    def limit(self, per_s: float) -> float:
        """What limits allow to a partition of it that allow ``per_s`` to one of a table.

        It is the same share of the published target; what is unlimited stays so.
        """
        if self.targets is None or per_s >= UNLIMITED_PER_S:
            return per_s
        published = self.targets.published or self.targets
        return per_s * published.partition / PUBLISHED.partition

    def __str__(self) -> str:
        return self.name
