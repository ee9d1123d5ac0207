"""What happened during a run, in words: throttling, partitions that moved, outages and stalls."""

from __future__ import annotations

import dataclasses

from harness.measure.record.enforced import MovePart
from harness.measure.record.findings import GapPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.observations import SHOWN_GAP_S, gap_words, silence_words, waited_words
from harness.model.figures import counted, number
from harness.report.names import partition_name, shortened

_MOST_GAPS = 5
_MOST_MOVES = 5
_NAME_WIDTH = 24
MATTERS_FROM = 0.01
"""Share of the time without answers from which the 99th percentile can be part of it."""
_SLACK_S = 1.0
"""A stall is counted in whole seconds, a move is not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
    """Partitions that were offline at the same time, from the first to the last of them."""

    moves: tuple[MovePart, ...]

    @property
    def start_s(self) -> float:
        return min(move.start_s for move in self.moves)

    @property
    def end_s(self) -> float:
        return max(move.start_s + move.offline_s for move in self.moves)

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(move.key for move in self.moves))

    @property
    def named(self) -> str:
        """The partition, or how many."""
        if len(self.keys) > 1:
            return counted(len(self.keys), "partition")
        return f"partition {_named(self.keys[0])}"


def moved_together(record: RunRecord) -> list[Moved]:
    """The moves of a run in order of time, those joined whose times overlap."""
    together: list[Moved] = []
    moves = () if record.enforced is None else record.enforced.moves
    for move in sorted(moves, key=lambda move: move.start_s):
        if together and move.start_s <= together[-1].end_s:
            together[-1] = Moved((*together[-1].moves, move))
        else:
            together.append(Moved((move,)))
    return together


def stall_sentence(record: RunRecord) -> str | None:
    """What the longest stall was, and for which partition users waited; None without a stall.

    Without figures about who waited, such as in a watch, the longest outage stands for it, and
    without an outage the times in which no answer came. The steps of a search that fail are no
    finding.
    """
    if record.search is not None:
        return None
    stall = max(
        record.throttling.stalls, key=lambda one: (one.length_s, -one.start_s), default=None
    )
    gap, silences = record.throttling.longest_gap, record.throttling.silences
    if stall is not None and stall.waited:
        rates = f"from {number(stall.before_per_s)} to {number(stall.rate_per_s)} "
        rates += record.endpoint.service.unit.rate
        moved = _moved_in(record, stall.start_s, stall.length_s)
        told = f"the rate fell {rates} for {stall.length_s} s: "
        alone = moved.keys[0] if moved is not None and len(moved.keys) == 1 else ""
        told += waited_words(stall, record.users, _named, alone)
    elif gap is not None and gap.length_s >= SHOWN_GAP_S:
        moved = _moved_in(record, gap.start_s, gap.length_s)
        told = f"nothing succeeded for {gap.length_s} s"
    elif silences is not None and silences.total_s >= MATTERS_FROM * record.measured_s:
        moved = None
        told = silence_words(silences)
    else:
        return None
    sentence = f"{told}." if moved is None else f"when {moved.named} moved, {told}."
    return sentence[0].upper() + sentence[1:]


def _moved_in(record: RunRecord, start_s: float, length_s: float) -> Moved | None:
    """The move in these seconds of the load, give or take one."""
    end_s = start_s + length_s + _SLACK_S
    for one in moved_together(record):
        if one.start_s < end_s and start_s - _SLACK_S < one.end_s:
            return one
    return None


def _named(key: str) -> str:
    return f"'{shortened(partition_name(key), _NAME_WIDTH)}'"


def moved_words(move: MovePart, name: str) -> str:
    return f"partition '{name}' moved, unavailable {move.offline_s:g} s"


def shown_gaps(record: RunRecord) -> list[GapPart]:
    """The outages that are long enough to report: moving a partition takes seconds."""
    return [gap for gap in record.throttling.gaps if gap.length_s >= SHOWN_GAP_S]


def throttling(record: RunRecord) -> list[tuple[str, str]]:
    """When throttling began, how long it lasted, moves and outages: names and texts."""
    part = record.throttling
    rows = []
    if part.first_s is not None:
        periods = f"in 1 period of {part.longest_s} s"
        if part.stretches != 1:
            periods = f"in {part.stretches:,} periods, the longest {part.longest_s} s"
        rows += [
            ("began", f"{part.first_s} s after the load began"),
            ("lasted", f"requests were throttled for {part.seconds:,} s, {periods}"),
        ]
    moves = record.enforced.moves if record.enforced is not None else ()
    for place, move in enumerate(moves[:_MOST_MOVES]):
        # Dots, because a text has no other sign that every terminal can show.
        name = shortened(partition_name(move.key), _NAME_WIDTH, ascii_only=True)
        text = f"{moved_words(move, name)}, from second {move.start_s:.0f} of the load"
        rows.append(("" if place else "moved", text))
    if (more := len(moves) - _MOST_MOVES) > 0:
        rows.append(("", f"and {counted(more, 'more move')}"))
    gaps = shown_gaps(record)
    for place, gap in enumerate(gaps[:_MOST_GAPS]):
        rows.append(("" if place else "outage", gap_words(gap)))
    if (more := len(gaps) - _MOST_GAPS) > 0:
        rows.append(("", f"and {counted(more, 'more outage')}"))
    return rows
