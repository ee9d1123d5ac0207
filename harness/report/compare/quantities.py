"""What runs are compared by, and when two values differ.

A difference is one only where it exceeds the spread of repeats.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from harness.measure.figures import milliseconds, number, percent
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import THROTTLED_FROM
from harness.model.errors import echoed
from harness.report.sentences import hottest, hottest_share

SAME_WITHIN = 0.05
"""Without repeats, a difference below this share of the larger value counts as none."""
NEVER_WITHIN = 0.01
"""With repeats too: a smaller share matters to nobody, however steady the runs were."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is compared.

    Attributes:
        name: As ``--fail-if`` writes it.
        label: In the table.
        noun: In a sentence.
        more_is_better: None where neither is.
        unit: Of its value: ``""``, ``"ms"``, or ``"%"`` for a share.
        read: Its value in one run; None where it was not measured.
        least: A difference up to this is none, whatever share it is.
    """

    name: str
    label: str
    noun: str
    more_is_better: bool | None
    unit: str
    read: Callable[[RunRecord], float | None]
    least: float = 0.0

    def show(self, value: float) -> str:
        """A value as outputs write it, without a latency's unit."""
        return {"%": percent, "ms": milliseconds}.get(self.unit, number)(value)


def _latency(latency: str, figure: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        part = getattr(record, f"{latency}_ms")
        return None if part is None else float(getattr(part, figure))

    return Measure(
        name=f"{figure}({latency})",
        label=f"{figure} {latency}, ms",
        noun=f"{figure} of {latency} latency",
        more_is_better=False,
        unit="ms",
        read=read,
    )


def _throttled(scope: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        attempts = record.counts.attempts
        throttled = record.throttled[scope] if scope else sum(record.throttled.values())
        return throttled / attempts if attempts else None

    return Measure(
        name=f"throttled_ratio({scope})" if scope else "throttled_ratio",
        label=f"  for the {scope}" if scope else "throttled attempts",
        noun=f"share of attempts throttled{f' for the {scope}' if scope else ''}",
        more_is_better=False,
        unit="%",
        read=read,
        least=THROTTLED_FROM,
    )


def _target_ratio(record: RunRecord) -> float | None:
    part = hottest(record)
    return None if part is None else part.ratio


def _billable(record: RunRecord) -> float | None:
    # Each attempt is billed once. Loading and cleaning are left out: they say nothing of the load.
    counts = record.counts
    return counts.attempts / counts.entities * 1000 if counts.entities else None


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="entities_per_s",
        label="entities/s",
        noun="entities/s",
        more_is_better=True,
        unit="",
        read=lambda record: record.account.entities_per_s.mean,
    ),
    Measure(
        name="entities_per_s(best_1s)",
        label="  best 1 s",
        noun="entities/s of the best second",
        more_is_better=True,
        unit="",
        read=lambda record: record.account.entities_per_s.best_1s,
    ),
    Measure(
        name="target_ratio(partition)",
        label="hottest, of target",
        noun="the hottest partition's share of its target",
        more_is_better=None,
        unit="%",
        read=_target_ratio,
    ),
    Measure(
        name="target_ratio(account)",
        label="account, of target",
        noun="the account's share of its target",
        more_is_better=None,
        unit="%",
        read=lambda record: record.account.ratio,
    ),
    Measure(
        name="hottest_share",
        label="hottest, of the load",
        noun="the hottest partition's share of the load",
        more_is_better=False,
        unit="%",
        read=hottest_share,
    ),
    *map(_throttled, ("", "partition", "account")),
    *(
        _latency(latency, figure)
        for latency in ("service", "response")
        for figure in ("p50", "p99")
    ),
    Measure(
        name="billable_per_1000",
        label="billable /1,000 entities",
        noun="billable transactions per 1,000 entities",
        more_is_better=False,
        unit="",
        read=_billable,
    ),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What repeats reached of one measure: mean, least and most."""

    mean: float
    least: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """From the least to the most; 0 for a single run."""
        return self.most - self.least


def values_of(measure: Measure, records: Sequence[RunRecord]) -> Values | None:
    """What repeats reached; None where one of them did not measure it."""
    read = [measure.read(record) for record in records]
    known = [value for value in read if value is not None]
    if len(known) < len(read):
        return None
    return Values(mean=sum(known) / len(known), least=min(known), most=max(known), count=len(known))


def differ(measure: Measure, one: Values, other: Values) -> bool:
    """Whether two differ by more than repeats of either do among themselves."""
    gap = abs(one.mean - other.mean)
    larger = max(abs(one.mean), abs(other.mean))
    repeated = max(one.count, other.count) > 1
    share = NEVER_WITHIN if repeated else SAME_WITHIN
    return gap > max(measure.least, one.spread, other.spread, share * larger)


def change_of(value: float, reference: float) -> float | None:
    """How far a value is from another, as a share of it; None where that is 0."""
    return None if reference == 0 else value / reference - 1


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
