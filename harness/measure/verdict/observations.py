"""What was seen in a run, in short sentences with figures, which conclude nothing."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measure.evidence import Evidence, service_failures
from harness.measure.figures import agreed, counted, milliseconds, number, percent
from harness.measure.generator import BUSY_PERCENT
from harness.measure.snapshot import PartitionView, Snapshot, throttled_of
from harness.measure.throttling import Gap, Throttling
from harness.model.operation import over_partitions
from harness.model.outcome import Scope

SHOWN_GAP_S = 2
"""A gap of one second may be one operation that failed."""
_MOST_SHOWN = 3


def named(view: PartitionView) -> str:
    """How a sentence names a partition."""
    if over_partitions(view.key):
        return "queries over several partitions"
    return f"partition {view.key!r}"


def gap_words(gap: Gap) -> str:
    """A gap as a part of a sentence."""
    words = f"nothing succeeded for {gap.length_s} s from second {gap.start_s} on"
    if gap.recovered_s is None:
        return words + ", and the rate before it was not reached again"
    return words + f", and 90% of the rate before it was back after {gap.recovered_s} s"


def throttled_words(snapshot: Snapshot) -> str:
    """How many attempts were throttled, as a part of a sentence."""
    if snapshot.throttled == 0:
        return "nothing was throttled"
    throttled = counted(snapshot.throttled, "attempt")
    was = agreed(snapshot.throttled, "was", "were")
    return f"{throttled} {was} throttled ({percent(snapshot.throttled_ratio)})"


def all_wait(users: int) -> str:
    """That all users wait, as a part of a sentence."""
    return "the only user waits" if users == 1 else f"all of {users:,} users wait"


def _refused(snapshot: Snapshot) -> str:
    """How many attempts were throttled, up to the verb: ``10 of 210 attempts were``."""
    attempts = counted(snapshot.counts.attempts, "attempt")
    return f"{snapshot.throttled:,} of {attempts} {agreed(snapshot.throttled, 'was', 'were')}"


def sentences(evidence: Evidence, throttling: Throttling) -> tuple[str, ...]:
    """What was seen, a sentence with figures each."""
    lines = [
        *_rates(evidence),
        *_queries(evidence),
        *_throttled(evidence, throttling),
        *_failed(evidence.snapshot),
        *_latencies(evidence),
        *_generator(evidence),
    ]
    return tuple(line[0].upper() + line[1:] + "." for line in lines)


def _rates(evidence: Evidence) -> Iterator[str]:
    snapshot = evidence.snapshot
    if evidence.length_s > 0:
        yield _came_through(evidence)
    else:
        yield "no rate was measured, for the measured window did not open"
    hottest, targets = snapshot.hottest, evidence.targets
    if hottest is not None and targets is not None and evidence.length_s > 0:
        rate = hottest.entities_per_s.mean
        yield (
            f"{named(hottest)} took the most, {number(rate)} entities/s, "
            f"{percent(rate / targets.partition)} of its target"
        )
    if evidence.scheduled:
        due, dropped = snapshot.counts.due, snapshot.counts.dropped
        yield (
            f"of {counted(due, 'due operation')} {dropped:,} {agreed(dropped, 'was', 'were')} "
            f"dropped and {evidence.waiting:,} still waited at the end"
        )


def _came_through(evidence: Evidence) -> str:
    """The rate, beside what was wanted of it."""
    achieved, wanted = evidence.achieved_per_s, evidence.wanted_per_s
    rate = f"{number(achieved)} entities/s came through"
    if evidence.searched:
        return f"{rate} on average over the whole search, its failed steps included"
    if wanted is not None:
        held = percent(achieved / wanted)
        return f"{number(achieved)} of the wanted {number(wanted)} entities/s came through ({held})"
    return rate if evidence.scheduled else f"{rate}, as fast as answers came"


def _queries(evidence: Evidence) -> Iterator[str]:
    """What queries walked: it is not what they returned, nor always of one partition."""
    walked = evidence.walked
    if not walked.entities:
        return
    share = walked.entities / evidence.snapshot.counts.entities
    sentence = (
        f"queries walked {counted(walked.entities, 'entity', 'entities')}, {percent(share)} of all "
        f"that counted, and returned {walked.returned:,}"
    )
    if walked.uncertain:
        sentence += (
            f"; of {walked.uncertain:,} of {counted(walked.operations, 'query', 'queries')} only "
            "the least they can have walked is known"
        )
    yield sentence
    over = [view for view in evidence.snapshot.partitions if over_partitions(view.key)]
    if rate := sum(view.entities_per_s.mean for view in over):
        yield (
            f"queries over several partitions took {number(rate)} entities/s, which count for the "
            "account; how much of them each partition served is not known"
        )


def _throttled(evidence: Evidence, throttling: Throttling) -> Iterator[str]:
    snapshot = evidence.snapshot
    attempts = snapshot.counts.attempts
    if not snapshot.throttled:
        yield f"nothing was throttled in {counted(attempts, 'attempt')}"
    else:
        yield (
            f"{_refused(snapshot)} throttled ({percent(snapshot.throttled_ratio)}): "
            f"{throttled_of(snapshot.attempts, Scope.PARTITION):,} for a partition, "
            f"{throttled_of(snapshot.attempts, Scope.ACCOUNT):,} for the account"
        )
    most = evidence.most_throttled
    if most is not None and most.throttled:
        yield f"{named(most)} was refused {percent(most.throttled_ratio)} of its attempts"
    if throttling.first_s is not None:
        times = "once" if throttling.stretches == 1 else f"{throttling.stretches:,} times"
        yield (
            f"throttling first came {throttling.first_s} s into the load, began {times}, and "
            f"lasted {throttling.longest_s} s in a row at most"
        )
    shown = [gap for gap in throttling.gaps if gap.length_s >= SHOWN_GAP_S]
    for gap in shown[:_MOST_SHOWN]:
        yield gap_words(gap)
    if len(shown) > _MOST_SHOWN:
        yield f"there were {throttling.gap_count:,} such gaps"


def _failed(snapshot: Snapshot) -> Iterator[str]:
    failed = service_failures(snapshot)
    if failed:
        heaviest = sorted(failed.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{count:,} {outcome}" for outcome, count in heaviest)
        operations = sum(snapshot.outcomes.values())
        total = counted(operations, "operation")
        yield f"{sum(failed.values()):,} of {total} failed: {listed}"


def _latencies(evidence: Evidence) -> Iterator[str]:
    service, response = evidence.snapshot.service, evidence.snapshot.response
    latency_s = evidence.latency_s
    if service is None or latency_s is None or evidence.length_s <= 0:
        return
    words = f"service latency was {_ms(service.p50_s)} at the median, {_ms(service.p99_s)} at p99"
    if response is not None:
        words += f"; response latency {_ms(response.p99_s)} at p99"
    yield words
    if evidence.light_latency_s is not None and evidence.growth is not None:
        yield (
            f"its mean of {_ms(latency_s)} is {evidence.growth:,.1f} times the "
            f"{_ms(evidence.light_latency_s)} under little load"
        )
    rate = service.count / evidence.length_s
    yield (
        f"{number(rate)} operations/s x {_ms(latency_s)} = {evidence.on_the_way:,.1f} of "
        f"{counted(evidence.users, 'user')} waiting for an answer (Little's law)"
    )


def _ms(seconds: float) -> str:
    return f"{milliseconds(seconds * 1000)} ms"


def _generator(evidence: Evidence) -> Iterator[str]:
    generator = evidence.generator
    if evidence.connections is not None and evidence.connections_in_use is not None:
        most = evidence.connections_in_use
        yield (
            f"at most {most:,} of {counted(evidence.connections, 'connection')} "
            f"{agreed(most, 'was', 'were')} in use"
        )
    if not generator.cpu_percents:
        yield "the generator's CPU is not known"
        return
    each = ", ".join(f"{mean:.0f}%" for mean in generator.cpu_percents[:_MOST_SHOWN])
    if len(generator.cpu_percents) > _MOST_SHOWN:
        each += f" and at most {generator.cpu_percents[_MOST_SHOWN]:.0f}% each by the others"
    yield (
        f"CPU of a core by worker: {each} on average, {generator.cpu_percent_max:.0f}% at most, "
        f"{BUSY_PERCENT:.0f}% or more in {generator.busy_share:.0%} of the seconds"
    )
    yield (
        f"the machine was {generator.machine_percent_max:.0f}% busy at most, without time left in "
        f"{generator.machine_busy_share:.0%} of the seconds"
    )
    yield f"operations left at most {generator.lag_s_max * 1000:,.0f} ms after their turn"
