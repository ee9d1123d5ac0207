"""What several outputs say of a record, in the same words: plain text, no layout.

Texts from outside (keys, error codes, a profile's question) are given as they are. Whoever writes
an output makes them printable in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from harness.measure.conditions import parse_condition
from harness.measure.findings import AdvicePart, ConditionPart, GapPart
from harness.measure.quantities import Unit
from harness.measure.record import OperationPart, PartitionPart, RunRecord
from harness.measure.seen import SHOWN_GAP_S, gap_words
from harness.measure.throttling import Gap
from harness.measure.verdict import indicative
from harness.model.operation import Kind, over_partitions
from harness.model.outcome import is_throttling
from harness.model.target import EndpointKind
from harness.report.words import (
    counted,
    data_size,
    milliseconds,
    number,
    partition_name,
    percent,
    shortened,
)

NO_TARGET = "no target (request units)"
OTHERS = "all others"
RELY_NOT = "Do not rely on these figures"
PLAIN_OUTCOME = "success"
_MOST_ESTIMATES = 3
_MOST_GAPS = 5
_NOTE_WIDTH = 24

_LIMITS = {
    "load": "the load that was asked for",
    "generator": "the generator",
    "endpoint": "the endpoint",
    "users": "the users, who were too few or waited for themselves",
    "partition": "the partition",
    "account": "the account",
}

_VALUES: dict[str, Callable[[float], str]] = {
    Unit.SHARE: percent,
    Unit.RATE: number,
    Unit.LATENCY: lambda value: f"{milliseconds(value)} ms",
    Unit.COUNT: lambda value: f"{value:,.0f}",
}


def limited_by(record: RunRecord) -> str | None:
    """What kept the rate from being higher, in words; None where it is not known."""
    return _LIMITS.get(record.verdict.limited_by)


def result_words(record: RunRecord) -> str:
    """The verdict's result: ``within target``, ``client limited``."""
    return record.verdict.result.replace("_", " ")


def best_over(record: RunRecord) -> str:
    """What the best mean of some seconds in a row is called: of 10 s, or of a shorter window."""
    return f"best {min(10, record.measured_s) or 10} s"


def alarms(record: RunRecord) -> list[str]:
    """What makes the figures wrong, a sentence each; nothing where they are right."""
    lines = []
    if record.invariants:
        lines.append("The harness broke its own laws of counting; this run is not valid:")
        lines += [f"  {sentence}" for sentence in record.invariants]
    if (defects := record.outcomes.get("defect", 0)) > 0:
        lines.append(f"{counted(defects, 'operation')} ended in a way the harness does not know.")
    if not record.complete:
        lines.append("Incomplete: a worker's last report is missing, every count is too low.")
    return lines


def cost(record: RunRecord) -> list[tuple[str, str]]:
    """What the run took of generator, network and money: names and texts."""
    counts, generator = record.counts, record.generator
    unsent = [
        f"{count:,} {word}"
        for count, word in (
            (counts.waiting, "not sent any more"),
            (counts.dropped, "dropped"),
            (counts.in_flight, "still in flight"),
        )
        if count
    ]
    return [
        (
            "generator",
            f"CPU {generator.cpu_percent_mean:.0f}% of a core, {generator.cpu_percent_max:.0f}% at "
            f"most; machine {generator.machine_percent_max:.0f}% at most; "
            f"lag {milliseconds(generator.lag_s_max * 1000)} ms",
        ),
        (
            "bytes",
            f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received",
        ),
        ("billable", counted(counts.billable_transactions, "transaction")),
        (
            "due",
            f"{counted(counts.due, 'operation')}; {', '.join(unsent) or 'all sent and answered'}",
        ),
    ]


def measured(part: ConditionPart) -> str:
    """The value of a condition in the unit of what it compares, and what is to be said of it."""
    if part.value is None:
        return part.note or "nothing was measured for it"
    # What another version of the harness compares may have a unit that this one does not know.
    value = _VALUES.get(part.unit or _unit_of(part.text), number)(part.value)
    return f"measured {value} ({part.note})" if part.note else f"measured {value}"


def _unit_of(text: str) -> str:
    """The unit of a condition of a record that was kept before records held it."""
    try:
        return parse_condition(text).unit
    except ValueError:
        return ""


def advised(part: AdvicePart) -> tuple[str, str]:
    """An advice as a sentence, and where it is given."""
    return f"{part.text[:1].upper()}{part.text[1:]}.", f'{part.document}, "{part.section}"'


def attempts_words(record: RunRecord) -> tuple[str, str]:
    """Requests against operations, and how many were throttled: a sentence each."""
    counts, throttled = record.counts, record.throttled
    each = counts.attempts / counts.operations if counts.operations else 0.0
    return (
        f"{counted(counts.attempts, 'attempt')} for {counted(counts.operations, 'operation')}, "
        f"{each:.3f} each",
        f"throttled: {sum(throttled.values()):,} ({percent(record.throttled_ratio)}), for the "
        f"partition {throttled['partition']:,}, for the account {throttled['account']:,}",
    )


def attempts_shares(record: RunRecord) -> list[tuple[str, int, float]]:
    """Attempts by what answered: name, count and share of all, the most frequent first."""
    everything = record.counts.attempts or 1
    ordered = sorted(record.attempts_by_status.items(), key=lambda item: -item[1])
    return [(name, count, count / everything) for name, count in ordered]


