"""The shipped profiles that tests go through."""

from __future__ import annotations

from harness.profile.profile_loader import resolve, shipped_names


def without_trace() -> list[str]:
    """The shipped profiles that can be made without a file of the user: all but replays."""
    return [name for name in shipped_names() if resolve(name).profile.replay is None]
