"""Profiles for tests: the shipped ones, and small ones made of a few settings."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from harness.profile.checks.seen import Seen
from harness.profile.practices.checklist import PRACTICES
from harness.profile.practices.practice import Assessment, Practice, Severity
from harness.profile.profile_loader import parse, resolve, shipped_names
from harness.profile.settings.schema import Profile


@functools.cache
def shipped(name: str) -> Profile:
    """The shipped profile of this name, read once for all tests."""
    return resolve(name).profile


def without_trace() -> list[str]:
    """The shipped profiles that can be made without a file of the user: all but replays."""
    return [name for name in shipped_names() if shipped(name).replay is None]


def profile_of(settings: Mapping[str, Any], **parts: Any) -> Profile:
    """The smallest profile with these settings, by their full names, and these parts."""
    content: dict[str, Any] = {"question": "Why?", **parts}
    for name, value in settings.items():
        *path, last = name.split(".")
        place = content
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return parse(content, source="a test")


def look_of(name: str, seen: Seen) -> Assessment:
    """What the practice of this name says of what was seen."""
    look = _practice(name).look(seen)
    assert look is not None
    return look


def severity_of(name: str, seen: Seen) -> Severity | None:
    """How bad it is by the practice of this name; None where the practice does not apply."""
    look = _practice(name).look(seen)
    return None if look is None else look.severity


def _practice(name: str) -> Practice:
    [practice] = [practice for practice in PRACTICES if practice.name == name]
    return practice
