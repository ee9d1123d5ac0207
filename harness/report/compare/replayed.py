"""A replay compared with what was replayed: the entities of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.measure.record.origin import ReplayPart
from harness.measure.record.record import RunRecord
from harness.model.figures import agreed, counted, listed
from harness.model.partition import Partition
from harness.report.compare.differences import Recording, Subject
from harness.report.names import partition_name

_MOST_LISTED = 5
_ENTITIES, _OPERATIONS = "entities", "operations"


def replay_sentences(subjects: Sequence[Subject]) -> Iterator[str]:
    """Whether each replay has the entities of the first subject; of repeats, of their first."""
    first, *others = subjects
    for other in others:
        part = other.records[0].replay
        if part is not None and first.records[0].replay is None:
            yield from _sentences(first, other, part)


def _sentences(one: Subject, other: Subject, part: ReplayPart) -> Iterator[str]:
    first, original, recording = one.name, one.records[0], one.recording
    replay, record = other.name, other.records[0]
    lead = f"{replay} replays {first}"
    if _another(original, recording, part):
        lead = f"{replay} replays {part.run_id or part.trace}, which is not {first}"
    if part.keys:
        yield f"{lead} under other keys ({part.keys}): partitions are not compared."
        return
    if original.redacted != record.redacted or (original.redacted and record.redacted):
        yield f"{lead}: partitions are not compared, because their keys are aliases."
        return
    recorded: Mapping[str, int] = _counts(original, _ENTITIES)
    if recording is not None and recording.entities is not None:
        recorded = recording.entities
    before, after = _named(recorded, _counts(record, _ENTITIES))
    folded = any(one.partitions_folded is not None for one in (original, record))
    names = sorted(before.keys() & after.keys() if folded else {*before, *after})
    of = "that both count one by one " if folded else ""
    apart = [name for name in names if before.get(name, 0) != after.get(name, 0)]
    if not apart:
        yield (
            f"{lead}: the same entities in each of {counted(len(names), 'partition')} {of}"
            f"({sum(after[name] for name in names):,}){'' if part.assumed else ', exactly'}."
        )
    else:
        shown = [
            f"{partition_name(name)!r} ({before.get(name, 0):,} in {first}, "
            f"{after.get(name, 0):,} in {replay})"
            for name in apart[:_MOST_LISTED]
        ]
        if (more := len(apart) - _MOST_LISTED) > 0:
            shown.append(f"{more:,} more")
        yield (
            f"{lead}: {len(apart):,} of {counted(len(names), 'partition')} {of}"
            f"{agreed(len(apart), 'has', 'have')} other entities: {listed(shown)}."
        )
        yield from _reasons(one, other, part, names)
    if folded:
        all_before, all_after = original.counts.entities, record.counts.entities
        yield (
            f"All partitions together have {all_before:,} entities in {first}, {all_after:,} in "
            f"{replay}."
        )
    yield from (f"{replay}: {sentence}" for sentence in part.sentences())


def _another(original: RunRecord, recording: Recording | None, part: ReplayPart) -> bool:
    """Whether the original is not what was replayed.

    A log and the trace that was made of it are different files, without a record.
    """
    if recording is not None and recording.fingerprint == part.fingerprint:
        return False
    if part.run_id:
        return part.run_id != original.run_id
    return recording is not None and recording.fingerprint != part.fingerprint


def _reasons(one: Subject, other: Subject, part: ReplayPart, names: Sequence[str]) -> Iterator[str]:
    """What explains that partitions have other entities."""
    (first, original), (replay, record) = ((run.name, run.records[0]) for run in (one, other))
    if estimated := original.counts.entities_estimated:
        before, after = _named(_counts(original, _OPERATIONS), _counts(record, _OPERATIONS))
        same = sum(before.get(name, 0) == after.get(name, 0) for name in names)
        yield (
            f"{counted(estimated, 'entity', 'entities')} of {first} "
            f"{agreed(estimated, 'is', 'are')} a lower bound, because how many a query scanned is "
            f"not known. {same:,} of these partitions have the same number of operations."
        )
    if (due := record.counts.due) < part.operations:
        yield (
            f"{replay} ended ({record.ended_by}) before the end of the trace: {due:,} of "
            f"{counted(part.operations, 'operation')} were due."
        )
    unsent = record.counts.waiting + record.counts.dropped + record.counts.in_flight
    if unsent:
        were = agreed(unsent, "was", "were")
        yield f"{replay} did not finish {counted(unsent, 'operation')} that {were} due."
    for name, run in ((first, original), (replay, record)):
        if throttled := sum(run.throttled.values()):
            were = agreed(throttled, "was", "were")
            yield f"{counted(throttled, 'attempt')} of {name} {were} throttled."


def _counts(record: RunRecord, of: str) -> dict[str, int]:
    """A count of each partition that was counted from the start."""
    return {part.key: getattr(part, of) for part in record.partitions if part.exact}


def _named(*each: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The counts that are not 0; without the table if none of them has several."""
    tables = [{Partition.named(name).table for name in counts} for counts in each]
    several = any(len(names) > 1 for names in tables)
    for counts in each:
        yield {
            name if several else Partition.named(name).key: count
            for name, count in counts.items()
            if count
        }
