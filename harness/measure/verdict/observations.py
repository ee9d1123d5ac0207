"""The evidence of a verdict in sentences: figures without conclusions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.counts.snapshot import (
    CountedAccount,
    Snapshot,
    attempts_by_status,
    page_words,
)
from harness.measure.record.findings import GapPart, SilencesPart, StallPart
from harness.measure.record.measured import CapacityPart
from harness.measure.verdict.evidence import Evidence, best_over, named, of_one_partition
from harness.measure.verdict.failures import MIXED_FROM, failed_share
from harness.measure.verdict.request_units import unit_sentences
from harness.model.figures import (
    agreed,
    counted,
    listed,
    milliseconds,
    number,
    of_core,
    per_operation,
    percent,
    some,
)
from harness.model.outcome import REGULAR_STATUSES, Fault, Outcome, Scope, throttled_of
from harness.model.partition import Partition
from harness.model.services.service import CountedUnit

SHOWN_GAP_S = 2
"""A shorter gap may be a single operation that failed."""
SUDDEN_S = 30
"""Throttling before this second meets a table that the service had no time to balance."""
MANY_FROM = 0.1
"""Share of an operation's regular answers, such as 409, from which they are named."""
_MOST_SHOWN = 3


Topic = Callable[[Evidence], Iterator[str]]
"""Sentences about one topic, each without its full stop."""


def attempts_answered(snapshot: Snapshot, status: int, *codes: str) -> int:
    """Attempts with this status, and with one of these error codes if there are any."""
    return sum(
        count
        for (answer, code, _), count in snapshot.attempts.items()
        if answer == status and (not codes or code in codes)
    )


# These functions return parts of sentences.


def gap_words(gap: GapPart) -> str:
    words = f"no operation succeeded for {gap.length_s} s, from second {gap.start_s} of the load"
    if gap.recovered_s is not None:
        return words + f", and 90% of the earlier rate was back after {gap.recovered_s} s"
    return words + (", and the earlier rate was not reached again" if gap.start_s else "")


def stall_words(stall: StallPart, users: int, unit: CountedUnit) -> str:
    return (
        f"the rate fell from {number(stall.before_per_s)} to {number(stall.rate_per_s)} "
        f"{unit.rate} for {stall.length_s} s, from second {stall.start_s} of the load, while "
        f"{waited_words(stall, users)}"
    )


def silence_words(silences: SilencesPart) -> str:
    """How often an endpoint did not answer, and for how long, as a part of a sentence."""
    longest = f"{round(silences.longest_s, 1):g} s"
    if silences.count == 1:
        return f"the endpoint did not answer for {longest}, although requests were waiting"
    return (
        f"the endpoint did not answer {silences.count:,} times, for up to {longest}, although "
        "requests were waiting"
    )


def waited_words(
    stall: StallPart, users: int, written: Callable[[str], str] = repr, said: str = ""
) -> str:
    """How many users waited in a stall, and for which partition most of them.

    ``written`` writes a key; ``said`` is the one that the sentence has named already.
    """
    who = f"{stall.waited:,} of {counted(users, 'user')} waited"
    if stall.waited > users:
        # Tasks of a user class may run several at once.
        who = f"{counted(stall.waited, 'operation')} waited"
    if not stall.keys:
        return f"{who} for throttled partitions"
    key, count = stall.keys[0]
    most = "" if count >= stall.waited else f", {count:,} of them"
    if Partition.named(key).whole_table:
        return f"{who}{most} for queries over several partitions"
    if most:
        return f"{who} for throttled partitions{most} for {written(key)}"
    return f"{who} for {'it' if key == said else f'partition {written(key)}'}"


def throttled_words(snapshot: Snapshot) -> str:
    if snapshot.throttled == 0:
        return "nothing was throttled"
    was = f"{counted(snapshot.throttled, 'attempt')} {agreed(snapshot.throttled, 'was', 'were')}"
    return f"{was} throttled ({percent(snapshot.throttled_ratio)})"


