"""A replay held against its recording, partition by partition."""

from __future__ import annotations

from harness.measure.record.origin import LeftOut, ReplayPart
from harness.measure.record.record import RunRecord
from harness.report.compare.replayed import replay_sentences
from tests.support.records import altered, kept, subjects


def replay_of(record: RunRecord, **fields: object) -> RunRecord:
    part = ReplayPart(trace="app.parquet", run_id=record.run_id)
    return altered(record, run_id="replay", replay=part.model_copy(update=fields))


def said(one: RunRecord, other: RunRecord) -> list[str]:
    return list(replay_sentences(subjects(one, other)))


def with_entities(record: RunRecord, table: str, more: int) -> RunRecord:
    """The record with another table, and more entities in its first partition."""
    parts = [altered(part, key=f"{table}{part.key}") for part in record.partitions]
    first = parts[0]
    parts[0] = altered(first, entities=first.entities + more)
    return altered(record, partitions=tuple(parts))


def test_equal_partitions_are_said_in_one_sentence() -> None:
    """The name of the only table does not matter."""
    original = kept()
    number = sum(1 for part in original.partitions if part.entities)
    (sentence,) = said(original, with_entities(replay_of(original), "Orders/", 0))
    assert sentence.startswith("B replays A: the same entities in each of ")
    assert f"{number} partition" in sentence
    assert sentence.endswith("exactly.")


def test_partitions_that_differ_are_listed() -> None:
    """With both counts, and what may explain the difference."""
    original = kept()
    left_out = (LeftOut(reason="why not", operations=3),)
    replay = with_entities(replay_of(original, left_out=left_out), "", 7)
    sentences = said(original, replay)
    first = original.partitions[0]
    assert f"{first.entities:,} in A, {first.entities + 7:,} in B" in sentences[0]
    assert sentences[0].startswith("B replays A: 1 of ")
    assert "B: 3 operations of the trace left out: why not." in sentences


def test_counts_that_are_those_of_the_recording_are_not_called_exact() -> None:
    """No answer shows how many entities a filter read, so that equal counts prove nothing."""
    original = kept()
    same, assumed = said(original, replay_of(original, assumed=2, assumed_entities=50))
    assert same.endswith(").")
    assert assumed.startswith("B: 2 queries with a filter count as many entities as in the rec")
    assert "(50)" in assumed


def test_a_replay_that_ended_early_explains_the_difference() -> None:
    """It is said how many operations of the trace were due."""
    original = kept()
    due = original.counts.due
    replay = with_entities(replay_of(original, operations=due + 5), "", -1)
    assert (
        f"B ended ({replay.ended_by}) before the end of the trace: {due:,} of {due + 5:,} "
        "operations were due."
    ) in said(original, replay)
    assert not any("ended" in one for one in said(original, replay_of(original, operations=due)))


def test_what_cannot_be_compared_is_said() -> None:
    """Other keys, aliases, and the record of something else; other runs are not mentioned."""
    original = kept()
    assert said(original, original) == []
    assert "under other keys (by-ten)" in said(original, replay_of(original, keys="by-ten"))[0]
    redacted = altered(replay_of(original), redacted=True)
    assert "their keys are aliases" in said(original, redacted)[0]
    (other, *_) = said(original, replay_of(original, run_id="another"))
    assert other.startswith("B replays another, which is not A")
