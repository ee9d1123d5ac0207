"""What the results of templates begin with, where of a value only the beginning is known.

A range of keys says with what its keys begin. A template makes ranges of new keys of that: those
that begin with fixed text, with known values, and with what a function makes of a beginning. What
is said here holds for every value that begins so; a result of which less is known is shorter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.workload.keys.template import PERIODS, Function, Reference

_DATE = re.compile(r"(\d{4})-?(\d\d)?-?(\d\d)?(?:[T _-]?(\d\d))?")
"""As in `harness.workload.keys.template`."""
_SETTLED = re.compile(r"[T _-]?(?:[01]|2[0-3])|[^T _\-\d]|[T _-]\D")
"""Behind a day: what follows is a valid hour, or none."""
_DATE_BEGUN = re.compile(r"\d{0,4}|\d{4}-(?:\d\d?(?:-\d?)?)?")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_ITEM = re.compile(
    r"(?P<one>\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\]|\\[dDwWsS]|\."
    r"|(?P<literal>\\[^a-zA-Z0-9]|[^\\\[\](){}?*+|^$.]))"
    r"(?:\{(?P<times>\d{1,4})\}|(?P<more>[+*]))?"
)
"""A class of characters or a character, and how often."""
_REPEATED = re.compile(r"[?*+{]")
_CONTROL = range(0x7F, 0xA0)
_SURROGATES = range(0xD800, 0xE000)
_IN_NO_KEY = frozenset("/\\#?")


class Beginning(NamedTuple):
    """The beginning of a text; ``whole`` if nothing follows."""

    text: str
    whole: bool = False


UNKNOWN = Beginning("")


def after(prefix: str) -> str | None:
    """The first text behind all keys with a prefix, of characters of keys; None if there is none.

    No key contains control characters, half of a surrogate pair, or one of ``/ \\ # ?``.
    """
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        while code in _CONTROL or code in _SURROGATES or chr(min(code, 0x10FFFF)) in _IN_NO_KEY:
            code += 1
        if code <= 0x10FFFF:
            return prefix[:place] + chr(code)
    return None


def of_range(first: str | None, before: str | None) -> Beginning:
    """What the keys from ``first`` to before ``before`` begin with; None is no bound."""
    if not first or before is None:
        return UNKNOWN
    if before in (first + "\0", first + " "):
        return Beginning(first, whole=True)
    shared = _shared(first, before)
    if len(shared) < len(first) and after(first[: len(shared) + 1]) == before:
        shared = first[: len(shared) + 1]
    return Beginning(shared)


def _shared(one: str, other: str) -> str:
    """What both texts begin with."""
    for place, (character, another) in enumerate(zip(one, other, strict=False)):
        if character != another:
            return one[:place]
    return min(one, other, key=len)


def joined(parts: Sequence[Beginning]) -> Beginning:
    """Of values that follow each other."""
    text = ""
    for part in parts:
        text += part.text
        if not part.whole:
            return Beginning(text)
    return Beginning(text, whole=True)


def of_function(function: Function, value: Beginning) -> Beginning:
    """What the result of a function begins with."""
    text, whole = value
    if whole:
        return Beginning(function.of(text), whole=True)
    name, size = function.name, function.size
    if not name or (name == "lower" and text.isascii()):
        return Beginning(function.of(text))
    if name == "first":
        return Beginning(text[:size], whole=len(text) >= size)
    if name == "pad":
        return value if len(text) >= size else UNKNOWN
    return _of_period(function, text) if name in PERIODS else UNKNOWN


def _of_period(function: Function, text: str) -> Beginning:
    """Of a date: the date as far as the period goes, or the value itself if it is no date."""
    match = _DATE.match(text)
    if match is None or None in match.groups()[: PERIODS.index(function.name) + 1]:
        # Both begin so if the date has hyphens.
        return Beginning(text) if _DATE_BEGUN.fullmatch(text) else UNKNOWN
    date = function.of(match[0])
    if date == match[0] != function.of(match[0] + "!"):
        # No such day: the value stays as it is.
        return Beginning(text)
    settled = match[4] is not None or (match[3] and _SETTLED.match(text, match.end(3)))
    return Beginning(date, True) if settled else Beginning(_shared(date, text))


def of_pattern(pattern: str, value: Beginning) -> dict[str, Beginning]:
    """What named groups of a regular expression begin with, in values that match it.

    Known are groups at places that the pattern fixes: behind characters and classes of characters
    that are repeated so often, and behind a repeated class that ends at a character not in it.
    """
    known: dict[str, Beginning] = {}
    if "|" in pattern:
        return known
    text, at, position, group = value.text, 0, 0, ""
    while position < len(pattern):
        opened = _GROUP.match(pattern, position)
        if opened is not None and not group:
            group, start, position = opened[1], at, opened.end()
            known[group] = Beginning(text[at:])
            continue
        if pattern[position] == ")" and group:
            known[group] = Beginning(text[start:at], whole=at <= len(text))
            group, position = "", position + 1
            if _REPEATED.match(pattern, position):
                return {}
            continue
        item = _ITEM.match(pattern, position)
        if item is None or _REPEATED.match(pattern, item.end()):
            break
        position = item.end()
        if item["more"] is None:
            at += int(item["times"] or 1)
            continue
        behind = _ITEM.match(pattern, position + (pattern[position : position + 1] == ")"))
        if behind is None or behind["literal"] is None or behind["more"] or behind["times"]:
            break
        end = behind["literal"].removeprefix("\\")
        if re.fullmatch(item["one"], end):
            break
        at = text.find(end, at) if end in text[at:] else len(text) + 1
    if group:
        # Where it ends is not known, and it may end before what is known.
        del known[group]
    return known


def of_reference(reference: Reference, values: Mapping[str, Beginning]) -> Beginning:
    """What a field becomes; a value that is not listed is unknown."""
    parts = [values.get(name, UNKNOWN) for name in reference.names]
    return of_function(reference.function, joined(parts))


def of_parts(
    parts: Sequence[str | Reference], values: Mapping[str, Beginning], most: int
) -> tuple[list[str], bool]:
    """What keys of a template begin with, and whether these are the keys.

    Args:
        most: A function with a few results makes a beginning for each, up to so many in all.
    """
    found = [""]
    for part in parts:
        one = Beginning(part, True) if isinstance(part, str) else of_reference(part, values)
        choices: Sequence[str] = (one.text,)
        if not one.whole and not isinstance(part, str) and part.function.choices:
            choices = part.function.choices
            if len(found) * len(choices) > most:
                return found, False
            one = Beginning("", True)
        found = [begun + choice for begun in found for choice in choices]
        if not one.whole:
            return found, False
    return found, True
