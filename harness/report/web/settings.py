"""The resolved profile of a run as text like the TOML it was written in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

_TEXT_OF_ITS_OWN = ("name", "question")


def settings(profile: Mapping[str, Any]) -> str:
    """Every setting that has a value, in its section.

    Args:
        profile: As records hold it.
    """
    return "\n".join(_lines({k: v for k, v in profile.items() if k not in _TEXT_OF_ITS_OWN}, ""))


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    own, tables = [], []
    for name, value in table.items():
        whole = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            tables.append((f"[{whole}]", whole, value))
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            tables += [(f"[[{whole}]]", whole, one) for one in value]
        elif value is not None:
            own.append(f"{name} = {_value(value)}")
    yield from own
    for heading, whole, inner in tables:
        lines = list(_lines(inner, whole))
        if lines and lines[0]:
            yield from ("", heading)
        yield from lines


def _value(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{name} = {_value(inner)}" for name, inner in value.items() if inner is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
