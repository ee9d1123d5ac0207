"""What was stressed, and with what: from the record, and from the profile that it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.measure.record import RunRecord
from harness.model.target import EndpointKind
from harness.report.words import counted, number


def stressed(record: RunRecord) -> list[tuple[str, str]]:
    """What was stressed, with what and for how long: names and texts."""
    users = users_words(record.profile, record.users)
    load = f"{users} in {counted(record.workers, 'process', 'processes')}"
    cap = _cap(record)
    if (words := scheduled_words(record.profile)) is not None:
        load += f", {words}"
    elif cap is not None:
        load += f", at most {number(cap)} entities/s together"
    entity, loading = record.entity, record.loading
    size = f"{entity.stored_bytes:,} B stored, about {entity.wire_bytes:,} B on the wire"
    if loading.entities:
        size += f"; {loading.entities:,} loaded in {number(loading.seconds)} s"
    ended = f", ended by {record.ended_by}" if record.ended_by else ""
    under_load = sum(point.width_s for point in record.series)
    return [
        ("stressed", record.endpoint.described),
        ("", f"{record.endpoint.host}, table {record.endpoint.table}"),
        ("load", load),
        ("entities", size),
        ("measured", f"{record.measured_s:,} s of {under_load:,} s under load{ended}"),
        ("run", f"{record.run_id}, session {record.session}"),
    ]


def _cap(record: RunRecord) -> float | None:
    """Entities a second that a closed loop might reach; None where none was named."""
    load = record.profile.get("load", {})
    caps = [load.get("max_entities_per_s")]
    if record.endpoint.kind in [kind for kind in EndpointKind if kind.emulated]:
        caps.append(load.get("emulator_max_entities_per_s"))
    return min((cap for cap in caps if cap is not None and cap < math.inf), default=None)


def users_words(profile: Mapping[str, Any], users: int) -> str:
    """How many users send; where they go through stages, the fewest and the most.

    Args:
        profile: As records hold it.
        users: How many, where there are no such stages.
    """
    stages = profile.get("stage") or ()
    counts = [stage.get("to_users") for stage in stages]
    if not counts or None in counts:
        return counted(users, "user")
    counts.append(profile.get("load", {}).get("users", users))
    return f"{min(counts):,} to {counted(max(counts), 'user')} ({counted(len(stages), 'stage')})"


def scheduled_words(profile: Mapping[str, Any]) -> str | None:
    """The schedule of an open load in a few words; None in a closed loop.

    Args:
        profile: As records hold it.
    """
    load = profile.get("load", {})
    if (search := profile.get("search")) is not None:
        first, last = number(search["start_per_s"]), number(search["max_per_s"])
        return f"in steps from {first} to {last} entities/s"
    if stages := profile.get("stage"):
        for unit in ("entities", "operations"):
            rates = [stage[f"to_{unit}_per_s"] for stage in stages]
            if None not in rates:
                named = counted(len(stages), "stage")
                return f"{named} of up to {number(max(rates))} {unit}/s on a schedule"
    for unit in ("entities", "operations"):
        if (rate := load.get(f"{unit}_per_s")) is not None:
            return f"{number(rate)} {unit}/s on a schedule ({load['arrivals']} arrivals)"
    return None
