"""What an endpoint is: its words, targets and dialect. Each concrete service is a value of this.

Code asks for the trait that it needs, never which service has it. Files that a concrete service
has for itself are listed in a test of `tests/rules/`.
"""

from __future__ import annotations

import dataclasses

from harness.model.figures import counted


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Entities a second that one partition and one account are published to serve."""

    partition: float
    account: float


PUBLISHED = Targets(partition=2000.0, account=20000.0)
"""Source: performance checklist for Table storage, "Targets for data operations"."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service, or what stands in for one on this machine.

    Attributes:
        name: Its identifier in records, labels and options.
        described: The name in outputs, which marks emulators.
        store: What holds them: a table, or a container.
        targets: What an endpoint is held against; None where no target is in units a second.
        emulated: Whether it shares the machine with the load generator.
        charges: Whether its limits are in request units, as those of Cosmos DB are.
        origin: What answered if it was not the service: the beginning of a footnote.
    """

    name: str
    described: str
    unit: CountedUnit = ENTITIES
    store: str = "table"
    targets: Targets | None = PUBLISHED
    emulated: bool = False
    charges: bool = False
    origin: str = ""

    def __str__(self) -> str:
        return self.name
