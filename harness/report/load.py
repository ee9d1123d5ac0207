"""The load of a run in words, by the settings in its record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from harness.model.figures import counted, number


def users_words(profile: Mapping[str, Any], users: int) -> str:
    """The number of users, or with stages of users in ``profile`` the fewest and the most."""
    stages = profile.get("stage") or ()
    counts = [stage.get("to_users") for stage in stages]
    if not counts or None in counts:
        return counted(users, "user")
    counts.append(profile.get("load", {}).get("users", users))
    return f"{min(counts):,} to {counted(max(counts), 'user')} ({counted(len(stages), 'stage')})"


def _rated(load: Mapping[str, Any]) -> bool:
    return any(load.get(f"{unit}_per_s") is not None for unit in ("entities", "operations"))


def scheduled_words(profile: Mapping[str, Any]) -> str | None:
    """The schedule of an open load; None in a closed loop."""
    load = profile.get("load", {})
    if (search := profile.get("search")) is not None:
        first, last = number(search["start_per_s"]), number(search["max_per_s"])
        return f"in steps from {first} to {last} entities/s"
    if stages := profile.get("stage"):
        for unit in ("entities", "operations"):
            rates = [stage.get(f"to_{unit}_per_s") for stage in stages]
            if None not in rates:
                named = counted(len(stages), "stage")
                return f"{named} of up to {number(max(rates))} {unit}/s on a schedule"
    replay = profile.get("replay")
    trace = "" if replay is None else PurePath(replay["trace"]).name
    if replay is not None and not _rated(load):
        speed = replay.get("speed", 1.0)
        times = "" if speed == 1.0 else f", {speed:g} times as fast"
        return f"{trace} at its recorded instants{times}"
    for unit in ("entities", "operations"):
        if (rate := load.get(f"{unit}_per_s")) is not None:
            arrivals = load.get("arrivals", "constant")
            if replay is not None:
                return f"{trace} in its order, {number(rate)} {unit}/s on a schedule"
            return f"{number(rate)} {unit}/s on a schedule ({arrivals} arrivals)"
    return None
