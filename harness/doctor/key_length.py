"""The length of keys that an endpoint takes: the documents disagree about it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.doctor.checks import CheckResult, Status
from harness.endpoint.admin.permissions import KEY_LENGTHS, Tried
from harness.model.figures import listed


def key_length(tried: Sequence[Tried]) -> CheckResult:
    """The longest keys among `KEY_LENGTHS` that were taken, and why longer ones were not."""
    if not tried:
        return CheckResult(name="key length", status=Status.NOT_TRIED, text="nothing was inserted")
    taken = [length for length, one in zip(KEY_LENGTHS, tried, strict=False) if not one.refused]
    refused = [one for one in tried if one.refused]
    longest = max(taken, default=0)
    text = f"PartitionKey and RowKey of {longest:,} characters each are taken"
    if not taken:
        text = f"keys of {KEY_LENGTHS[0]:,} characters are refused"
    if refused:
        text += f"; {listed([one.name for one in refused])}: {refused[0].refused}"
    return CheckResult(
        name="key length",
        status=Status.OK if taken else Status.WARNING,
        text=text,
        advice="" if taken else "keep keys shorter, or see what the account's documents say",
        figures={"taken": longest, "tried": list(KEY_LENGTHS[: len(tried)])},
    )
