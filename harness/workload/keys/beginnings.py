"""What the results of templates begin with, where of a value only the beginning is known.

A range of keys says with what its keys begin. A template makes ranges of new keys of that: those
that begin with fixed text, with known values, and with what a function makes of a beginning. What
is said here holds for every value that begins so; a result of which less is known is shorter.

Between two times in one notation are times in this notation, and between two numbers of digits
numbers of as many: a coarser time of a range, or first digits, are therefore a list.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.model.entity import sort_key
from harness.workload.keys.template import DATE, PERIODS, Function, Reference, next_period

_DIGIT = re.compile(r"[0-9]")
_NO_TIME = re.compile(r"[T _:.-]?0[0:.]*Z?", re.ASCII)
"""The rest of a time at which a period begins."""
_BELOW = "\0"
"""Behind a bound: the value may be the bound."""
_DATE_BEGUN = re.compile(r"\d{0,4}|\d{4}-(?:\d\d?(?:-\d?)?)?")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_ITEM = re.compile(
    r"(?P<one>\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\]|\\[dDwWsS]|\."
    r"|(?P<literal>\\[^a-zA-Z0-9]|[^\\\[\](){}?*+|^$.]))"
    r"(?:\{(?P<times>\d{1,4})\}|(?P<more>[+*]))?"
)
"""A class of characters or a character, and how often."""
_REPEATED = re.compile(r"[?*+{]")
_ANYTHING_BEHIND = (").*", ")(?s:.*)")
_CONTROL = range(0x7F, 0xA0)
_SURROGATES = range(0xD800, 0xE000)
_IN_NO_KEY = frozenset("/\\#?")


class Beginning(NamedTuple):
    """The beginning of a text; ``whole`` if nothing follows.

    Attributes:
        since: The text is not below this one.
        until: The text is below this one; empty where no bounds are known.
    """

    text: str
    whole: bool = False
    since: str = ""
    until: str = ""


UNKNOWN = Beginning("")


def after(prefix: str) -> str | None:
    """The first text behind all keys with a prefix, of characters of keys; None if there is none.

    No key contains control characters, half of a surrogate pair, or one of ``/ \\ # ?``.
    """
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        while code in _CONTROL or chr(min(code, 0x10FFFF)) in _IN_NO_KEY:
            code += 1
        # In the order of keys, characters beyond U+FFFF are where the surrogates are.
        code = {_SURROGATES.start: 0x10000, 0x110000: _SURROGATES.stop}.get(code, code)
        if code != 0x10000 or prefix[place] != "\uffff":
            return prefix[:place] + chr(code)
    return None


def end_behind(first: str, before: str, literal: str) -> str | None:
    """The end of all keys that begin with a key of a range and then ``literal``.

    None if no key is behind them. The range is from ``first`` on, and ends before ``before``.
    """
    found = before
    for length in range(len(before)):
        # `before` begins with this one, which may be followed by what sorts behind the rest of it.
        begun = before[:length]
        if sort_key(begun) >= sort_key(first):
            behind = after(begun + literal)
            if behind is None:
                return None
            found = max(found, behind, key=sort_key)
    return found


def of_range(first: str | None, before: str | None) -> Beginning:
    """What the keys from ``first`` to before ``before`` begin with; None is no bound."""
    if not first or before is None:
        return UNKNOWN
    if before in (first + "\0", first + " "):
        return Beginning(first, whole=True)
    shared = _shared(first, before)
    if len(shared) < len(first) and after(first[: len(shared) + 1]) == before:
        shared = first[: len(shared) + 1]
    return Beginning(shared, since=first, until=before)


def _shared(one: str, other: str) -> str:
    """What both texts begin with."""
    for place, (character, another) in enumerate(zip(one, other, strict=False)):
        if character != another:
            return one[:place]
    return min(one, other, key=len)


def joined(parts: Sequence[Beginning]) -> Beginning:
    """Of values that follow each other."""
    if len(parts) == 1:
        return parts[0]
    text = ""
    for part in parts:
        text += part.text
        if not part.whole:
            return Beginning(text)
    return Beginning(text, whole=True)


def of_function(function: Function, value: Beginning) -> Beginning:
    """What the result of a function begins with."""
    text, whole, *_ = value
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
    match, parts = DATE.match(text), PERIODS.index(function.name) + 1
    if match is None or None in match.groups()[:parts]:
        # Both begin so if the date has hyphens.
        return Beginning(text) if _DATE_BEGUN.fullmatch(text) else UNKNOWN
    date = function.of(f"{text[: match.end(parts)]}!")
    # If there is no such day the value stays as it is.
    return Beginning(text) if date.endswith("!") else Beginning(date, True)


def _between(function: Function, value: Beginning, most: int) -> list[str]:
    """The results for the times, or the numbers, between the bounds of a value.

    Empty if they are not known, or more than ``most``.
    """
    since, until = value.since, value.until
    if function.name == "first":
        return _numbers(since, until, function.size, most)
    if function.name not in PERIODS:
        return []
    periods = _periods(since, until, PERIODS.index(function.name) + 1)
    found = [at.isoformat(timespec="hours") for at in itertools.islice(periods, most + 1)]
    return list(map(function.of, found)) if len(found) <= most else []


def _numbers(since: str, until: str, size: int, most: int) -> list[str]:
    """What numbers begin with."""
    first, last = since[:size], until[:size]
    if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
        return []
    if not len(first) == len(last) == size or len(since) != len(until.rstrip(_BELOW)):
        return []
    end = int(last) + bool(until[size:].strip("0"))
    return [] if end - int(first) > most else [f"{one:0{size}}" for one in range(int(first), end)]


def _periods(since: str, until: str, parts: int) -> Iterator[dt.datetime]:
    """The beginnings of the periods, which have so many of the parts of a date."""
    first, last = DATE.match(since), DATE.match(until)
    if first is None or last is None or None in first.groups()[:parts]:
        return
    given = (*last.groups(), None).index(None)
    parts_of_last = min(parts, given)
    start, end = since[: first.end(parts)], until[: last.end(parts_of_last)]
    if _DIGIT.sub("0", start[: len(end)]) != _DIGIT.sub("0", end):
        # Two notations.
        return
    rest = until[len(end) :]
    try:
        at = _instant(first, parts)
        before = _instant(last, parts_of_last)
        if parts_of_last < parts:
            follows = start[len(end) : len(end) + 1]
            follows = "9" if follows.isdigit() else follows
            if rest and rest[0] <= follows:
                return
        beyond = until[last.end(given) :]
        if _instant(last, given) != before or (beyond and not _NO_TIME.fullmatch(beyond)):
            before = next_period(before, parts_of_last)
        while at < before:
            yield at
            at = next_period(at, parts)
    except (ValueError, OverflowError):
        # A day that no month has, or the end of time.
        return


def _instant(match: re.Match[str], parts: int) -> dt.datetime:
    year, month, day, hour = (int(one or 0) for one in match.groups())
    every = (year, month, day, hour)[:parts] + (0, 1, 1, 0)[parts:]
    return dt.datetime(every[0], every[1], every[2], every[3])


def of_pattern(pattern: str, value: Beginning) -> dict[str, Beginning]:
    """What named groups of a regular expression begin with, in values that match it.

    Known are groups at places that the pattern fixes: behind characters and classes of characters
    that are repeated so often, and behind a repeated class that ends at a character not in it. The
    last one may have anything behind it.
    """
    known: dict[str, Beginning] = {}
    if "|" in pattern:
        return known
    text, at, position, group = value.text, 0, 0, ""
    while position < len(pattern):
        opened = _GROUP.match(pattern, position)
        if opened is not None and not group:
            group, start, position = opened[1], at, opened.end()
            known[group] = _of_group(value, at, None)
            continue
        if pattern[position] == ")" and group:
            known[group] = _of_group(value, start, at)
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
        if group and pattern[position:] == ")":
            # To the end of the text.
            return known
        if group and pattern[position:] in _ANYTHING_BEHIND:
            # All characters of the class.
            while at < len(text) and re.fullmatch(item["one"], text[at]):
                at += 1
            known[group] = Beginning(text[start:at], whole=at < len(text))
            return known
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


def _of_group(value: Beginning, start: int, end: int | None) -> Beginning:
    """Of the characters from ``start`` to before ``end``, or to an end that is not known."""
    text, _, since, until = value
    if end is not None and end <= len(text):
        return Beginning(text[start:end], whole=True)
    if start > len(text) or not until:
        return Beginning(text[start:])
    rest = "" if end is None else until[end:]
    until = until[start:end] + (_BELOW if rest and not _NO_TIME.fullmatch(rest) else "")
    return Beginning(text[start:], since=since[start:end], until=until)


def of_reference(
    reference: Reference, values: Mapping[str, Beginning], most: int
) -> tuple[Sequence[str], bool]:
    """What a field becomes, and whether these are all of its results.

    A value that is not listed is unknown.
    """
    function = reference.function
    value = joined([values.get(name, UNKNOWN) for name in reference.names])
    one = of_function(function, value)
    if not one.whole and (found := function.choices or _between(function, value, most)):
        return found, True
    return (one.text,), one.whole


def of_parts(
    parts: Sequence[str | Reference], values: Mapping[str, Beginning], most: int
) -> tuple[list[str], bool]:
    """What keys of a template begin with, and whether these are the keys.

    A function with a few results makes a beginning for each, up to ``most`` in all.
    """
    found = [""]
    for part in parts:
        texts, whole = (
            ((part,), True) if isinstance(part, str) else of_reference(part, values, most)
        )
        if len(found) * len(texts) > most:
            return found, False
        found = [begun + text for begun in found for text in texts]
        if not whole:
            return found, False
    return found, True
