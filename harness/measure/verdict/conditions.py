"""Pass conditions: parsed before anything is sent, evaluated at the end of a run.

entities_per_s(partition="p0") > 1500
metric        (of, by="name")  compare  number, unit

While a run goes on, a condition is lost once its quantity cannot end with a value that holds. Only
certain facts count: sums never shrink, and a run cannot exceed its extent. The rate so far proves
nothing. All other quantities can end with any value, such as an upper bound of a rate, a quantity
of one partition (a heavier partition may replace it in the counts), and the held share of the
wanted rate.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from math import inf, nextafter

from harness.measure.counts.latency import BUCKETS_S, CountedLatency
from harness.measure.counts.snapshot import CountedOperation, Snapshot
from harness.measure.record.findings import ConditionPart
from harness.measure.record.measured import RatesPart
from harness.measure.verdict.failures import MIXED_FROM, failures_of
from harness.measure.verdict.quantities import (
    FORMS,
    NO_FACTS,
    OF_FAILURES,
    PERCENTILES,
    Facts,
    Form,
    Unit,
    measured,
    share_of,
)
from harness.model.errors import cut, did_you_mean, echoed
from harness.model.figures import percent
from harness.model.outcome import Outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Upper bounds of a whole run, known before it starts. None is no bound.

    Attributes:
        window_s: Length of the measured window in whole seconds; a run may end before.
        operations: Operations that can become due.
        attempts: Attempts, including retries and pages.
    """

    window_s: int
    operations: int | None = None
    attempts: int | None = None


_ANYTHING = (-inf, inf)


def reachable(
    form: Form, name: str, snapshot: Snapshot, facts: Facts, extent: Extent
) -> tuple[float, float]:
    """The lowest and the highest value with which a quantity can end, in its unit.

    ``snapshot`` and ``facts`` are those so far; ``name`` is the operation, if the form has one.
    """
    if form.metric == "lost_writes":
        return (float(facts.lost_writes or 0), inf)
    if (share := share_of(form, name, snapshot)) is not None:
        most = extent.attempts if share.of == "attempts" else extent.operations
        return _share(share.part, share.rest, most)
    if form.by == "partition":
        return _ANYTHING
    holder: Snapshot | CountedOperation | None = snapshot
    if form.by:
        holder = next((part for part in snapshot.operations if part.kind == name), None)
    if holder is None or form.of == "partition":
        return _ANYTHING
    if form.metric == "entities_per_s":
        rates = holder.entities_per_s if form.by else snapshot.account_rates
        return _rate(rates, snapshot, extent)
    if form.metric == "ru_per_s":
        units = holder.request_units
        if units is None:
            return _ANYTHING
        rates = snapshot.account_request_units if form.of == "account" else units.per_s
        return _rate(rates, snapshot, extent, digits=2)
    if form.unit is Unit.LATENCY:
        view = getattr(holder, f"{form.of}_ms")
        return _percentile(int(form.metric[1:]), view, snapshot, extent)
    return _ANYTHING


def _share(part: int, never: int, most: int | None) -> tuple[float, float]:
    """The share of ``part`` in a growing whole of at most ``most``, whose rest is ``never``."""
    if most is None:
        # Without a bound the share can come close to 0 or 1, but not back to it.
        return (nextafter(0.0, 1.0) if part else 0.0, nextafter(1.0, 0.0) if never else 1.0)
    most = max(most, part + never, 1)
    return part / most, (most - never) / most


def _rate(
    rates: RatesPart, snapshot: Snapshot, extent: Extent, digits: int = 0
) -> tuple[float, float]:
    """Mean rate: what was counted in the window remains, and the window ends.

    Entities are whole; request units have two ``digits``.
    """
    so_far_s = max(0, snapshot.length_s)
    counted = round(rates.mean * so_far_s, digits)
    return counted / max(extent.window_s, so_far_s, 1), inf


def _percentile(
    percentile: int, view: CountedLatency | None, snapshot: Snapshot, extent: Extent
) -> tuple[float, float]:
    """A percentile in ms: it stays above a bound that too many latencies exceeded already."""
    if view is None or extent.operations is None:
        return (0.0, inf)
    to_come = max(0, extent.operations - sum(snapshot.outcomes.values()))
    # At most this many latencies are above the percentile at the end; see `LatencyHistogram.view`.
    most_above = (view.count + to_come) * (100 - percentile) // 100
    exceeded = (
        bound
        for bound, at_most in zip(BUCKETS_S, view.buckets, strict=True)
        if view.count - at_most > most_above
    )
    return max(exceeded, default=0.0) * 1000.0, inf


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_FEWEST_ATTEMPTS = 20
"""With fewer attempts no throttled ratio is certain."""
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_SIGN = r"<=|>=|==|<|>"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_UNIT = r"[a-z%]+"
_EXAMPLES = (
    "'throttled_ratio < 1%', 'entities_per_s(partition) > 1500', 'p99(service) < 100ms', "
    "'entities_per_s(partition=\"p0\") > 1500', 'lost_writes == 0'"
)