def throttling_words(evidence: Evidence) -> str:
    throttling, snapshot = evidence.throttling, evidence.snapshot
    throttled = [point.second for point in snapshot.series if point.throttled]
    before = ", before the measured window" if throttled[-1] < snapshot.start else ""
    if throttling.stretches == 1:
        return (
            f"requests were throttled for {throttling.longest_s} s, from second "
            f"{throttling.first_s} of the load{before}"
        )
    return (
        f"requests were throttled in {throttling.stretches:,} periods of up to "
        f"{throttling.longest_s} s, the first from second {throttling.first_s} of the load{before}"
    )


def likely_words(evidence: Evidence) -> str:
    """What may throttle partitions far below their target; empty where the run shows no cause."""
    if evidence.kind.models_targets and evidence.enforced is None:
        return "; the limits that the gateway enforces are not known"
    if evidence.enforced is not None:
        refused = evidence.enforced.refused_words or "none by a limit"
        return f"; the gateway refused {refused}: the rest are faults, or come from behind it"
    if not evidence.kind.throttles:
        return (
            "; an emulator throttles nothing, and the limits of what is in front of it are unknown"
        )
    causes = [f"scans of many {evidence.unit.many}"] if evidence.queries_are_most else []
    each = [part.throttled for part in evidence.snapshot.single_partitions]
    if len(each) > 1 and not of_one_partition(each, evidence.snapshot.throttled):
        causes.append("busy neighbouring key ranges on one server")
    # A service that balances a table after a sudden rise throttles once, and then no more.
    course, length_s = evidence.throttling, evidence.snapshot.end - evidence.snapshot.start
    begins_s = length_s if course.first_s is None else course.first_s
    if begins_s <= SUDDEN_S and course.stretches == 1 and begins_s + course.longest_s < length_s:
        causes.append("a load that rose faster than the service could balance the table")
    if not causes:
        return ""
    return f"; {agreed(len(causes), 'a possible cause is', 'possible causes are')} {listed(causes)}"


def waiting_words(evidence: Evidence) -> str:
    """How many users wait on average, and for what."""
    # An operation that began before the window counts with all its latency.
    waits = {what: min(users, evidence.users) for what, users in evidence.waits.items()}
    words = [f"{number(users)} {for_what}" for for_what, users in waits.items()]
    words[0] = words[0].replace(" ", f" of {counted(evidence.users, 'user')} waited ", 1)
    return listed(words)


def all_wait(evidence: Evidence) -> str:
    """That users could not send more, all the time or in a stage of the load."""
    if not evidence.users_are_busy:
        when = f"in {evidence.behind_s} of {evidence.length_s} s"
        return f"{when} operations were due that waited for answers to earlier ones"
    users = evidence.users
    who = "the only user was" if users == 1 else f"all {users:,} users were"
    return f"{who} waiting for answers"


def sentences(evidence: Evidence, first: Container[Topic] = ()) -> tuple[str, ...]:
    """What was measured, a sentence with figures each; those about the topics ``first`` first."""
    topics = sorted(_TOPICS, key=lambda topic: topic not in first)
    lines = [line for topic in topics for line in topic(evidence)]
    return tuple(line[0].upper() + line[1:] + "." for line in lines)


def of_rate(evidence: Evidence) -> Iterator[str]:
    if evidence.length_s > 0:
        yield _rate(evidence)
    else:
        yield "no rate was measured because the measured window did not open"


def _shares(evidence: Evidence) -> Iterator[str]:
    snapshot = evidence.snapshot
    hottest = evidence.busiest
    targets = None if hottest is None else hottest.partition.held_to(evidence.targets)
    if hottest is not None and targets is not None and evidence.length_s > 0:
        rate = evidence.rate(hottest.entities_per_s)
        # A gateway may throttle at a fraction of it.
        word = targets.word("partition")
        published = evidence.kind.models_targets and word == "target"
        of = "the published target" if published else f"its {word}"
        yield (
            f"{named(hottest)} was the busiest: "
            f"{evidence.judged_words(hottest.entities_per_s, hottest)}, "
            f"{evidence.share_words(rate, targets.partition, hottest)} of {of}"
        )
    if evidence.length_s > 0:
        yield from _accounts(evidence)
    if evidence.scheduled:
        due, dropped = snapshot.counts.due, snapshot.counts.dropped
        yield (
            f"{dropped:,} of {counted(due, 'due operation')} {agreed(dropped, 'was', 'were')} "
            f"dropped; {evidence.waiting:,} {agreed(evidence.waiting, 'was', 'were')} still "
            "waiting at the end"
        )


