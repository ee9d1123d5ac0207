"""The search for the highest sustainable rate: each step as it is taken, and all of them after."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from harness.measure.findings import SearchPart, StepPart
from harness.report.drawing import bar
from harness.report.page import Cell, Page, table_of
from harness.report.words import counted, milliseconds, number, percent, shortened
from harness.workload.steps import Limit, Step, TakenStep

_BAR_WIDTH = 8
_RESULT_WIDTH = 9
_FAILED: dict[str, str] = {
    Limit.CLIENT: "generator",
    Limit.USERS: "few users",
    Limit.THROTTLED: "throttled",
    Limit.NOT_HELD: "not held",
    Limit.LATENCY: "too slow",
}
_LIMITS: dict[str, str] = {
    Limit.CLIENT: "the generator was the limit",
    Limit.USERS: "more users may get more",
    Limit.THROTTLED: "above it attempts are throttled",
    Limit.NOT_HELD: "more does not come through",
    Limit.LATENCY: "above it answers take too long",
    Limit.MAXIMUM: "the search looks no higher",
    Limit.UNFINISHED: "the search did not end",
}


def step_result(failed: str | None, *, confirming: bool) -> str:
    """What became of a step, in a word or two.

    Args:
        failed: Why it failed, as records hold it; None where it passed.
        confirming: Whether it was held for the longer time.
    """
    if failed is None:
        return "confirmed" if confirming else "passed"
    return _FAILED.get(failed, failed)


def step_begins(place: int, step: Step) -> str:
    """The line that a step, the ``place``-th, begins with."""
    confirming = ", to confirm it" if step.confirming else ""
    return (
        f"step {place}: {number(step.rate_per_s)} entities/s, looked at for {step.hold_s:g} s "
        f"after {step.settle_s:g} s to settle{confirming}"
    )


def step_taken(place: int, taken: TakenStep) -> str:
    """What came of it, in a line."""
    outcome, failed = taken.outcome, taken.failed
    result = step_result(failed, confirming=taken.step.confirming)
    p99 = "n/a" if outcome.p99_ms is None else f"{milliseconds(outcome.p99_ms)} ms"
    return (
        f"step {place}: {'' if failed is None else 'failed, '}{result}: "
        f"{number(outcome.achieved_per_s)} of {number(outcome.wanted_per_s)} entities/s, "
        f"{percent(outcome.throttled_ratio)} throttled, p99 {p99}, "
        f"{counted(outcome.billable_transactions, 'billable transaction')}"
    )


def found(part: SearchPart) -> str:
    """What was found, in a sentence that the verdict's own explains."""
    steps = counted(len(part.steps), "step")
    billed = sum(step.billable_transactions for step in part.steps)
    cost = f"{steps}, {counted(billed, 'billable transaction')}"
    if part.rate_per_s is None:
        return f"No sustainable rate was found; {cost}."
    least = "At least " if part.at_least else ""
    confirmed = "confirmed" if part.confirmed else "not confirmed"
    limit = _LIMITS.get(part.limited_by, part.limited_by)
    return f"{least}{number(part.rate_per_s)} entities/s, {confirmed}; {limit}; {cost}."


def steps(part: SearchPart, page: Page) -> RenderableType:
    """Every step of a search, in the order in which they were taken."""
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows: list[list[Cell]] = []
    for place, step in enumerate(part.steps, 1):
        rows.append([_name(place, step, page), *_figures(step, highest, page)])
    headers = ["step", "wanted", "achieved", "", "throttled", "p99 ms", "held", "billable"]
    return page.section(
        "search, entities/s",
        table_of(headers, rows),
        Text(found(part)),
        Text("All other sections are about the whole search, its failed steps included.", "dim"),
    )


def figures(step: StepPart) -> list[str]:
    """What is told of a step: wanted, achieved, throttled, p99, how long it was held, its price."""
    return [
        number(step.rate_per_s),
        number(step.achieved_per_s),
        percent(step.throttled_ratio),
        "n/a" if step.p99_ms is None else milliseconds(step.p99_ms),
        f"{step.hold_s:g} s",
        f"{step.billable_transactions:,}",
    ]


def _name(place: int, step: StepPart, page: Page) -> Text:
    passed = step.failed is None
    sign, colour = (page.glyphs.yes, "green") if passed else (page.glyphs.no, "red")
    result = step_result(step.failed, confirming=step.confirming)
    result = shortened(page.show(result), _RESULT_WIDTH, page.glyphs.ellipsis)
    return Text(f"{place:>2} ").append(f"{sign} {result}", style=colour)


def _figures(step: StepPart, highest: float, page: Page) -> list[Cell]:
    wanted, achieved, *others = figures(step)
    colour = "cyan" if step.failed is None else "red"
    drawn = Text(bar(step.achieved_per_s / highest, _BAR_WIDTH, page.glyphs), style=colour)
    return [wanted, achieved, drawn, *others]