class ConditionResult(ConditionPart):
    """A pass condition and its result, with what else the exit code depends on.

    Attributes:
        depends: False if the result is the same whoever limited the rate: a lost write is lost.
        certain: True if it failed and a longer or faster run could not change that.
    """

    depends: bool = True
    certain: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One pass condition; ``name`` is the partition or operation, if the form has one."""

    text: str
    form: Form
    name: str
    compare: str
    bound: float

    def renamed(self, name_of: Callable[[str], str]) -> Condition:
        """The same condition with another name for its partition, if it has one."""
        if self.form.by != "partition":
            return self
        name = name_of(self.name)
        quoted = re.sub(r"([\\\"])", r"\\\1", name)
        text = re.sub(_QUOTED, lambda _: f'"{quoted}"', self.text)
        return dataclasses.replace(self, name=name, text=text)

    def evaluate(self, snapshot: Snapshot, facts: Facts = NO_FACTS) -> ConditionResult:
        """Whether the condition holds; unknown without a value.

        A service that throttled too much would not throttle less at a higher rate. Such a failure
        is certain, whoever limited the rate and however few operations ended.

        A latency that is only an upper bound can show that the latency was low, not that it was
        high. A rate that is a lower bound can show that it was high, not that it was low. What a
        failing endpoint measured decides nothing else: failures dilute a ratio, and end operations
        early. Nor do latencies, if operations failed because they were throttled: refusals are
        quick.
        """
        found = measured(self.form, self.name, snapshot, facts)
        value, note = found.value, found.note
        passed = None if value is None else _COMPARE[self.compare](value, self.bound)
        low = passed is self._bounds_above and self.compare != "=="
        if value is not None and found.at_least and (low or self.compare == "=="):
            passed = None
        if value is not None and self._doubts(facts) and not low:
            passed, note = None, facts.latency_doubt or ""
        lost = self._lost(snapshot)
        throttled = value if self.form.metric == "throttled_ratio" else None
        if self.form.metric == "failed_ratio" and self.name in ("", Outcome.THROTTLED):
            throttled = lost
        certain, failures = False, failures_of(snapshot)
        if passed is False and throttled is not None and self._bounds_above:
            certain = not _COMPARE[self.compare](throttled, self.bound)
        undecided = passed is not None and not certain and self.form.metric not in OF_FAILURES
        if failures.failing and undecided:
            passed, note = None, "; ".join(filter(None, (note, failures.share)))
        elif undecided and self.form.unit is Unit.LATENCY and lost >= MIXED_FROM:
            those = "these" if self.form.by in ("op", "partition") else "the"
            most = "up to " * (self.form.by == "partition")
            passed, note = None, f"{most}{percent(lost)} of {those} operations failed"
        return ConditionResult(
            text=self.text,
            value=value,
            passed=passed,
            note=note,
            unit=self.form.unit,
            depends=self.form.metric != "lost_writes",
            certain=certain and snapshot.counts.attempts >= _FEWEST_ATTEMPTS,
        )

    def cannot_hold_any_more(self, snapshot: Snapshot, facts: Facts, extent: Extent) -> bool:
        """Whether the condition is certain to fail at the end of a run that goes on.

        `harness.measure.verdict.conditions` says for which quantities that can be certain. What is
        open so far may be open at the end.
        """
        if self.evaluate(snapshot, facts).passed is not False:
            return False
        low, high = reachable(self.form, self.name, snapshot, facts, extent)
        if self.compare == "==":
            return not low <= self.bound <= high
        return not _COMPARE[self.compare](low if self._bounds_above else high, self.bound)

    @property
    def _bounds_above(self) -> bool:
        return self.compare.startswith("<")

    def _lost(self, snapshot: Snapshot) -> float:
        """Share of the operations that failed because they were throttled: of one name, or all.

        Of one partition it is the most that there can be: a lost operation has a throttled attempt.
        """
        named = self.name if self.form.by == "op" else None
        parts = [part for part in snapshot.operations if named in (None, part.kind)]
        lost = sum(part.outcomes.get(Outcome.THROTTLED, 0) for part in parts)
        if self.form.by == "partition":
            of = [part for part in snapshot.partitions if part.key == self.name]
            most = [min(lost, part.throttled, part.operations) for part in of]
            return sum(most) / (sum(part.operations for part in of) or 1)
        return lost / (sum(part.count for part in parts) or 1)

    def _doubts(self, facts: Facts) -> bool:
        """Whether the measured value is only an upper bound."""
        return self.form.unit is Unit.LATENCY and facts.latency_doubt is not None


def parse_condition(text: str) -> Condition:
    """The condition in ``text``; a `ValueError` names the mistake and valid forms."""
    reader = _Reader(text)
    metric = reader.take(_WORD, "expected a metric")
    words, names = _arguments(reader)
    sign = reader.take(_SIGN, f"expected one of {', '.join(_COMPARE)}")
    number = reader.take(_NUMBER, f"expected a number after {sign}, such as 1500, 1% or 50ms")
    unit = reader.look(_UNIT)
    if reader.rest:
        raise reader.mistake(
            "expected the end: a condition is one comparison with a decimal number"
        )
    form = Form(metric, "".join(words), "".join(by for by, _ in names))
    if len(words) > 1 or len(names) > 1 or form not in FORMS:
        arguments = [*words, *(f'{by}="..."' for by, _ in names)]
        raise ValueError(
            f"{echoed(text)} compares an unknown quantity; {_known(metric, arguments)}"
        )
    form.check("".join(name for _, name in names))
    suffixes = form.unit.suffixes
    if unit not in suffixes:
        takes = " or ".join(suffix or "no unit" for suffix in suffixes)
        raise ValueError(f"{echoed(text)} has unit {echoed(unit)}; {metric} takes {takes}")
    # Decimal, because 57% must be the same number as 57 / 100.
    bound = float(Decimal(number) * suffixes[unit])
    if metric.endswith("_ratio") and bound > 1:
        raise ValueError(
            f"{echoed(text)} compares with {cut(percent(bound))}; {metric} is 100% (or 1) at most"
        )
    return Condition(
        text=text.strip(),
        form=form,
        name="".join(name for _, name in names),
        compare=sign,
        bound=bound,
    )


class _Reader:
    """Reads a condition from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.rest = text.strip()

    def look(self, pattern: str) -> str:
        """The next part if it matches, else an empty text."""
        match = re.match(pattern, self.rest)
        if match is None:
            return ""
        self.rest = self.rest[match.end() :].lstrip()
        return match[0]

    def take(self, pattern: str, otherwise: str) -> str:
        """The next part; a `ValueError` with the text ``otherwise`` if it does not match."""
        if not (found := self.look(pattern)):
            raise self.mistake(otherwise)
        return found

    def mistake(self, what: str) -> ValueError:
        if not self._text.strip():
            return ValueError(f"{self._text!r} is not a condition; examples are {_EXAMPLES}")
        place = f"at {echoed(self.rest)}" if self.rest else "at its end"
        return ValueError(
            f"{echoed(self._text)} is not a condition, {place}: {what}; examples are {_EXAMPLES}"
        )


