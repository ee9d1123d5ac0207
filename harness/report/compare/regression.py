"""What counts as a regression: text that is parsed before any run is read.

    entities_per_s < 95%             the last has less than 95 % of what the first has
    p99(service) > 120%              the last has more than 120 % of it
    p99(service) > first + 20ms      the last is more than 20 ms above the first
    throttled_ratio > first + 1%     a share: one percentage point above the first

A bound is always relative to the first of the compared, and on the worse side of it. A share takes
no percentage of the first: 1 % of a share is too easily mistaken for the share 1 %.
"""

from __future__ import annotations

import dataclasses
import re

from harness.model.errors import echoed
from harness.report.compare.quantities import MEASURES, Measure, Values, differ

_PATTERN = re.compile(
    r"\s*(?P<name>[a-z0-9_]+(?:\(\s*[a-z0-9_]+\s*\))?)\s*(?P<side>[<>])\s*"
    r"(?:(?P<percent>[0-9]+(?:\.[0-9]+)?)\s*%"
    r"|first\s*(?P<sign>[+-])\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z%]*))\s*"
)
_UNITS = {"": {"": 1.0}, "ms": {"ms": 1.0, "s": 1000.0}, "%": {"%": 0.01}}
_EXAMPLES = "'entities_per_s < 95%', 'p99(service) > first + 20ms', 'throttled_ratio > first + 1%'"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A regression and whether it holds; None where it cannot be told.

    Attributes:
        text: As it was written.
        holds: Whether the last is worse than the bound.
        sentence: The figures, and why.
    """

    text: str
    holds: bool | None
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A bound that the last of the compared must not pass.

    Attributes:
        text: As it was written.
        measure: What is compared.
        below: True where being below the bound is the regression.
        factor: The bound is the first's value times this...
        offset: ...plus this, in the measure's own unit.
    """

    text: str
    measure: Measure
    below: bool
    factor: float
    offset: float

    def judge(self, first: Values | None, last: Values | None) -> Judged:
        """Whether the regression holds; never inside the spread of repeats."""
        if first is None or last is None:
            missing = "the first" if first is None else "the last"
            return self._judged(None, f"{missing} has no {self.measure.noun}")
        bound = first.mean * self.factor + self.offset
        passed = last.mean < bound if self.below else last.mean > bound
        unit = " ms" if self.measure.unit == "ms" else ""
        shown = [f"{self.measure.show(value)}{unit}" for value in (last.mean, first.mean, bound)]
        figures = f"{shown[0]} against {shown[1]}; the bound is {shown[2]}"
        repeated = max(first.count, last.count) > 1
        if passed and repeated and not differ(self.measure, first, last):
            return self._judged(False, f"{figures}; the difference is within the spread of repeats")
        return self._judged(passed, figures)

    def _judged(self, holds: bool | None, sentence: str) -> Judged:
        return Judged(text=self.text, holds=holds, sentence=sentence)


def parse_regression(text: str) -> Regression:
    """The regression that ``text`` says.

    Raises:
        ValueError: it says none; the message says what can be said.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{echoed(text)} cannot be read as a regression. Examples: {_EXAMPLES}")
    name = "".join(match["name"].split())
    measure = next((known for known in MEASURES if known.name == name), None)
    if measure is None:
        known = ", ".join(one.name for one in MEASURES)
        raise ValueError(f"{echoed(text)} names an unknown metric. Known metrics: {known}")
    below = match["side"] == "<"
    if measure.more_is_better is not None and below != measure.more_is_better:
        worse = "less" if measure.more_is_better else "more"
        raise ValueError(
            f"{echoed(text)} would fail the better run: for {name}, {worse} is worse, "
            f"so write {'<' if measure.more_is_better else '>'}"
        )
    if match["percent"] is not None:
        if measure.unit == "%":
            raise ValueError(
                f"{echoed(text)} takes a percentage of a share; write '{name} {match['side']} "
                f"first {'-' if below else '+'} {match['percent']}%' for percentage points"
            )
        return Regression(
            text=text.strip(),
            measure=measure,
            below=below,
            factor=float(match["percent"]) / 100,
            offset=0.0,
        )
    units = _UNITS[measure.unit]
    if match["unit"] not in units:
        takes = " or ".join(unit or "no unit" for unit in units)
        raise ValueError(f"{echoed(text)} has unit {echoed(match['unit'])}; {name} takes {takes}")
    sign = -1.0 if match["sign"] == "-" else 1.0
    return Regression(
        text=text.strip(),
        measure=measure,
        below=below,
        factor=1.0,
        offset=sign * float(match["number"]) * units[match["unit"]],
    )
