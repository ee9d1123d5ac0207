"""What the service's own log says of a run, in sentences and in rows."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.record.record import RunRecord
from harness.measure.record.service_log import MOST_SHOWN, LoggedPart, ServiceLogPart
from harness.model.figures import agreed, counted, listed, milliseconds, percent
from harness.model.partition import is_beside
from harness.model.services.service import Server
from harness.report.names import partition_name

LOG_TITLE = "Log of the service"
_SAME_CLOCK_S = 0.05
_MOST_ATTEMPTS = 1.02
"""Attempts per operation up to which a client's latency is that of one request."""


def agreement(part: ServiceLogPart) -> str:
    """Whether the log agrees, in one sentence."""
    if not part.logged:
        return f"The service's log {part.log} has no request of this run."
    there = f"{part.answered - part.missing:,} of {counted(part.answered, 'attempt')}"
    if part.agrees:
        missing = f"; {part.missing:,} {agreed(part.missing, 'is', 'are')} missing in the log"
        return f"The service's log agrees: {there}{missing if part.missing else ''}."
    reasons = []
    if part.missing:
        reasons.append(f"it has {there}")
    if more := part.unexplained:
        answers = counted(more, "answer")
        reasons.append(f"{answers} in the log {agreed(more, 'is', 'are')} not in the record")
    if apart := part.partitions_apart:
        reasons.append(f"{_at_least(apart, 'partition')} {agreed(len(apart), 'differs', 'differ')}")
    if part.seconds_apart and not part.ends_early:
        reasons.append(f"it has gaps in {_at_least(part.seconds_apart, 'second')}")
    if part.ends_early:
        reasons.append("it ends before the run does")
    return f"The service's log differs: {listed(reasons)}."


def logged_rows(record: RunRecord) -> list[tuple[str, str]]:
    """The log beside the record: names and texts; empty without a log."""
    part = record.service_log
    if part is None:
        return []
    rows = [("result", agreement(part))]
    if not part.logged:
        return rows
    if not part.by_id:
        why = (
            "all requests for entities during the run: the ids of its requests are not known, and "
            "other clients count too"
        )
        rows.append(("counted", why))
    apart = [status for status in part.statuses if status.attempts != status.logged]
    if apart:
        rows.append(("by status", _pairs(apart)))
    if part.unanswered:
        known = (
            f"; by their ids, the log has {part.unanswered_logged:,}"
            if part.unanswered_logged
            else ""
        )
        rows.append(("without an answer", f"{counted(part.unanswered, 'attempt')}{known}"))
    if part.joined:
        rows.append(
            (
                "by request id",
                f"{part.found:,} of {counted(part.joined, 'failed attempt')} "
                "are in the log with the same status",
            )
        )
    if part.partitions:
        rows.append(("by partition", _partitions(part, record.endpoint.service.server)))
    if part.seconds_apart:
        rows.append(("seconds with gaps (UTC)", _pairs(part.seconds_apart)))
    rows += [*_latencies(record, part), ("clock", _clock(part))]
    return rows


def _at_least(parts: Sequence[LoggedPart], word: str) -> str:
    """How many differ; of many only some are listed."""
    return f"{'at least ' * (len(parts) == MOST_SHOWN)}{counted(len(parts), word)}"


def _pairs(parts: Sequence[LoggedPart]) -> str:
    """What differs: counts of the client, and those of the log."""
    return "; ".join(
        f"{partition_name(part.name)}: {part.attempts:,} counted, {part.logged:,} in the log"
        for part in parts
    )


def _partitions(part: ServiceLogPart, server: Server) -> str:
    compared = f"{counted(part.partitions, 'partition')} compared"
    if part.partitions_apart:
        return f"{compared}. {_pairs(part.partitions_apart)}"
    if part.keyless:
        lines = counted(part.keyless, "line")
        name_none = "name no PartitionKey (inserts, transactions)"
        if server != "table":
            name_none = f"of {server}s are not told apart"
        return f"{compared}: none has too many. {lines} {name_none}"
    if part.missing or part.unanswered_logged:
        return f"{compared}: none differs by more than missing lines and lost answers explain"
    return f"{compared}: each has the same number"


def _latencies(record: RunRecord, part: ServiceLogPart) -> list[tuple[str, str]]:
    """Server latencies, and where it is known which share of the client's they leave."""
    server, client = part.server_ms, record.service_ms
    if any(is_beside(one.partition.table) for one in record.partitions):
        # The client's is not that of tables alone.
        client = None
    if server is None:
        known = "in the log" if part.clock_s is not None else "known, as the clock is not"
        return [("server latency", f"not {known}")]
    each, shares = [], []
    for name in ("p50", "p90", "p99"):
        in_server: float = getattr(server, name)
        each.append(f"{name} {milliseconds(in_server)} ms")
        if client is not None and in_server <= getattr(client, name):
            shares.append(f"{percent(1 - in_server / getattr(client, name))} of {name}")
    rows = [("server latency", ", ".join(each))]
    if client is None or not shares:
        return rows
    if record.counts.attempts > _MOST_ATTEMPTS * record.counts.operations:
        why = "not known: the client's latency has retries and pages"
        return [*rows, ("network and client", why)]
    said = f"{listed(shares)} of the client's service latency"
    return [*rows, ("network and client", said)]


def _clock(part: ServiceLogPart) -> str:
    if part.clock_s is None or part.clock_within_s is None:
        return "not known: the counts over time do not tell"
    within = f"within {milliseconds(1000 * max(0.01, part.clock_within_s))} ms"
    if abs(part.clock_s) < max(_SAME_CLOCK_S, part.clock_within_s):
        return f"the service's clock is that of this machine, {within}"
    ahead = "ahead of" if part.clock_s > 0 else "behind"
    apart = milliseconds(1000 * abs(part.clock_s))
    return f"the service's clock is {apart} ms {ahead} this machine's, {within}"
