"""What Cosmos DB charges for the operations that were tried, and the limit in request units."""

from __future__ import annotations

from collections.abc import Sequence

from harness.doctor.checks import CheckResult, Status
from harness.endpoint.admin.permissions import Tried
from harness.model.figures import listed
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.request_units import RU, charge_text


def request_units(tried: Sequence[Tried]) -> CheckResult:
    """What the operations were charged, and the limit that rates are held against."""
    charges = {one.name: one.charge for one in tried if one.charge}
    limit = (
        f"a partition serves {MAX_PARTITION_RU_PER_S:,} RU/s, or its even part of what is "
        "provisioned (endpoint.provisioned_ru_per_s of a profile)"
    )
    if not charges:
        return CheckResult(
            name="request units",
            status=Status.WARNING,
            text=f"the answers do not tell what they were charged; {limit}",
            advice="a run counts no request units; `harness plan --host-kind cosmos` estimates "
            "them, and the metrics of the account show them",
        )
    each = listed([f"{name} {charge_text(charge)}" for name, charge in charges.items()])
    return CheckResult(
        name="request units",
        text=f"of entities of 1 KB: {each}; {limit}",
        figures={name: charge / RU for name, charge in charges.items()},
    )
