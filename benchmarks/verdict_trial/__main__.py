"""Plays situations of which the truth is known, and writes how often the verdict was right.

    python -m benchmarks.verdict_trial [--only NAME] [--tries N] [--page] [--out FOLDER]

The situations are played one after the other. What was said is kept in FOLDER, so that a trial can
be continued; the page is made of what is kept. With ``--only`` situations are played again, and the
page is written only if all others are there.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.verdict_trial.haproxy import NoHaproxy  # noqa: E402
from benchmarks.verdict_trial.plays import Cannot, Stage  # noqa: E402
from benchmarks.verdict_trial.situation import Situation  # noqa: E402
from benchmarks.verdict_trial.situations import AFTERWARDS, SITUATIONS  # noqa: E402
from tests.support.fork_server import ForkServer  # noqa: E402
from tests.support.locust_process import Stress  # noqa: E402
from tests.support.network.hosts import NoNamespaces  # noqa: E402
from tests.support.situation import Played  # noqa: E402

PAGE = ROOT / "docs" / "verdict-trial.md"
QUIET_PERCENT, QUIET_WITHIN_S = 40.0, 15.0
RESERVED = ("client_limited", "inconclusive")
"""Outcomes that leave the question open."""


class Grade(enum.StrEnum):
    """How right what was said is.

    Half right is what says nothing false and a part of the truth: its outcome, or one of the texts
    that have to be there. Silently wrong is what says something false, or nothing of the truth, and
    tells by nothing (exit code 3, doubt about latencies, an open question) that it may be wrong.
    """

    RIGHT = "right"
    HALF = "half right"
    WRONG = "wrong"
    SILENT = "silently wrong"
    NOT_PLAYED = "not played"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a situation.

    Attributes:
        played: None where it could not be played.
        why: Why it could not be played, or what went wrong.
        tries: How often it was played: again while other programs kept the machine busy.
    """

    played: Played | None
    why: str = ""
    tries: int = 1
    took_s: float = 0.0

    @classmethod
    def read(cls, file: Path) -> Kept:
        content = json.loads(file.read_text(encoding="utf-8"))
        played = content.pop("played")
        if played is not None:
            played = Played(**{**played, "conditions": tuple(played["conditions"])})
        return cls(played=played, **content)

    def write(self, file: Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False)
        file.write_text(text, encoding="utf-8")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A situation, what was said of it, and how right that is."""

    situation: Situation
    kept: Kept

    @property
    def lacking(self) -> list[str]:
        return [] if self.kept.played is None else list(self.situation.lacking(self.kept.played))

    @property
    def false(self) -> list[str]:
        return [] if self.kept.played is None else list(self.situation.false(self.kept.played))

    @property
    def disturbed(self) -> bool:
        """Whether other programs kept the machine busy, in the last try too."""
        played = self.kept.played
        return played is not None and played.busy is not None and not self.situation.play.busies

    @property
    def grade(self) -> Grade:
        situation, played = self.situation, self.kept.played
        if played is None:
            return Grade.NOT_PLAYED
        lacking, false = self.lacking, self.false
        if not lacking and not false:
            return Grade.RIGHT
        wanted = len(situation.sentence) + len(situation.first_screen)
        told = bool(situation.outcome) and situation.decided(played)
        told |= wanted > sum(
            text in (*situation.sentence, *situation.first_screen) for text in lacking
        )
        if not false and told:
            return Grade.HALF
        doubt = played.busy is not None or played.exit_code == 3
        if doubt or played.outcome.startswith(RESERVED):
            return Grade.WRONG
        return Grade.SILENT


class Trial:
    """Plays situations one after the other, in a folder each."""

    def __init__(self, folder: Path, tries: int) -> None:
        self._folder = folder
        self._tries = tries
        self._server = ForkServer()

    def kept(self, situation: Situation) -> Kept | None:
        """What was played before."""
        file = self._folder / situation.name / "said.json"
        return Kept.read(file) if file.exists() else None

    def play(self, situation: Situation) -> Kept:
        """Play it, and again while others disturb it."""
        began_s = time.monotonic()
        for tries in range(1, self._tries + 1):
            if self._tries > 1:
                _wait_for_quiet()
            kept = dataclasses.replace(self._played(situation), tries=tries)
            if not Graded(situation=situation, kept=kept).disturbed:
                break
        kept = dataclasses.replace(kept, took_s=round(time.monotonic() - began_s, 1))
        kept.write(self._folder / situation.name / "said.json")
        return kept

    def end(self) -> None:
        self._server.end()

    def _played(self, situation: Situation) -> Kept:
        folder = self._folder / situation.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        stress = Stress(folder, self._server)
        try:
            return Kept(played=situation.play(Stage(stress=stress, folder=folder)))
        except (Cannot, NoHaproxy, NoNamespaces) as error:
            return Kept(played=None, why=str(error))
        except Exception as error:
            # It counts as wrong: a run that hangs or leaves no verdict tells nobody anything.
            said = f"{type(error).__name__}: {error}"
            nothing = Played(sentence="", first_screen=said[-2000:], conditions=(), exit_code=-1)
            return Kept(played=nothing, why=said[-2000:])
        finally:
            stress.end()


def _wait_for_quiet() -> None:
    """Wait until other programs leave the machine time, for some seconds at most."""
    deadline_s = time.monotonic() + QUIET_WITHIN_S
    while psutil.cpu_percent(1.0) > QUIET_PERCENT and time.monotonic() < deadline_s:
        pass


HEAD = """\
# How often the verdict is right