def shown_gaps(record: RunRecord) -> list[GapPart]:
    """The gaps worth a word, in order of time: a partition that was moved is gone for seconds."""
    return [gap for gap in record.throttling.gaps if gap.length_s >= SHOWN_GAP_S]


def throttling(record: RunRecord) -> list[tuple[str, str]]:
    """When throttling came, how long it lasted, and what was gone: names and texts."""
    part = record.throttling
    rows = []
    if part.first_s is not None:
        stretches = f"{part.stretches:,} stretches of at most"
        if part.stretches == 1:
            stretches = "one stretch of"
        throttled = f"{counted(part.seconds, 'second')} with throttled attempts"
        rows += [
            ("first time", f"{part.first_s} s into the load"),
            ("lasted", f"{throttled}, in {stretches} {part.longest_s} s"),
        ]
    gaps = shown_gaps(record)
    for place, gap in enumerate(gaps[:_MOST_GAPS]):
        rows.append(("" if place else "gone", gap_words(Gap(**gap.model_dump()))))
    if (more := len(gaps) - _MOST_GAPS) > 0:
        rows.append(("", f"and {counted(more, 'gap')} more"))
    return rows


def _certainty(part: OperationPart) -> str:
    if not part.uncertain:
        return "exact"
    if part.uncertain == part.count:
        return "estimated"
    return f"{part.uncertain:,} of {part.count:,} estimated"


def scans(record: RunRecord) -> list[tuple[str, str, str, str, str]]:
    """What queries walked, by the counting rule, beside what they brought.

    Of each: name, entities scanned, returned, share of the scanned, and whether it is exact.
    """
    return [
        (
            part.kind,
            f"at least {part.entities:,}" if part.uncertain else f"{part.entities:,}",
            f"{part.entities_returned:,}",
            percent(part.entities_returned / part.entities if part.entities else 1.0),
            _certainty(part),
        )
        for part in record.operations
        if part.type == Kind.QUERY
    ]


def other_outcomes(part: OperationPart) -> list[tuple[str, int]]:
    """How operations ended otherwise than well: names and counts, the most frequent first."""
    others = [
        (name, count) for name, count in part.outcomes.items() if name != PLAIN_OUTCOME and count
    ]
    return sorted(others, key=lambda item: (-item[1], item[0]))


def throttled_by_status(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Throttled attempts by status: 503, 500 and 429.

    Args:
        parts: Attempts by what answered, as a record names them.
    """
    counts = {"503": 0, "500": 0, "429": 0}
    for attempts in parts:
        for name, count in attempts.items():
            status, _, rest = name.partition(" ")
            if status in counts and is_throttling(int(status), rest.partition(" ")[0]):
                counts[status] += count
    return counts


def hottest(record: RunRecord) -> PartitionPart | None:
    """The partition with the highest mean rate; queries over several partitions are none."""
    single = (part for part in record.partitions if not over_partitions(part.key))
    return max(single, key=lambda part: part.entities_per_s.mean, default=None)


def hottest_share(record: RunRecord) -> float | None:
    """Share of the load that the hottest partition takes; None where there was no load."""
    everything = record.account.entities_per_s.mean
    part = hottest(record)
    return None if part is None or everything <= 0 else part.entities_per_s.mean / everything


def partition_notes(record: RunRecord, ellipsis: str, ascii_only: bool = False) -> list[str]:
    """What has to be known to read the table of partitions, a sentence each."""
    notes = []
    if record.redacted:
        notes.append("Aliases stand for the PartitionKeys, which the run was told not to show.")
    if record.partitions_folded is not None:
        notes.append(
            f"{OTHERS}: partitions beyond the {len(record.partitions)} that are told apart, "
            "counted together"
        )
    share = hottest_share(record)
    if len(record.partitions) > 1 and share is not None:
        notes.append(f"The hottest partition takes {percent(share)} of the load.")
    if any(over_partitions(part.key) for part in record.partitions):
        notes.append(
            "(table): queries over several partitions; how much of them each served is not known."
        )
    for part in [part for part in record.partitions if not part.exact][:_MOST_ESTIMATES]:
        if part.estimate is not None:
            name = shortened(partition_name(part.key, ascii_only), _NOTE_WIDTH, ellipsis)
            notes.append(
                f"~ {name} was not told apart throughout; in the whole run it has "
                f"{part.estimate.at_least:,} to "
                f"{counted(part.estimate.at_most, 'entity', 'entities')}"
            )
    if record.endpoint.kind == EndpointKind.COSMOS:
        notes.append(f"target: {NO_TARGET}")
    elif indicative(record.entity.stored_bytes):
        notes.append(
            "Indicative only: targets hold for 1 KiB entities, these have "
            f"{counted(record.entity.stored_bytes, 'byte')}."
        )
    if record.endpoint.kind == EndpointKind.GATEWAY:
        scanning = any(part.type == Kind.QUERY for part in record.operations)
        notes.append(
            "The gateway throttles by limits of its own, which may be far from these targets"
            f"{', and counts of queries what they return, not what they walk' * scanning}."
        )
    return notes
