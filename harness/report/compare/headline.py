"""The first words of a comparison: the names of its runs, and what it comes to in one sentence."""

from __future__ import annotations

import itertools

from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import counted, listed, number
from harness.report.compare.comparison import Comparison, Ranking, differences_of
from harness.report.compare.differences import MANY_TIMES, UNKNOWN, change_of, change_words
from harness.report.limits import counted_unit

SAME = "No difference that the scatter of these runs does not explain."
_MOST_SETTINGS = 8
_AS_MUCH_FROM = 2.0
"""From here on a ratio is written as one, below it in percent."""
_WEIGHTIEST = (
    *("sustained_per_s", "entities_per_s", "throttled_ratio"),
    *("p99(response)", "p99(service)", "p50(response)", "p50(service)"),
    *("ru_per_operation", "billable_per_1000"),
)
"""What a manager asks for, in this order; other measures follow in theirs."""


def headline(comparison: Comparison) -> str:
    """What the comparison comes to: the difference that weighs most, or that there is none."""
    if len(comparison.subjects) < 2:
        return ""
    if not comparison.differences:
        # What a single run cannot tell of some figures is said with them.
        reasons = "; ".join(why for why in comparison.undecided if why != UNKNOWN)
        if not comparison.same:
            return f"Nothing can be judged, because {reasons}." if reasons else SAME
        return SAME + (f" Some figures were not judged, because {reasons}." if reasons else "")
    order = {name: place for place, name in enumerate(_WEIGHTIEST)}
    found = min(comparison.differences, key=lambda one: order.get(one.measure.name, len(order)))
    return _sentence(comparison, found, {one.letter: one.name for one in comparison.subjects})


def _sentence(comparison: Comparison, found: Ranking, called: dict[str, str]) -> str:
    """The best run, and how far it is from the first, or else from the worst."""
    best, first = found.best[0], comparison.subjects[0].letter
    pick = min if found.measure.more_is_better else max
    far = pick(found.behind, key=lambda letter: found.values[letter].mean)
    other = first if first in found.behind else far
    records = {one.letter: one.records for one in comparison.subjects}
    high, low = (found.values[letter].mean for letter in (best, other))
    name, behind = listed([called[letter] for letter in found.best]), called[other]
    show = found.measure.show_in_full
    if found.measure.name == "sustained_per_s":
        return f"{name} sustains {_than(high, low, behind)} ({show(high)} against {show(low)})."
    if found.measure.name == "entities_per_s":
        served = _than(high, low, behind)
        throttled = [
            all(one.verdict.result == VerdictResult.THROTTLED for one in records[letter])
            for letter in (best, other)
        ]
        if all(throttled):
            return f"{name} serves {served} before it throttles."
        if throttled[1]:
            # How much more it would serve is not known.
            return f"{name} serves at least {served}, which was throttled."
        more = change_words(high, low)
        unit = counted_unit(itertools.chain(*records.values())).rate
        return f"{name} served {show(high)} {unit}, {behind} {show(low)} ({more})."
    if found.measure.name == "throttled_ratio":
        against = f"{show(high)} of the attempts against {show(low)}"
        return f"{name} is throttled less than {behind}: {against}."
    noun = found.measure.noun
    change = "" if found.measure.unit == "%" else change_words(high, low)
    against = f"{show(high)} against {show(low)}{f', {change}' if change else ''}"
    return f"{noun[0].upper()}{noun[1:]}: {name} is better than {behind} ({against})."


def _than(high: float, low: float, behind: str) -> str:
    """``2.4 times as much as B``, or ``13% more than B``."""
    change = change_of(high, low)
    if change is None or change + 1 < _AS_MUCH_FROM:
        return f"{change_words(high, low) or 'more'} than {behind}"
    if change + 1 < MANY_TIMES:
        return f"{number(change + 1)} times as much as {behind}"
    return f"{change_words(high, low)} as {behind}"


def settings_of(comparison: Comparison) -> list[str]:
    """The settings in which the runs differ from the first, a line for each run."""
    first, *others = comparison.subjects
    lines = []
    for subject in others:
        found = [*differences_of(first.records[0], subject.records[0])]
        shown, more = found[:_MOST_SETTINGS], len(found) - _MOST_SETTINGS
        if more > 0:
            shown.append(counted(more, "more setting"))
        if shown:
            lines.append(f"{first.letter} and {subject.letter}: {'; '.join(shown)}")
    return lines