Made by `make verdict-trial`. The harness concludes something from each run: what was the limit, and
whether anything may be said at all. Here situations are made of which the cause is known, and the
conclusion is held against it. What has to be said, and what may not, is written down before a
situation is played (`benchmarks/verdict_trial/single_causes.py`, `situations.py`).

The causes are real and outside of the harness: a table service that stores in memory and fails by
rules of its own, HAProxy as a throttle, processes that use up cores, signals that stop and kill
processes, hosts in network namespaces that delay and lose packets, a clock that is set, a full
disk. None of them uses the harness's model of the limits. Each run lasts some seconds, and rates
are low where the two cores of a small machine have to make the load and answer it.

- **Right**: all that has to be said is said, and nothing false.
- **Half right**: nothing false, and a part of the truth: the outcome, or one of the causes.
- **Wrong**: something false, or nothing of the truth. **Silently** wrong: and nothing tells that it
  may be: no exit code 3, no doubt about latencies, no open question.

A situation is played again, twice at most, where other programs kept the machine busy meanwhile,
whatever was said.

"""


def page(graded: Sequence[Graded]) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD.rstrip("\n")
    yield ""
    yield _sums(graded)
    for group in dict.fromkeys(one.situation.group for one in graded):
        yield from ("", f"## {GROUPS[group]}", "")
        yield from ("| situation | what is true | what was said | |", "|---|---|---|---|")
        for one in graded:
            if one.situation.group == group:
                yield _row(one)
    yield from ("", *FOUND.rstrip("\n").split("\n"))
    missed = [one for one in graded if one.grade != Grade.RIGHT]
    if missed:
        yield from ("", "## Misses", "")
    for one in missed:
        reasons = [f"lacks “{text}”" for text in one.lacking]
        reasons += [f"says “{text}”" for text in one.false]
        reasons += [one.kept.why] if one.kept.why else []
        yield f"- `{one.situation.name}`, {one.grade}: {_cell('; '.join(reasons))}."


FOUND = """\
## What the trial found

Trials of the first fifty situations showed conclusions that had no evidence. They are mended in the
rule, not for the situation; five situations, made after that, count too.

- Beside busy processes the rate was "not the limit of the endpoint", though answers may have been
  slow by themselves. Now the limit of the endpoint is unknown.
- "Split the row" was advised where transactions name many rows each. The share of a row is now that
  of the entities.
