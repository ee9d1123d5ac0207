"""What a profile would send, looked at without sending it.

The source of one worker is driven without a service, once. What the practices, the prediction and
the plan need to know of its operations is added up meanwhile, in bounded memory.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping

from harness.model.operation import Kind
from harness.model.target import EndpointKind
from harness.profile.build.pace import capped_rate, counts_operations, staged
from harness.profile.build.scenarios import dry_run, try_out
from harness.profile.build.workload import source_of
from harness.profile.checks.observed_keys import TableKeys
from harness.profile.checks.observed_operations import Sent, WritesSeen
from harness.profile.settings.part import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.workload.entity_factory import NUMBER_PROPERTY
from harness.workload.prediction import SAMPLE, LoadShares, Prediction, table_and_key, thinned

_LOADING = 3
"""Loading operations whose rows are looked at, where the load names none."""
_MOST_PARTS = 50_000
"""Single writes, those in transactions too, after which enough was seen."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a profile would send.

    Attributes:
        sent: Operations that are alike.
        keys: Keys by the ending of the table's name.
        tables: Endings of the names of its tables.
        loaded_entities: Entities that are loaded.
        loaded_partitions: Partitions they are in.
        pointing: Whether rows of one table name rows of another, which the application keeps in
            step.
    """

    profile: Profile
    prediction: Prediction
    sent: tuple[Sent, ...]
    keys: Mapping[str, TableKeys]
    writes: WritesSeen
    tables: tuple[str, ...]
    loaded_entities: int
    loaded_partitions: int
    pointing: bool

    @property
    def operations(self) -> int:
        """How many were looked at."""
        return sum(sent.count for sent in self.sent)

    @property
    def entities(self) -> int:
        """What they all count for."""
        return sum(sent.entities for sent in self.sent)

    @property
    def queries(self) -> Iterator[Sent]:
        """Queries of more than one entity."""
        return (sent for sent in self.sent if sent.kind is Kind.QUERY)

    @property
    def reads(self) -> int:
        """How many operations read."""
        return sum(sent.count for sent in self.sent if sent.kind.reads)

    @property
    def written(self) -> int:
        """How many operations write."""
        return self.operations - self.reads

    @property
    def peak_per_s(self) -> float | None:
        """Entities a second that an account is asked for at most; None is as many as come."""
        profile = self.profile
        load, rate = profile.load, capped_rate(profile, EndpointKind.STORAGE)
        if profile.search is not None:
            return profile.search.max_per_s
        if staged(profile):
            rate = max(stage.to for stage in profile.stage)
        elif load.entities_per_s or load.operations_per_s:
            rate = load.entities_per_s or load.operations_per_s
        if rate is None or not counts_operations(profile):
            return rate
        return rate * self.entities / self.operations

    @property
    def rate_setting(self) -> str:
        """What says how high the rate is."""
        profile = self.profile
        if profile.search is not None:
            return "search.max_per_s"
        if staged(profile):
            return f"stage.{profile.stage[0].unit}"
        for name in ("entities_per_s", "operations_per_s"):
            if getattr(profile.load, name) is not None:
                return f"load.{name}"
        return "load.max_entities_per_s"

    def table_named(self, table: str) -> str:
        """How a table is called in a sentence."""
        return f"table ...{table}" if table else "the table"

    def setting(self, name: str, action: str = "") -> str:
        """What a profile says it with: a setting of the mix, or the scenario that has no mix."""
        if self.profile.scenario is None:
            return name
        return f"scenario {self.profile.scenario}" + (f": {action}" if action else "")


def observe(profile: Profile, sample: int = SAMPLE) -> Observed:
    """What the first ``sample`` operations of one worker say; fewer where they are large.

    Raises:
        SetupError: a scenario cannot be made, or its code raises.
    """
    if profile.scenario is not None:
        try_out(source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0), profile)
    source = source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0)
    loaded, count = thinned(source.partitions())
    shares = LoadShares(loaded)
    keys: dict[str, TableKeys] = {}
    for name in loaded:
        table, key = table_and_key(name)
        keys.setdefault(table, TableKeys(complete=len(loaded) == count)).load(key)
    for operation in itertools.islice(source.loading(), _LOADING):
        keys.setdefault(operation.table, TableKeys()).load_rows(operation)
    sent: dict[tuple[str, bool], Sent] = {}
    writes = WritesSeen()
    parts = 0
    for task, operation in itertools.islice(dry_run(source, profile), sample):
        alike = (operation.label, NUMBER_PROPERTY in (operation.filter or ""))
        if alike not in sent:
            sent[alike] = Sent(operation)
        sent[alike].add(operation)
        shares.add(operation)
        writes.add(task, operation)
        keys.setdefault(operation.table, TableKeys()).add(operation)
        parts += len(operation.parts) or 1
        if parts > _MOST_PARTS:
            break
    return Observed(
        profile=profile,
        prediction=shares.prediction(),
        sent=tuple(sorted(sent.values(), key=lambda alike: -alike.entities)),
        keys=keys,
        writes=writes,
        tables=source.tables,
        loaded_entities=source.loaded_entities,
        loaded_partitions=count,
        pointing=bool(getattr(source, "pointers", ()))
        or any(label == "insert_copy" for label, _ in sent),
    )
