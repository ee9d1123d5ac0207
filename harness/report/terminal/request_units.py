"""Request units that were predicted or measured: each operation, the hottest keys, the limit."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from harness.measure.record.findings import RecordPart
from harness.model.figures import counted, number, percent, request_units, storage_size
from harness.profile.checks.seen import ChargesSeen
from harness.report.names import partition_name, shortened
from harness.report.terminal.page import Page, facts, table_of

_NAME_WIDTH = 40
_HASHED = (
    "The hash of Cosmos DB is not documented: which keys share a physical partition is an example."
)


def charges_shown(
    charges: ChargesSeen, page: Page, *, measured: bool = False
) -> list[RenderableType]:
    """A table of the operations, and the facts about the load."""
    if not charges.kinds:
        return [Text("Unknown: no answer named its charge.")]
    rows = [(kind.label, request_units(kind.each), percent(kind.share)) for kind in charges.kinds]
    note = _HASHED
    if not measured:
        size = f"entities of {charges.entity_bytes:,} bytes as JSON, "
        note = f"Estimates for {size}session consistency and one region. {_HASHED}"
    return [
        table_of(("operation", "RU each", "share\nof RU"), rows),
        Text(),
        facts(_facts(charges, page), page),
        Text(note, "dim"),
    ]


class KindChargePart(RecordPart):
    """Request units of each operation of one name, and their share of all."""

    each: float
    share: float


class ChargesPart(RecordPart):
    """Charges and rates in request units; None if unknown.

    Attributes:
        each: Mean of an operation.
        per_s: At the highest rate of the load.
        stored_bytes: Of the entities before the load, as JSON; 0 if unknown.
        grown_bytes_per_s: By how much they grow at the highest rate of the load.
        copy_request_units: Of copying them to another table, as for another PartitionKey.
        first_limit_at_ru_per_s: Total rate at which the first limit is reached.
    """

    operations: dict[str, KindChargePart]
    each: float | None
    entity_json_bytes: int | None
    per_s: float | None
    hottest_partition_key: str | None
    hottest_partition_key_share: float | None
    physical_partitions: int
    hottest_physical_partition_share: float | None
    partition_ru_per_s: float
    provisioned_ru_per_s: float | None
    first_limit_at_ru_per_s: float | None
    stored_bytes: int
    grown_bytes_per_s: float | None
    copy_request_units: float | None


def charges_part(charges: ChargesSeen | None) -> ChargesPart | None:
    if charges is None:
        return None
    throughput, known = charges.throughput, charges.known
    return ChargesPart(
        operations={
            kind.label: KindChargePart(each=kind.each, share=kind.share) for kind in charges.kinds
        },
        each=charges.each if known else None,
        entity_json_bytes=charges.entity_bytes,
        per_s=charges.per_s,
        hottest_partition_key=charges.shares.hottest if known else None,
        hottest_partition_key_share=charges.shares.hottest_share if known else None,
        physical_partitions=throughput.fewest_partitions,
        hottest_physical_partition_share=charges.hottest_share
        if known and charges.physical_share is not None
        else None,
        partition_ru_per_s=throughput.partition_ru_per_s,
        provisioned_ru_per_s=throughput.ru_per_s,
        first_limit_at_ru_per_s=charges.reached_per_s if known else None,
        stored_bytes=throughput.stored_bytes,
        grown_bytes_per_s=charges.grown_per_s,
        copy_request_units=charges.copied,
    )


def _facts(charges: ChargesSeen, page: Page) -> list[tuple[str, str]]:
    total = f"{request_units(charges.each)} RU an operation"
    if charges.per_s is not None:
        total += f", {number(charges.per_s)} RU/s at the highest rate"
    rows = [("mean", total)]
    throughput = charges.throughput
    if throughput.stored_bytes:
        holding = counted(throughput.storing_partitions, "physical partition")
        stored = f"{storage_size(throughput.stored_bytes)} before the load, room in {holding}"
        if charges.grown_per_s:
            stored += f"; {storage_size(charges.grown_per_s)}/s more at the highest rate"
        rows.append(("stored", stored))
    if charges.shares.hottest:
        name = partition_name(charges.shares.hottest, page.ascii_only)
        name = shortened(name, _NAME_WIDTH, page.ascii_only)
        share = _share(charges, charges.shares.hottest_share)
        rows.append(("hottest PartitionKey", f"{name}: {share}"))
    count = throughput.fewest_partitions
    if count > 1 and charges.physical_share is not None:
        even = f"even: {percent(1 / count)}"
        share = _share(charges, charges.hottest_share)
        rows.append(("hottest physical partition", f"1 of {count}: {share} ({even})"))
    return [*rows, ("first limit", first_limit(charges))]


def first_limit(charges: ChargesSeen) -> str:
    """What is reached first, and whether the load stays below it."""
    limit, provisioned = charges.throughput.partition_ru_per_s, charges.throughput.ru_per_s
    reached = charges.reached_per_s
    if reached is None:
        return "unknown: every query goes over several partitions"
    if provisioned is not None and reached >= provisioned:
        words = f"the provisioned {number(provisioned)} RU/s, before the limit of any partition"
    elif provisioned is None:
        words = (
            f"the {number(limit)} RU/s of one PartitionKey, at {number(reached)} RU/s in total, if "
            "as much is provisioned (endpoint.provisioned_ru_per_s)"
        )
    else:
        used = percent(reached / provisioned)
        words = (
            f"the {number(limit)} RU/s of a physical partition, at {number(reached)} RU/s in "
            f"total: {used} of the {number(provisioned)} that are provisioned can be used"
        )
    if charges.per_s is None:
        return words
    below = charges.per_s <= reached
    return f"{words}. The load {'stays below' if below else 'is above'} it"


def _share(charges: ChargesSeen, share: float) -> str:
    if charges.per_s is None:
        return percent(share)
    return f"{percent(share)}, {number(charges.per_s * share)} RU/s"