- More processes were advised for a generator that had been stopped for seconds on an idle core.
- A watched application that waited for answers had "asked for no more".
- A search whose requests failed with 500 advised more users. A step of which requests fail is now
  failing, and advice about processes stands in one place.
- "No limit is known to be the cause" was said of refusals of which the service had named the
  account's limit for some. Their number is now in the sentence.
- One of the five later ones, `paused-generator-and-limit`, showed one more: "the endpoint did not
  answer for 2.5 s" was said of a generator that was stopped itself. It is mended too.
- Played in one go, 52 of 55 were right and three half right: of `open-capacity` the wanted rate was
  too low, as it counted operations without an answer as empty; of `account-behind-partition` the
  partition was not named; of `search-generator` the budget ended the search before its cause could
  act. All three were mended.
- Played in one go again, 54 of 55 were right. In `clock-forward` other programs had used both
  processors for a second, in which "the endpoint did not answer". That is said now only of silences
  that took longer than the processors were used up; the situation was played again, undisturbed. Of
  three others the wanted words had changed ("sent operations at most" in place of "sent at most"; a
  wanted rate of 99.8, because the window begins before the last user), and the page follows them.
"""
GROUPS = {
    "closed": "Closed loads",
    "open": "Open loads",
    "search": "Searches for the highest rate",
    "workers": "Several workers",
    "accounts": "Several accounts",
    "watch": "Watched applications",
    "comparison": "Comparisons",
}


def _sums(graded: Sequence[Graded]) -> str:
    counts = Counter(one.grade for one in graded)
    two = sum(one.situation.causes > 1 for one in graded)
    parts = [
        f"{counts[grade]} {grade}" for grade in Grade if counts[grade] or grade != "not played"
    ]
    left = len(SITUATIONS) - len(graded)
    if left:
        parts.append(f"{left} more not played yet")
    disturbed = sum(one.disturbed for one in graded)
    again = "" if not disturbed else f" Other programs disturbed {disturbed} to the last try."
    return (
        f"**{len(graded)} situations: {', '.join(parts)}.** In {two} of them two causes act at "
        f"once. {len(AFTERWARDS)}, from `{AFTERWARDS[0].name}` on, were written after the rules "
        f"had been mended.{again}"
    )


def _row(one: Graded) -> str:
    played, grade = one.kept.played, str(one.grade)
    said = one.kept.why if played is None else played.sentence or one.kept.why
    name = f"`{one.situation.name}`: {one.situation.cause}"
    if one.disturbed:
        grade += ", disturbed"
    return "| " + " | ".join(map(_cell, (name, one.situation.truth, said, grade))) + " |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--page", action="store_true", help="of what is kept; play nothing")
    parser.add_argument("--tries", type=int, default=3, help="while other programs disturb it")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "verdict-trial")
    args = parser.parse_args()
    unknown = set(args.only) - {situation.name for situation in SITUATIONS}
    if unknown:
        parser.error(f"no situation {', '.join(sorted(unknown))}")
    args.out.mkdir(parents=True, exist_ok=True)
    trial, graded = Trial(args.out.resolve(), args.tries), []
    try:
        for number, situation in enumerate(SITUATIONS, start=1):
            kept = trial.kept(situation)
            if situation.name in args.only or (kept is None and not args.only and not args.page):
                kept = trial.play(situation)
                one = Graded(situation=situation, kept=kept)
                print(
                    f"[{number}/{len(SITUATIONS)}] {situation.name}: {one.grade}"
                    f"{' (disturbed)' if one.disturbed else ''}, {kept.took_s:.0f} s",
                    flush=True,
                )
                for text in (
                    *one.lacking,
                    *(f"not to say: {text}" for text in one.false),
                    kept.why,
                ):
                    if text:
                        print(f"    {text[:300]}", flush=True)
            if kept is not None:
                graded.append(Graded(situation=situation, kept=kept))
    finally:
        trial.end()
    print(f"\n{_sums(graded)}")
    if args.page or len(graded) == len(SITUATIONS):
        PAGE.write_text("\n".join(page(graded)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