def _accounts(evidence: Evidence) -> Iterator[str]:
    """The rates of the busiest and of the least busy of several accounts."""
    accounts, targets = evidence.snapshot.accounts, evidence.targets
    if not accounts:
        return
    rated = sorted(accounts, key=lambda part: -evidence.rate(part.entities_per_s))
    words = []
    for part, rank in ((rated[0], f"busiest of {len(accounts)}"), (rated[-1], "least busy")):
        rate = evidence.rate(part.entities_per_s)
        of = ""
        if targets is not None and targets.of_account is not None:
            share = evidence.share_words(rate, targets.account)
            of = f", {share} of its {targets.word('account')}"
        reached = evidence.judged_words(part.entities_per_s)
        words.append(f"account {part.name} was the {rank}: {reached}{of}")
    yield "; ".join(words)


def _rate(evidence: Evidence) -> str:
    achieved, wanted = evidence.achieved_per_s, evidence.wanted_per_s
    snapshot = evidence.snapshot
    rate = f"the mean rate was {evidence.rate_words(achieved)}"
    if evidence.watched is not None:
        best = f"{evidence.at_least()}{number(snapshot.entities_per_s.best_10s)}"
        best += f" in the {best_over(evidence.length_s)}"
        no_more = "" if evidence.waits_for_answers else ": the application asked for no more"
        return f"{rate}, {best}{no_more}"
    if evidence.searched:
        return f"{rate} over all steps of the search"
    if wanted is not None:
        held = evidence.share_words(achieved, wanted)
        return f"{rate}, {held} of the wanted {number(wanted)}"
    waited = evidence.users_are_busy and evidence.client_limit is None
    return f"{rate}, limited only by how fast answers came" if waited else rate


def _queries(evidence: Evidence) -> Iterator[str]:
    queries, unit = evidence.queries, evidence.unit
    if not (scanned := sum(part.entities for part in queries)):
        return
    share = percent(scanned / evidence.snapshot.counts.entities)
    sentence = (
        f"queries scanned {unit.counted(scanned)}, {share} of all counted {unit.many}, and "
        f"returned {sum(part.entities_returned for part in queries):,}"
    )
    if uncertain := sum(part.uncertain for part in queries):
        of = counted(sum(part.count for part in queries), "query", "queries")
        sentence += f"; for {uncertain:,} of {of} this is a lower bound"
    yield sentence
    if wanted := sum(part.entities_wanted for part in queries):
        missed = sum(part.entities_missed for part in queries)
        yield (
            f"queries by key bounds missed {missed:,} of {unit.counted(wanted)} that they asked "
            f"for ({percent(missed / wanted)})"
        )
    over = [part for part in evidence.snapshot.partitions if part.partition.whole_table]
    if rate := sum(part.entities_per_s.mean for part in over):
        yield (
            f"queries over several partitions scanned {evidence.rate_words(rate, over[0])}, which "
            "count for the account; the share of each partition is unknown"
        )


def of_attempts(evidence: Evidence) -> Iterator[str]:
    snapshot = evidence.snapshot
    attempts = counted(snapshot.counts.attempts, "attempt")
    if not snapshot.throttled:
        yield f"none of {attempts} was throttled" if snapshot.attempts else "nothing was sent"
    else:
        yield (
            f"{snapshot.throttled:,} of {attempts} {agreed(snapshot.throttled, 'was', 'were')} "
            f"throttled ({percent(snapshot.throttled_ratio)}){_scopes(evidence)}"
        )


