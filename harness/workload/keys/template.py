"""Templates of keys: fixed text, and fields in braces, such as ``{customer}_{time:month}``.

A field names one value, or several joined by ``+``, and after a colon what is taken of it: see
`FUNCTIONS`. The values are the fields of a profile, or the recorded keys of a trace and the named
groups of regular expressions over them. Profiles, what-if, replay and checks share this language.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import hashlib
import re
import string
import zlib
from collections.abc import Callable, Collection, Mapping

from harness.model.entity import key_problem
from harness.model.errors import did_you_mean, echoed
from harness.workload.keys.scattering import guid, scattered
from harness.workload.simulated_time import MAX_TICKS, ticks_of

FUNCTIONS: Mapping[str, str] = {
    "year, month, day, hour": "of a time, or of a text such as 2026-11-20T08, 20261120 or "
    "2026-11-20 08:15",
    "ticks": "a time in units of 100 ns since the year 1, 19 digits: the newest sorts last",
    "inverted": "the largest value minus this one, of a time in ticks (year 9999), of a number "
    "99...9: the newest sorts first",
    "hashN": "N hexadecimal digits of a hash, 1 to 8",
    "bucketN": "one of N buckets by hash, 2 to 10000, with leading zeros: a calculated suffix",
    "randomN": "one of N numbers, 2 to 10000, that the value does not show: a random suffix",
    "firstN, lastN": "the first or last N characters",
    "padN": "with leading zeros, N characters at least",
    "lower": "in lower case",
    "guid": "a GUID that belongs to the value",
}
"""What can be taken of a value, and what that is."""

PERIODS = ("year", "month", "day", "hour")
"""Functions of a time that many entities share, from coarse to fine."""
SCATTERING = frozenset(("hash", "bucket", "random", "guid"))
"""Functions whose results are not in the order of the values."""
_MOST_CHOICES = 10_000
_MOST_PAD = 100
DATE = re.compile(r"(\d{4})-?(\d\d)?-?(\d\d)?(?:[T _-]?(\d\d))?", re.ASCII)
"""What dates begin with."""
_VALID = (range(10_000), range(1, 13), range(1, 32), range(24))
_SIZED = re.compile(r"(hash|bucket|random|first|last|pad)(0|[1-9][0-9]{0,4})")
_TIME = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T _-]?(\d\d)(?:[:-]?(\d\d)(?:[:-]?(\d\d)(?:\.(\d{1,7}))?)?)?)?Z?"
)
_TICKS = re.compile(r"0?[1-9]\d{17}|[12]\d{18}")
_DIGITS = re.compile(r"\d{1,40}")


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """What a field takes of a value.

    Attributes:
        text: As written, such as ``bucket16``; empty for the value itself.
        name: Without the size, such as ``bucket``.
        of: The result for a value.
        choices: Every result that there is, where these are known before and not too many.
        divisor: The place in ``choices`` is the rest that the CRC-32 of a value leaves; 0 where
            another rule gives the result.
    """

    text: str
    name: str
    size: int
    of: Callable[[str], str]
    choices: tuple[str, ...] = ()
    divisor: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """A field of a template: the names of its values, which are joined, and a function."""

    names: tuple[str, ...]
    function: Function

    def of(self, values: Mapping[str, str]) -> str:
        names = self.names
        if len(names) == 1:
            return self.function.of(values[names[0]])
        return self.function.of("".join([values[name] for name in names]))

    def is_plain(self, name: str) -> bool:
        """Whether it is the value of this name itself."""
        return self.names == (name,) and not self.function.text


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """A key: fixed text and references, in order."""

    text: str
    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def fill(self, values: Mapping[str, str]) -> str:
        return "".join([part if isinstance(part, str) else part.of(values) for part in self.parts])


def parse_template(text: str, known: Collection[str], noun: str = "field") -> Template:
    """The template that ``text`` describes; a `ValueError` has the place and the remedy.

    It may contain the ``known`` names, each of which is a ``noun`` in messages.
    """
    parts: list[str | Reference] = []
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueError(
            f"a brace in {echoed(text)} has no partner; a brace of the key itself is written twice"
        ) from error
    for literal, name, function, conversion in parsed:
        if literal:
            if problem := key_problem(literal):
                raise ValueError(f"{echoed(literal)} {problem}")
            parts.append(literal)
        if name is None:
            continue
        if conversion:
            raise ValueError(f"!{conversion} has no meaning in a {noun}")
        names = tuple(one.strip() for one in name.split("+"))
        if not name.strip():
            raise ValueError(f"braces in {echoed(text)} name no {noun}")
        for one in names:
            if one not in known:
                listed = ", ".join(sorted(known)) or "none"
                near = did_you_mean(one, known)
                raise ValueError(f"there is no {noun} {echoed(one)}; known: {listed}{near}")
        parts.append(Reference(names, function_named(function or "")))
    # Both keys of an entity may be empty.
    return Template(text, tuple(parts) or ("",))


@functools.cache
def function_named(text: str) -> Function:
    """The function that stands after the colon of a field; a `ValueError` if there is none."""
    if text in _UNSIZED:
        return Function(text, text, 0, _UNSIZED[text])
    match = _SIZED.fullmatch(text)
    if text in _SIZES:
        raise ValueError(f"{text} needs a number behind it, such as {text}{_SIZES[text][0] * 4}")
    if match is None:
        raise ValueError(f"there is no function {echoed(text)}; there are {'; '.join(FUNCTIONS)}")
    name, size = match[1], int(match[2])
    least, most = _SIZES[name]
    if not least <= size <= most:
        raise ValueError(f"{text}: the number of {name}N is {least} to {most}")
    choices: tuple[str, ...] = ()
    if name in ("bucket", "random"):
        width = len(str(size - 1))
        choices = tuple(f"{number:0{width}}" for number in range(size))
    elif name == "hash" and 16**size <= _MOST_CHOICES:
        choices = tuple(f"{number:0{size}x}" for number in range(16**size))
    # Of both it is the rest of a division.
    divisor = {"bucket": size, "hash": 16**size}.get(name, 0) if choices else 0
    made: dict[str, Callable[[str], str]] = {
        "hash": lambda value: f"{_crc32(value):08x}"[-size:],
        "bucket": lambda value: choices[_crc32(value) % size],
        "random": lambda value: choices[(scattered(_crc32(value)) >> 64) % size],
        "first": lambda value: value[:size],
        "last": lambda value: value[-size:],
        "pad": lambda value: value.zfill(size),
    }
    return Function(text, name, size, made[name], choices, divisor)


_SIZES = {
    "hash": (1, 8),
    "bucket": (2, _MOST_CHOICES),
    "random": (2, _MOST_CHOICES),
    "first": (1, 99_999),
    "last": (1, 99_999),
    "pad": (1, _MOST_PAD),
}


def _crc32(value: str) -> int:
    return zlib.crc32(value.encode("utf-8", "surrogatepass"))


def _date(parts: int, value: str) -> str:
    """The date down to ``parts`` parts, such as 2026-11; the value itself if it begins with none.

    What follows those parts does not matter.
    """
    match = DATE.match(value)
    if match is None or None in (found := match.groups()[:parts]):
        return value
    if not all(int(one) in valid for one, valid in zip(found, _VALID, strict=False)):
        return value
    return "-".join(found[:3]) + "".join(f"T{hour}" for hour in found[3:])


def next_period(at: dt.datetime, parts: int) -> dt.datetime:
    """The beginning of the next year, month, day or hour, which has so many parts of a date."""
    if parts == 1:
        return at.replace(year=at.year + 1)
    if parts == 2:
        return (at + dt.timedelta(days=31)).replace(day=1)
    return at + dt.timedelta(days=parts == 3, hours=parts == 4)


def _parsed_ticks(value: str) -> int | None:
    """The ticks of a time as text, or of ticks; None if it is neither."""
    if _TICKS.fullmatch(value):
        return int(value)
    match = _TIME.fullmatch(value)
    if match is None:
        return None
    *parts, fraction = match.groups("0")
    try:
        whole = dt.datetime(*map(int, parts), tzinfo=dt.UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return ticks_of(whole) + int(fraction.ljust(7, "0"))


def _ticks(value: str) -> str:
    """The ticks of a time; the value itself if it is no time."""
    ticks = _parsed_ticks(value)
    return value if ticks is None else f"{ticks:019}"


def _inverted(value: str) -> str:
    """What is left until the end of time, or of the digits; else the value itself."""
    # Digits that are a date, such as 20261120, keep their order as a number too.
    if _DIGITS.fullmatch(value) and not _TICKS.fullmatch(value):
        return str(10 ** len(value) - 1 - int(value)).zfill(len(value))
    ticks = _parsed_ticks(value)
    return value if ticks is None else f"{MAX_TICKS - ticks:019}"


def _guid(value: str) -> str:
    digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return guid(int.from_bytes(digest, "big"))


_UNSIZED: Mapping[str, Callable[[str], str]] = {
    "": str,
    **{name: functools.partial(_date, place) for place, name in enumerate(PERIODS, start=1)},
    "ticks": _ticks,
    "inverted": _inverted,
    "lower": str.lower,
    "guid": _guid,
}