def _arguments(reader: _Reader) -> tuple[list[str], list[tuple[str, str]]]:
    """The words in parentheses, and the names in quotes, each with the word before it."""
    words: list[str] = []
    names: list[tuple[str, str]] = []
    if not reader.look(r"\("):
        return words, names
    while True:
        word = reader.take(_WORD, 'expected a word, or a name as in partition="p0"')
        if reader.look("="):
            quoted = reader.take(_QUOTED, f'expected a name in quotes, as in {word}="..."')
            names.append((word, re.sub(r"\\(.)", r"\1", quoted[1:-1])))
        else:
            words.append(word)
        if reader.look(r"\)"):
            return words, names
        reader.take(",", "expected a comma or the closing parenthesis")


def _known(metric: str, arguments: Iterable[str]) -> str:
    """The known quantities, and the one that may have been meant."""
    metric = cut(metric)
    same = [form for form in FORMS if form.metric == metric]
    if same:
        can_be = f"{metric} is written {_list(same)}"
    else:
        first, *others = (f"p{percentile}" for percentile in reversed(PERCENTILES))
        shown = [form for form in FORMS if form.metric not in others]
        can_be = f"known are {_list(shown)}; {' and '.join(others)} are written like {first}"
    listed = cut(", ".join(arguments))
    written = f"{metric}({listed})" if listed else metric
    return can_be + did_you_mean(written, (form.written() for form in FORMS))


def _list(forms: Iterable[Form]) -> str:
    return ", ".join(form.written() for form in forms)