def _throttled(evidence: Evidence) -> Iterator[str]:
    snapshot, throttling = evidence.snapshot, evidence.throttling
    for part in snapshot.accounts:
        if throttled := part.throttled(Scope.ACCOUNT):
            requests = counted(sum(part.attempts.values()), "attempt")
            yield f"account {part.name} throttled {throttled:,} of {requests} by its own limit"
    whose = max(snapshot.accounts, key=CountedAccount.throttled, default=None)
    if whose is not None and snapshot.throttled and not whose.throttled(Scope.ACCOUNT):
        by = f"{whose.throttled():,} of {snapshot.throttled:,} throttled attempts"
        yield f"account {whose.name} answered {by}"
    if (most := evidence.most_throttled) is not None and most.throttled:
        tries = most.attempts_per_operation
        pages = page_words(attempts_by_status(most.attempts), most.operations)
        pages *= bool(evidence.queries)
        each = (
            "" if tries is None else f", with {per_operation(tries)} attempts per operation{pages}"
        )
        yield f"{named(most)}: {percent(most.throttled_ratio)} of the attempts were throttled{each}"
    if cut := snapshot.counts.waits_cut:
        yield (
            f"the service asked {counted(cut, 'time')} for a longer wait than retry.maximum_s "
            "(Retry-After); each of these waits was cut to retry.maximum_s"
        )
    if throttling.first_s is not None:
        yield throttling_words(evidence)
    shown = [gap for gap in throttling.gaps if gap.length_s >= SHOWN_GAP_S]
    for gap in shown[:_MOST_SHOWN]:
        yield gap_words(gap)
    if len(shown) > _MOST_SHOWN:
        yield f"there were {throttling.gap_count:,} such interruptions"
    waits = [stall for stall in throttling.stalls if stall.waited]
    for stall in waits[:_MOST_SHOWN]:
        yield stall_words(stall, evidence.users, evidence.unit)
    if (silences := throttling.silences) is not None:
        share = percent(silences.total_s / evidence.length_s)
        yield (
            f"{silence_words(silences)}: {share} of the time, the longest from second "
            f"{silences.longest_at_s:.0f} of the load"
        )


def _timed_out(evidence: Evidence) -> Iterator[str]:
    """Time-outs whose origin is uncertain."""
    if unnamed := attempts_answered(evidence.snapshot, 504, ""):
        yield (
            f"{counted(unnamed, 'answer')} 504 had no error code of the service: a proxy on the "
            "way may have answered them"
        )
    if unanswered := attempts_answered(evidence.snapshot, 0, Fault.READ_TIMEOUT):
        why = f"{counted(unanswered, 'attempt')} had no answer within the client's time-out"
        if evidence.watched is not None:
            why = f"the application left {counted(unanswered, 'attempt')} before the whole answer"
        yield f"{why}, which counts as a failure and not as throttling: the cause is unknown"


def _scopes(evidence: Evidence) -> str:
    """Throttled attempts by scope, which Cosmos DB does not tell."""
    if evidence.kind.charges:
        return ""
    attempts, enforced = evidence.snapshot.attempts, evidence.enforced
    if enforced is not None and enforced.refused_words:
        return f": the gateway refused {enforced.refused_words}"
    return f": {some(throttled_of(attempts, Scope.ACCOUNT))} of them by the account's limit"


def _failed(evidence: Evidence) -> Iterator[str]:
    """Failed attempts and operations, and regular answers that are many."""
    failures, snapshot = evidence.failures, evidence.snapshot
    if failures.by_kind or failures.by_outcome:
        yield failures.described
    if failed := snapshot.outcomes.get(Outcome.THROTTLED):
        total = counted(failures.operations, "operation")
        # An application may send a request again under another id.
        known = "" if evidence.watched is None else ", as far as retries are known"
        they = agreed(failed, "it was", "they were")
        yield f"{failed:,} of {total} failed for good because {they} throttled every time{known}"
    for part in snapshot.operations:
        for outcome, status in REGULAR_STATUSES.items():
            share = part.outcomes.get(outcome, 0) / max(1, part.count)
            if share >= MANY_FROM:
                yield (
                    f"{percent(share)} of {part.kind} ({counted(part.count, 'operation')}) ended "
                    f"with {status} ({outcome.replace('_', ' ')}), which is no failure and changes "
                    "nothing"
                )


def of_latency(evidence: Evidence) -> Iterator[str]:
    service, response = evidence.snapshot.service_ms, evidence.snapshot.response_ms
    if service is None or evidence.length_s <= 0:
        return
    words = f"service latency was {_ms(service.p50)} at the median, {_ms(service.p99)} at p99"
    if response is not None:
        words += f"; response latency {_ms(response.p99)} at p99"
    if (failed := failed_share(evidence.snapshot)) >= MIXED_FROM:
        words += f"; {percent(failed)} of the operations failed, and count too"
    yield words


