"""Pass conditions: text that is parsed before anything is sent, and evaluated at the end."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable

from harness.measure.latency import LatencyView
from harness.measure.snapshot import Snapshot

_PATTERN = re.compile(
    r"\s*(?P<metric>[a-z0-9_]+)\s*(?:\(\s*(?P<argument>[a-z_]+)\s*\))?"
    r"\s*(?P<compare>[<>])\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z%]*)\s*"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, ">": operator.gt}
_RATIO_UNITS = {"": 1.0, "%": 0.01}
_RATE_UNITS = {"": 1.0}
_LATENCY_UNITS = {"": 1.0, "ms": 1.0, "s": 1000.0}


def _percentile(name: str, latency: str) -> Callable[[Snapshot], float | None]:
    def value(snapshot: Snapshot) -> float | None:
        view: LatencyView | None = getattr(snapshot, latency)
        return None if view is None else float(getattr(view, f"{name}_s")) * 1000.0

    return value


def _hottest_rate(snapshot: Snapshot) -> float | None:
    return None if snapshot.hottest is None else snapshot.hottest.entities_per_s.mean


def _throttled_ratio(snapshot: Snapshot) -> float | None:
    return snapshot.throttled_ratio if snapshot.counts.attempts else None


_METRICS: dict[tuple[str, str], tuple[Callable[[Snapshot], float | None], dict[str, float]]] = {
    ("throttled_ratio", ""): (_throttled_ratio, _RATIO_UNITS),
    ("entities_per_s", "partition"): (_hottest_rate, _RATE_UNITS),
    ("entities_per_s", "account"): (lambda snapshot: snapshot.entities_per_s.mean, _RATE_UNITS),
    **{
        (name, latency): (_percentile(name, latency), _LATENCY_UNITS)
        for name in ("p50", "p90", "p99")
        for latency in ("service", "response")
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One pass condition.

    Attributes:
        text: As it was written.
        metric: What is compared, and of what.
        compare: ``<`` or ``>``.
        bound: In the metric's own unit: a share, entities a second, or milliseconds.
    """

    text: str
    metric: tuple[str, str]
    compare: str
    bound: float

    def evaluate(self, snapshot: Snapshot) -> ConditionResult:
        """Whether the condition holds. Without a value it holds neither way."""
        value = _METRICS[self.metric][0](snapshot)
        passed = None if value is None else _COMPARE[self.compare](value, self.bound)
        return ConditionResult(text=self.text, value=value, passed=passed)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConditionResult:
    """A condition, what was measured for it, and whether it holds; None is unknown."""

    text: str
    value: float | None
    passed: bool | None


def parse_condition(text: str) -> Condition:
    """The condition that ``text`` says.

    Raises:
        ValueError: it says none; the message names what can be said.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no condition; write for example {_examples()}")
    metric = (match["metric"], match["argument"] or "")
    if metric not in _METRICS:
        known = ", ".join(name + (f"({of})" if of else "") for name, of in _METRICS)
        raise ValueError(f"{text!r} compares something unknown; known are {known}")
    units = _METRICS[metric][1]
    if match["unit"] not in units:
        takes = " or ".join(unit or "no unit" for unit in units)
        raise ValueError(f"{text!r} has unit {match['unit']!r}; {metric[0]} takes {takes}")
    return Condition(
        text=text.strip(),
        metric=metric,
        compare=match["compare"],
        bound=float(match["number"]) * units[match["unit"]],
    )


def _examples() -> str:
    return "'throttled_ratio < 1%', 'entities_per_s(partition) > 1500', 'p99(service) < 100ms'"
