"""The course of throttling, read off hand-made series: first second, stretches, gaps, recovery."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import CountedPartition, SeriesPoint, partition_part
from harness.measure.counts.tally import PartitionTally
from harness.measure.record.findings import GapPart, ThrottlingPart
from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.measure.verdict.observations import gap_words, stall_words
from harness.measure.verdict.throttling import MOST_GAPS, throttling_of
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome
from harness.model.services.service import ENTITIES
from harness.report.headline import headline
from tests.support.evidence import evidence, generator, recorded, snapshot_of
from tests.support.records import altered
from tests.support.results import done

START = 1_700_000_000


def series(seconds: str) -> list[SeriesPoint]:
    """A second a letter.

    s: all succeeds; t: a part is throttled; x: all is throttled; f: all fails otherwise; n: a
    look-up that finds nothing; e: a query that succeeds with nothing; d: a delete of what is not
    there; h: half of the rate; a blank: nothing is attempted.
    """
    points = []
    for place, letter in enumerate(seconds):
        entities = {"s": 100, "t": 95, "h": 50, "n": 1}.get(letter, 0)
        throttled = {"t": 5, "x": 20}.get(letter, 0)
        points.append(
            SeriesPoint(
                second=START + place,
                entities=entities,
                operations=0 if letter == " " else 10,
                unsuccessful=10 if letter in "xfnd" else 0,
                unchanged=10 if letter == "d" else 0,
                attempts=0 if letter == " " else 20,
                throttled_by_status={503: throttled, 500: 0, 504: 0, 429: 0},
            )
        )
    return points


@pytest.mark.parametrize(
    ("seconds", "first_s", "throttled_s", "stretches", "longest_s"),
    [
        # Nothing throttled, nothing to tell.
        ("ssss", None, 0, 0, 0),
        ("", None, 0, 0, 0),
        # From the first second to the last.
        ("tttt", 0, 4, 1, 4),
        # Two stretches; the longer one counts.
        ("sstttsts", 2, 4, 2, 3),
        # Where everybody backs off, a stretch goes on; blanks after it do not belong to it.
        ("st  ts", 1, 2, 1, 4),
        ("st  s", 1, 1, 1, 1),
        # Failures of another sort end a stretch.
        ("stfts", 1, 2, 2, 1),
    ],
)
def test_stretches(
    seconds: str, first_s: int | None, throttled_s: int, stretches: int, longest_s: int
) -> None:
    """When throttling first came, in how many seconds, how often it began, and how long it was."""
    found = throttling_of(series(seconds))
    assert (found.first_s, found.seconds, found.stretches, found.longest_s) == (
        first_s,
        throttled_s,
        stretches,
        longest_s,
    )


@pytest.mark.parametrize(
    ("seconds", "gaps"),
    [
        # Throttled, but something succeeds in every second.
        ("sttts", []),
        # A partition that is moved: nothing for three seconds, then all as before.
        ("sssxxxss", [(3, 3, 3)]),
        # Half of the rate is no recovery; a second later it is there.
        ("sssxxhs", [(3, 2, 3)]),
        # It never comes back.
        ("sssxxhh", [(3, 2, None)]),
        ("sssxx", [(3, 2, None)]),
        # Other failures make a gap too, and so does waiting between them.
        ("ssf x ss", [(2, 4, 4)]),
        # Seconds without attempts are no gap, and do not begin one.
        ("ss   ss", []),
        ("ss  xss", [(4, 1, 1)]),
        # After the last attempt nobody waits any more.
        ("ssxx   ", [(2, 2, None)]),
        # Nothing was there before it, so that nothing can be reached again.
        ("xxss", [(0, 2, None)]),
        # Look-ups, queries and deletes that find nothing were answered.
        ("ssnnss", []),
        ("ssddss", []),
        ("sseess", []),
        # Two gaps.
        ("ssxsssfs", [(2, 1, 1), (6, 1, 1)]),
    ],
)
def test_gaps(seconds: str, gaps: list[tuple[int, int, int | None]]) -> None:
    """Where nothing succeeded: start, length, and seconds until 90 % of the rate was back."""
    found = throttling_of(series(seconds))
    assert [(gap.start_s, gap.length_s, gap.recovered_s) for gap in found.gaps] == gaps
    assert found.gap_count == len(gaps)


@pytest.mark.parametrize(("entities", "recovered_s"), [(89, None), (90, 1), (91, 1)])
def test_nine_tenths_of_the_rate_are_recovered(entities: int, recovered_s: int | None) -> None:
    """The rate before is the mean of five seconds; from 90 % of it on it counts as reached."""
    points = series("hsssssxs")
    points[-1] = dataclasses.replace(points[-1], entities=entities)
    [gap] = throttling_of(points).gaps
    assert gap == GapPart(start_s=6, length_s=1, recovered_s=recovered_s)


def test_the_last_retries_are_no_gap() -> None:
    """When nothing new is sent any more, what still fails says nothing of the endpoint."""
    points = series("ssssxx")
    assert throttling_of(points, end=START + 4) == ThrottlingPart()
    assert throttling_of(points, end=START) == ThrottlingPart()
    assert throttling_of(points).gap_count == 1


def waiting(seconds: str, users: str) -> list[SeriesPoint]:
    """`series` with a digit a second: how many operations were throttled and go on."""
    return [
        dataclasses.replace(point, retrying=int(count))
        for point, count in zip(series(seconds), users, strict=True)
    ]


def partition(key: str, retrying: dict[int, int]) -> CountedPartition:
    return altered(
        partition_part(key, PartitionTally(), start=0, end=0, exact=True),
        retrying={START + place: count for place, count in retrying.items()},
    )


def test_a_stall_names_the_partitions_that_users_waited_for() -> None:
    """Others still succeed now and then; who waits for whom is read in the worst second."""
    points = waiting("ssstxnxss", "000268900")
    hot = partition("hot", {4: 6, 5: 5, 6: 8})
    other = partition("other", {6: 1})
    [stall] = throttling_of(points, [other, partition("idle", {}), hot]).stalls
    assert (stall.start_s, stall.length_s) == (4, 3)
    assert (stall.waited, stall.keys) == (9, (("hot", 8), ("other", 1)))
    assert stall.before_per_s == (3 * 100 + 95) / 4
    assert stall_words(stall, 10, ENTITIES).endswith(
        "from second 4 of the load, while 9 of 10 users waited for throttled partitions, "
        "8 of them for 'hot'"
    )


@pytest.mark.parametrize(
    ("seconds", "users"),
    [
        ("sssxss", "000900"),  # A second is too short.
        ("sssffss", "0000000"),  # Failures of another kind.
        ("sssttss", "0008800"),  # Throttled, but nearly all succeed.
        ("sssxxss", "0000000"),  # Nobody goes on after throttling.
        ("xxss", "9900"),  # There was no rate before.
    ],
)
def test_what_is_no_stall(seconds: str, users: str) -> None:
    """A stall is throttled, lasts, and keeps operations waiting."""
    assert throttling_of(waiting(seconds, users)).stalls == ()


@pytest.mark.parametrize("status", [503, 500, 504, 429])
def test_each_throttling_answer_counts(status: int) -> None:
    """503, 500, 504 and 429 are throttling alike."""
    points = series("sss")
    points[1] = dataclasses.replace(points[1], throttled_by_status={status: 1})
    assert throttling_of(points).first_s == 1


def test_only_the_longest_gaps_are_kept() -> None:
    """A run that is torn again and again has a bounded list, in order of time, and the count."""
    lengths = [1 + number % 7 for number in range(100)]
    found = throttling_of(series("".join("s" + "x" * length for length in lengths)))
    assert found.gap_count == 100
    assert len(found.gaps) == MOST_GAPS
    assert {gap.length_s for gap in found.gaps} == {6, 7}
    assert [gap.start_s for gap in found.gaps] == sorted(gap.start_s for gap in found.gaps)
    assert found.longest_gap == next(gap for gap in found.gaps if gap.length_s == 7)


def test_what_never_began_is_not_said_to_be_lost() -> None:
    """A rate that was not there before an outage cannot be reached again."""
    assert gap_words(GapPart(start_s=0, length_s=8, recovered_s=None)).endswith(" of the load")
    assert gap_words(GapPart(start_s=1, length_s=7, recovered_s=None)).endswith("reached again")


@given(st.text("stxfneh ", max_size=60))
def test_seconds_belong_together(seconds: str) -> None:
    """Stretches and gaps lie within the load, do not overlap, and miss no throttled second."""
    found = throttling_of(series(seconds))
    throttled = sum(letter in "tx" for letter in seconds)
    assert found.seconds == throttled
    assert (found.first_s is None) == (throttled == 0)
    assert found.stretches <= throttled
    assert min(1, throttled) <= found.longest_s <= len(seconds)
    free = 0
    for gap in found.gaps:
        assert gap.start_s >= free
        assert gap.length_s >= 1
        inside = seconds[gap.start_s : gap.start_s + gap.length_s]
        assert inside[0] in "xf"
        assert set(inside) <= set("xf ")
        free = gap.start_s + gap.length_s
        assert free <= len(seconds)
        if gap.recovered_s is not None:
            assert gap.length_s <= gap.recovered_s < len(seconds) - gap.start_s
    if found.gap_count <= MOST_GAPS:
        outside = seconds
        for gap in reversed(found.gaps):
            outside = outside[: gap.start_s] + outside[gap.start_s + gap.length_s :]
        assert not set(outside) & set("xf")


def test_only_a_busy_generator_could_send_hardly_more() -> None:
    """Beside other processes that keep the machine busy, what more could be sent is unknown."""
    of_others = MachineLoadPart(
        name="vm",
        cores=2,
        workers=1,
        busy_share=1.0,
        cpu_percent=200.0,
        workers_percent=20.0,
        harness_percent=0.0,
    )
    made = CapacityPart(
        session="sdk", operations_per_cpu_s=1000, entities_per_cpu_s=1000, machines=(of_others,)
    )
    beside = generator(machine_busy_share=1.0, capacity=made)
    for used, said in ((generator(busy_share=0.5), True), (beside, False)):
        throttled = evidence(snapshot_of({"p0": 1000}, throttled_per_s=1), generator=used)
        notes = recorded(throttled).verdict.footnote
        assert "upper bounds" in notes
        assert ("hardly more could be sent" in notes) == said


def test_writes_that_change_nothing_are_load_that_was_served() -> None:
    """Deletes of absent rows were sent as often as was asked: neither users nor endpoint lacked."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    gone = Attempt(status=404, error_code="ResourceNotFound", sent_s=START, latency_s=0.004)
    for number in range(1000):
        delete = Operation(kind=Kind.DELETE, partition_key="p0")
        at_s = START + number / 100
        result = done(delete, at_s, 0.004, attempts=(gone,), outcome=Outcome.NOT_FOUND, entities=0)
        ledger.add(result)
    snapshot = ledger.snapshot(start=START, end=START + 10)
    busy = generator(machine_busy_share=1.0)
    record = recorded(evidence(snapshot, wanted_per_s=100.0, generator=busy))
    assert (record.verdict.result, record.verdict.limited_by) == ("within_target", "load")
    assert record.throttling.gaps == ()


@pytest.mark.parametrize(
    ("per_s", "busy_share", "limited_by"),
    [(1990, 0.5, "partition"), (1200, 0.0, "partition"), (1200, 0.5, "generator")],
)
def test_a_partition_below_its_limit_is_not_the_main_one(
    per_s: int, busy_share: float, limited_by: str
) -> None:
    """Refused in bursts, it would serve more, and the generator had no time to send more."""
    used = generator(busy_share=busy_share)
    record = recorded(evidence(snapshot_of({"p0": per_s}, throttled_per_s=5), generator=used))
    assert (record.verdict.result, record.verdict.limited_by) == ("throttled", limited_by)
    assert headline(record).startswith("Partition 'p0' was throttled")


def test_the_lateness_of_a_record_has_the_digits_that_are_shown() -> None:
    """Of 7.79 ms the reports said 8.00 ms."""
    kept = recorded(evidence(snapshot_of({"p0": 100}), generator=generator(lag_s_max=0.00779)))
    assert kept.generator.lag_s_max == 0.00779