def of_waiting(evidence: Evidence) -> Iterator[str]:
    service, latency_s = evidence.snapshot.service_ms, evidence.latency_s
    if service is None or latency_s is None or evidence.length_s <= 0:
        return
    if evidence.latency_doubt is not None:
        yield f"latencies are only upper bounds: {evidence.latency_doubt}"
    if evidence.light_latency_s is not None and evidence.growth is not None:
        yield (
            f"mean service latency{' without back-off' if evidence.backing_off else ''} was "
            f"{number(evidence.growth)} times the {_ms(evidence.light_latency_s * 1000)} under "
            "light load"
        )
    rate = service.count / evidence.length_s
    in_progress = f"{number(evidence.on_the_way)} operations were in progress"
    waited = in_progress if evidence.watched is not None else waiting_words(evidence)
    if evidence.watched is None and len(evidence.waits) > 1:
        waited += f"; {in_progress}"
    yield (
        f"on average {waited}: {number(rate)} operations/s x {_ms(latency_s * 1000)} (Little's law)"
    )


def _ms(value: float) -> str:
    return f"{milliseconds(value)} ms"


def _application(evidence: Evidence) -> Iterator[str]:
    watched = evidence.watched
    if watched is None:
        return
    if retried := sum(watched.succeeded_after.values()):
        most = max(watched.succeeded_after)
        yield (
            f"{counted(retried, 'operation')} succeeded after a retry, at most after "
            f"{counted(most, 'attempt')}: the application saw success, and the wait"
        )
    if watched.unjoined:
        yield (
            f"{counted(watched.unjoined, 'failed request')} had no x-ms-client-request-id that "
            "a retry repeats; retries of them count as operations of their own"
        )
    if len(watched.clients) > 1:
        yield f"{watched.senders} (user agents) sent requests"


def of_generator(evidence: Evidence) -> Iterator[str]:
    generator = evidence.generator
    if (watched := evidence.watched) is not None:
        yield (
            f"the CPU of the gateway was {of_core(watched.gateway_cpu_percent)} of one core on "
            "average"
        )
        if generator.cpu_percents:
            yield (
                "the busiest thread of the application used "
                f"{of_core(generator.cpu_percent_mean)} of one core on average, "
                f"{of_core(generator.cpu_percent_max)} at most"
            )
        return
    if evidence.connections is not None and evidence.connections_in_use is not None:
        most = evidence.connections_in_use
        yield (
            f"at most {most:,} of {counted(evidence.connections, 'connection')} "
            f"{agreed(most, 'was', 'were')} in use"
        )
    if not generator.cpu_percents:
        yield "the CPU use of the generator is unknown"
        return
    each = ", ".join(of_core(mean) for mean in generator.cpu_percents[:_MOST_SHOWN])
    if len(generator.cpu_percents) > _MOST_SHOWN:
        each += f", others up to {of_core(generator.cpu_percents[_MOST_SHOWN])}"
    yield (
        f"CPU of the workers, each on one core: {each} on average, "
        f"{of_core(generator.cpu_percent_max)} at most, {of_core(BUSY_PERCENT)} or more in "
        f"{percent(generator.busy_share)} of the seconds"
    )
    yield (
        f"the machine's CPU was {of_core(generator.machine_percent_max)} busy at most, and "
        f"saturated in {percent(generator.machine_busy_share)} of the seconds"
    )
    if generator.capacity is not None:
        yield from _capacity(generator.capacity, evidence.unit)
    yield f"free users sent operations at most {_ms(generator.lag_s_max * 1000)} late"


def _capacity(capacity: CapacityPart, unit: CountedUnit) -> Iterator[str]:
    yield f"the workers made {capacity.described(unit)}"
    for machine in capacity.machines[:_MOST_SHOWN]:
        yield f"CPU of {machine.name}: {machine.described}"
    if len(capacity.machines) > _MOST_SHOWN:
        yield f"there were {counted(len(capacity.machines), 'machine')}"


_TOPICS: tuple[Topic, ...] = (
    of_rate,
    _shares,
    unit_sentences,
    _queries,
    of_attempts,
    _throttled,
    _timed_out,
    _failed,
    _application,
    of_latency,
    of_waiting,
    of_generator,
)
"""In the order of the sentences."""
