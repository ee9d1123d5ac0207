"""What was concluded from a situation, and what has to be concluded from it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from harness.measure.record.record import RunRecord
from harness.measure.verdict.client_limit import latency_doubt
from harness.report.compare.comparison import compare
from harness.report.compare.comparison import headline as compare_headline
from harness.report.compare.differences import Subject
from harness.report.compare.regressions import parse_regression
from harness.report.headline import headline
from harness.report.passing import passing_of
from tests.support.locust_process import LocustProcess


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of a situation.

    Attributes:
        sentence: The verdict, or the first sentence of a command that has none.
        first_screen: What a page says first, and a terminal from the verdict on.
        conditions: The results of the pass conditions; None is undecided.
        outcome: The result of the verdict, and the side that was the limit; empty without one.
        rate_per_s: What a search found.
        busy: What kept the machine busy; None if it had time left.
    """

    sentence: str
    first_screen: str
    conditions: tuple[bool | None, ...]
    exit_code: int
    outcome: str = ""
    rate_per_s: float | None = None
    busy: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What has to be said. Texts are parts of what is said; letter case counts.

    Attributes:
        outcome: Beginnings of the outcomes that are right; none is all.
        sentence: What the sentence must say; " | " is between texts of which one must be there.
        first_screen: What the first screen must say besides.
        never: What neither may say.
        rate_per_s: Between which rates a search must end.
        exit_code: None is any.
    """

    outcome: tuple[str, ...] = ()
    sentence: tuple[str, ...] = ()
    first_screen: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    conditions: tuple[bool | None, ...] = ()
    rate_per_s: tuple[float, float] | None = None
    exit_code: int | None = 0

    def decided(self, played: Played) -> bool:
        """Whether the outcome is right."""
        return not self.outcome or played.outcome.startswith(self.outcome)

    def lacking(self, played: Played) -> Iterator[str]:
        """What should be said, and is not."""
        if not self.decided(played):
            yield f"not {played.outcome} but {' or '.join(self.outcome)}"
        for wanted, said in (
            (self.sentence, played.sentence),
            (self.first_screen, played.first_screen),
        ):
            yield from (
                text for text in wanted if not any(map(said.__contains__, text.split(" | ")))
            )
        if self.rate_per_s is not None:
            low, high = self.rate_per_s
            if played.rate_per_s is None or not low <= played.rate_per_s <= high:
                yield f"{played.rate_per_s} entities/s, not {low:g} to {high:g}"
        if played.conditions != self.conditions:
            yield f"conditions {played.conditions}"
        if self.exit_code not in (None, played.exit_code):
            yield f"exit code {played.exit_code}"

    def false(self, played: Played) -> Iterator[str]:
        """What is said, and should not be."""
        said = f"{played.sentence} {played.first_screen}"
        yield from (text for text in self.never if text in said)


def of_run(process: LocustProcess) -> Played:
    """What the only run of a process concluded, once it has ended."""
    code = process.wait()
    # Without the frames and line ends of a terminal.
    verdict = re.sub(r"[│╭╮╰╯─\s]+", " ", process.stdout.rpartition("VERDICT: ")[2])
    return of_record(process.record, code, verdict)


def of_record(record: RunRecord, exit_code: int, said: str) -> Played:
    """What a record and the console of its run conclude."""
    passing, search = passing_of(record), record.search
    return Played(
        sentence=record.verdict.sentence,
        first_screen=f"{passing or ''} {headline(record)} {said}",
        conditions=tuple(condition.passed for condition in record.conditions),
        exit_code=exit_code,
        outcome=f"{record.verdict.result}, {record.verdict.limited_by}",
        rate_per_s=None if search is None else search.rate_per_s,
        busy=latency_doubt(record.generator, record.watched),
    )


def of_comparison(subjects: Sequence[Subject], fail_if: Sequence[str]) -> Played:
    """What a comparison concludes; a regression is a condition that failed."""
    comparison = compare(subjects, [parse_regression(text) for text in fail_if])
    return Played(
        sentence=compare_headline(comparison),
        first_screen=" ".join(comparison.findings),
        conditions=tuple(
            None if one.holds is None else not one.holds for one in comparison.regressions
        ),
        exit_code=comparison.exit_code,
    )


def conditions(*texts: str) -> tuple[str, ...]:
    """The options for these pass conditions."""
    return ("--set", f"conditions={list(texts)!r}")
