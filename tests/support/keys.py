"""Key designs of profiles, made of what stands in the TOML file."""

from __future__ import annotations

from typing import Any

from harness.profile.designs import documented_designs
from harness.profile.settings.keys import FieldSettings, Keys, design_of
from harness.workload.keys.design import KeyDesign

DOCUMENTED = {one.name: one for one in documented_designs()}
NAMES = list(DOCUMENTED)


def design(
    partition_key: str = "p0",
    row_key: str = "{row:pad8}",
    *,
    fields: dict[str, dict[str, Any]] | None = None,
    **keys: Any,
) -> KeyDesign:
    """The design of these keys over these fields; ``keys`` are further settings of ``[keys]``."""
    made = {name: FieldSettings(**field) for name, field in (fields or {}).items()}
    settings = Keys(partition_key=partition_key, row_key=row_key, **keys)
    return design_of(made, settings)


def spread(partitions: int, rows: int | tuple[int, ...] = 4, **field: Any) -> KeyDesign:
    """Partitions p0, p1, ... with so many rows; ``field`` says how they are drawn."""
    key = {"values": partitions, "prefix": "p", **field}
    return design("{key}", fields={"key": key}, rows_per_partition=rows)


def documented(name: str, **keys: Any) -> KeyDesign:
    """The documented design of this name; ``keys`` are further settings of ``[keys]``."""
    settings = DOCUMENTED[name].settings
    fields = settings.get("fields", {})
    made = {name: FieldSettings(**field) for name, field in fields.items()}
    return design_of(made, Keys(**{**settings["keys"], **keys}))


def sized_settings(name: str, partitions: int, rows: int = 4) -> dict[str, Any]:
    """Fields and keys of the documented design of this name, in about so many partitions.

    Fields but the first have two values or periods.
    """
    small = documented(name, rows_per_partition=1)
    settings = DOCUMENTED[name].settings
    # A suffix such as bucket16 makes partitions too.
    count = max(1, partitions // 16) if small.scatters else partitions
    for field in settings.setdefault("fields", {}).values():
        if "history" in field:
            field["history"] = f"{count} {field['history'].split()[1]}"
        else:
            field["values"] = count
        count = 2
    settings["keys"] |= (
        {"partitions": partitions} if small.one_row else {"rows_per_partition": rows}
    )
    return settings


def sized(name: str, partitions: int, rows: int = 4) -> KeyDesign:
    """The documented design of this name, with about so many partitions of so many rows."""
    settings = sized_settings(name, partitions, rows)
    fields = {field: FieldSettings(**one) for field, one in settings["fields"].items()}
    return design_of(fields, Keys(**settings["keys"]))


def newest(rows: int = 4) -> KeyDesign:
    """One partition, whose newest rows are read most."""
    row = {"sequence": True, "distribution": "latest"}
    return design(fields={"row": row}, rows_per_partition=rows)
