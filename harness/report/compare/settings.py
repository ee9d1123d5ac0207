"""The settings in which two runs differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.measure.record.record import RunRecord
from harness.report.names import shortened

_MAY_DIFFER = frozenset(("seed", "question"))
"""Settings in which repeats may differ."""
_LONGEST = 60
"""Characters of a value."""


def differences_of(one: RunRecord, other: RunRecord) -> Iterator[str]:
    """The settings in which two runs differ; none if they are repeats."""
    if one.endpoint.kind != other.endpoint.kind:
        yield f"the endpoint: {one.endpoint.kind} and {other.endpoint.kind}"
    mine, theirs = _flat(one.profile), _flat(other.profile)
    for name in sorted({*mine, *theirs} - _MAY_DIFFER):
        if mine.get(name) != theirs.get(name):
            values = (shortened(str(one.get(name)), _LONGEST) for one in (mine, theirs))
            yield f"{name}: {' and '.join(values)}"


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every setting of a profile by its full name."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
