"""Regressions: bounds of ``--fail-if`` that the last of the compared runs must not pass."""

from __future__ import annotations

import dataclasses
import re

from harness.model.errors import echoed
from harness.report.compare.differences import Values, judge
from harness.report.compare.measures import MEASURES, Measure

_PATTERN = re.compile(
    r"\s*(?P<name>[a-z0-9_]+(?:\(\s*[a-z0-9_]+\s*\))?)\s*(?P<side>[<>])\s*"
    r"(?:(?P<percent>[0-9]+(?:\.[0-9]+)?)\s*%"
    r"|first\s*(?P<sign>[+-])\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z%]*))\s*"
)
_UNITS = {"": {"": 1.0}, "ms": {"ms": 1.0, "s": 1000.0}, "%": {"%": 0.01}}
_EXAMPLES = "'entities_per_s < 95%', 'p99(service) > first + 20ms', 'throttled_ratio > first + 1%'"


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """A regression and whether it holds: None where it cannot be judged."""

    text: str
    holds: bool | None
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A bound that the last of the compared runs must not pass.

    The bound is the value of the first run times ``factor`` plus ``offset``, in the unit of the
    measure. ``below`` is True where a value below the bound is the regression.
    """

    text: str
    measure: Measure
    below: bool
    factor: float = 1.0
    offset: float = 0.0

    def judge(self, first: Values | None, last: Values | None) -> Judged:
        """Whether the regression holds; only if the two differ by the rule of all comparisons."""
        if first is None or last is None:
            missing = "the first" if first is None else "the last"
            return Judged(self.text, None, f"{missing} has no {self.measure.name}")
        bound = first.mean * self.factor + self.offset
        passed: bool | None = last.mean < bound if self.below else last.mean > bound
        now, before, at = map(self.measure.show_in_full, (last.mean, first.mean, bound))
        figures = f"{last.sign}{now} against {first.sign}{before}; the bound is {first.sign}{at}"
        judged = judge(self.measure, first, last)
        if judged.differ is None and (passed or first.doubt or last.doubt):
            passed = None
            figures += f"; but {judged.why}"
        elif passed and not judged.differ:
            passed = False
            figures += "; the difference is within the scatter of the runs"
        return Judged(self.text, passed, figures)


def parse_regression(text: str) -> Regression:
    """The regression that ``text`` describes, with a bound relative to the first run.

        entities_per_s < 95%             the last has less than 95 % of the first
        p99(service) > 120%              the last has more than 120 % of the first
        p99(service) > first + 20ms      the last is more than 20 ms above the first
        throttled_ratio > first + 1%     a share: one percentage point above the first

    The bound is on the worse side of the first run. A share takes no percentage of the first: 1 %
    of a share is too easily mistaken for the share 1 %.

    Raises:
        ValueError: The text is no regression; the message describes what is.
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
            f"{echoed(text)} would fail on an improvement: for {name}, {worse} is worse, "
            f"so write {'<' if measure.more_is_better else '>'}"
        )
    regression = Regression(text=text.strip(), measure=measure, below=below)
    if match["percent"] is not None:
        if measure.unit == "%":
            raise ValueError(
                f"{echoed(text)} takes a percentage of a share; write '{name} {match['side']} "
                f"first {'-' if below else '+'} {match['percent']}%' for percentage points"
            )
        return dataclasses.replace(regression, factor=float(match["percent"]) / 100)
    units = _UNITS[measure.unit]
    if match["unit"] not in units:
        takes = " or ".join(unit or "no unit" for unit in units)
        raise ValueError(f"{echoed(text)} has unit {echoed(match['unit'])}; {name} takes {takes}")
    offset = float(match["sign"] + match["number"]) * units[match["unit"]]
    return dataclasses.replace(regression, offset=offset)
