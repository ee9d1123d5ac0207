"""The sentences about a watched application."""

from __future__ import annotations

from harness.measure.record.record import RunRecord
from harness.measure.record.watched import WatchedPart
from harness.model.figures import counted, data_size, number, of_core

_MOST_CLIENTS = 3


def application_setup(record: RunRecord, watched: WatchedPart) -> list[tuple[str, str]]:
    """The endpoint, the application, its clients and the time: names and texts."""
    requests = counted(watched.requests, "request")
    others = f", {watched.others:,} of them not about entities" if watched.others else ""
    ended = f", ended by {record.ended_by}" if record.ended_by else ""
    table = f", tables {record.endpoint.table}" if record.endpoint.table else ""
    rows = [
        ("endpoint", record.endpoint.described),
        ("", f"{record.endpoint.host}{table}"),
        ("application", f"{watched.command or 'not started here'}: {requests}{others}"),
    ]
    for place, client in enumerate(watched.clients[:_MOST_CLIENTS]):
        name = client.user_agent or "(no user agent)"
        rows.append(("" if place else "clients", f"{client.requests:,} {name}"))
    if (more := len(watched.clients) - _MOST_CLIENTS) > 0:
        rows.append(("", f"and {counted(more, 'more client')}"))
    return [
        *rows,
        ("entities", f"about {record.entity.wire_bytes:,} B on the wire for each written entity"),
        ("measured", f"{record.measured_s:,} s{ended}"),
        ("run", record.run_id),
    ]


def application_cost(record: RunRecord, watched: WatchedPart) -> list[tuple[str, str]]:
    """CPU, network and billable transactions: names and texts."""
    counts, cpu = record.counts, record.generator
    billable = counted(watched.passed, "transaction")
    if watched.over_budget:
        billable += f"; {watched.over_budget:,} requests over the budget were refused"
    return [
        (
            "application",
            f"busiest thread {of_core(cpu.cpu_percent_mean)} of one core on average, peak "
            f"{of_core(cpu.cpu_percent_max)}; machine peak {of_core(cpu.machine_percent_max)}",
        ),
        ("gateway", f"CPU {of_core(watched.gateway_cpu_percent)} of one core on average"),
        (
            "bytes",
            f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received",
        ),
        ("billable", billable),
        *charged(record),
    ]


def charged(record: RunRecord) -> list[tuple[str, str]]:
    """The request units of the whole run; empty where none were charged."""
    units = record.request_units
    if units is None:
        return []
    return [("charged", f"{number(units.total)} request units, throttled attempts included")]
