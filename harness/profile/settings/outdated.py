"""The message for a profile whose keys are written as before fields had names."""

from __future__ import annotations

from typing import Any

from harness.profile.designs import documented_designs
from harness.workload.scenarios.registry import SCENARIOS

_SETTINGS = (
    "scheme",
    "prefix",
    "periods",
    "row_keys",
    "distribution",
    "theta",
    "hot_operations",
    "hot_keys",
)
_PROFILES = {
    "composite": "composite-key",
    "date": "log-by-date",
    "device": "inverted-timestamp",
    "tenant": "tenants",
}
"""Profiles of schemes that had another name."""


def outdated_keys(keys: Any, scenario: Any) -> str:
    """What to write instead of the settings of ``[keys]`` that there were; empty if there is none.

    Args:
        keys: ``[keys]`` of a profile as it was read.
        scenario: Its scenario as it was read; None if there is none.
    """
    if not isinstance(keys, dict):
        return ""
    found = [name for name in _SETTINGS if name in keys]
    templates = not {"partition_key", "row_key"}.isdisjoint(keys)
    if "partitions" in keys and (scenario is not None or (found and not templates)):
        found.append("partitions")
    if not found:
        return ""
    scheme = keys.get("scheme", "spread")
    names = (scheme, f"compare-{scheme}", _PROFILES.get(scheme, ""), "compare-spread")
    designs = {one.name: one.toml for one in documented_designs()}
    form = next(designs[name] for name in names if name in designs)
    if scenario is not None:
        known = SCENARIOS.get(scenario) if isinstance(scenario, str) else None
        field = known.field if known is not None else "partition"
        form = f'[fields.{field}]\nvalues = 50\ndistribution = "zipfian"'
    named = ", ".join(f"keys.{one}" for one in found)
    return (
        f"{named}: not in use any more. Name the fields of the data, and the keys made of them, as "
        "here (`harness schemes` explains them):\n    " + form.replace("\n", "\n    ")
    )
