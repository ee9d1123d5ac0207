"""Forms that parts of keys have: times in their usual notations, GUIDs and other identifiers.

A form says what a text stands for, and whether the order of texts is the order of what they stand
for. Keys are compared as text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import re
from collections.abc import Callable, Mapping

from harness.model.figures import counted

FIRST_YEAR, END_YEAR = 1970, 2100
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PLAUSIBLE_S = range(10**9, 2 * 10**9)
"""Seconds since 1970, from 2001 to 2033: a plain number that means another time is a number."""
_TICKS_AT_EPOCH = 621_355_968_000_000_000
_MOST_TICKS = 3_155_378_975_999_999_999
"""``DateTime.MaxValue.Ticks`` of .NET: 100 ns since the year 1."""
_MOST_INT64 = 2**63 - 1
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class TokenKind(enum.StrEnum):
    """What a part of a key is; the value is its name for users."""

    SEPARATOR = "separator"
    CONSTANT = "constant"
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    """A period of an hour or more, in which keys are equal."""
    TIME = "time"
    """An instant, or a period of less than an hour."""
    GUID = "GUID"
    TIMED_ID = "identifier that begins with a time"
    HASH = "hash"
    RANDOM = "random"


class SortOrder(enum.StrEnum):
    """How the texts of a token sort; the value is its name for users."""

    LATER = "ascending"
    """Larger numbers, and later times, sort later."""
    EARLIER = "descending"
    BROKEN = "does not follow the value"
    """It has a time or a number, and sorts otherwise."""
    TEXT = "alphabetical"
    NONE = "random"


_Read = Callable[[Mapping[str, str]], int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """A notation.

    Attributes:
        name: For users; each ``-`` of a date stands for its separator.
        pattern: Of the whole text.
        read: The value of the groups of the pattern; a `ValueError` or `OverflowError` if they have
            none. None for texts without a value.
        pieces: Words and separators of which a text consists.
        least: Different values from which on texts are told from numbers that mean something else;
            0 where no number of them is enough, as for ten digits.
    """

    name: str
    kind: TokenKind
    pattern: re.Pattern[str]
    read: _Read | None = None
    order: SortOrder = SortOrder.LATER
    pieces: int = 1
    least: int = 1

    def matches(self, text: str) -> bool:
        if self.read is None:
            return self.pattern.fullmatch(text) is not None
        return self.value(text) is not None

    def value(self, text: str) -> int | None:
        """UTC microseconds of a text; None for forms without a value, and for other texts."""
        found = self.pattern.fullmatch(text)
        if self.read is None or found is None:
            return None
        try:
            return self.read(found.groupdict(""))
        except (ValueError, OverflowError):
            return None


def number_value(digits: str) -> tuple[int, str]:
    """What sorts as the number does, whatever its length."""
    plain = digits.lstrip("0")
    return len(plain), plain


def _micros(at: dt.datetime) -> int:
    return (at.replace(tzinfo=at.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


def _calendar(parts: Mapping[str, str]) -> int:
    year = int(parts["y"])
    if not FIRST_YEAR <= year < END_YEAR:
        raise ValueError(year)
    if week := parts.get("week"):
        return _micros(dt.datetime.fromisocalendar(year, int(week), 1))
    month = parts.get("m") or "1"
    if month.isalpha():
        month = str(_MONTHS.index(month.lower()) + 1)
    if quarter := parts.get("q"):
        month = str(3 * int(quarter) - 2)
    at = dt.datetime(year, int(month), int(parts.get("d") or 1))
    at += dt.timedelta(
        hours=int(parts.get("h") or 0),
        minutes=int(parts.get("n") or 0),
        seconds=int(parts.get("s") or 0),
        microseconds=int((parts.get("f") or "0").ljust(6, "0")[:6]),
    )
    zone = (parts.get("z") or "Z").replace(":", "")
    if zone not in ("", "Z"):
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5]))
        at = at - offset if zone[0] == "+" else at + offset
    return _micros(at)


def _counted(unit_per_s: int, start: int = 0, *, most: int | None = None) -> _Read:
    """Reads a count of units since the epoch: from ``start`` at it, or down from ``most``."""

    def read(parts: Mapping[str, str]) -> int:
        count = int(parts["t"])
        since = (count if most is None else most - count) - start
        return _plausible(since * 1_000_000 // unit_per_s)

    return read


def is_plausible(micros: int) -> bool:
    """Whether rows may have been written at this time."""
    return micros // 1_000_000 in _PLAUSIBLE_S


def _plausible(micros: int) -> int:
    if not is_plausible(micros):
        raise ValueError(micros)
    return micros


def _ulid(parts: Mapping[str, str]) -> int:
    milliseconds = 0
    for digit in parts["t"].upper():
        milliseconds = milliseconds * 32 + _CROCKFORD.index(digit)
    return _plausible(milliseconds * 1000)


def _hexadecimal(unit_us: int) -> _Read:
    """Reads a count of units since the epoch in hexadecimal digits."""
    return lambda parts: _plausible(int(parts["t"].replace("-", ""), 16) * unit_us)


_GUID_7 = _hexadecimal(1000)
_FIELDS = {
    "yyyy": r"(?P<y>(?:19|20)\d\d)",
    "MMM": rf"(?P<m>{'|'.join(_MONTHS)})",
    "MM": r"(?P<m>0[1-9]|1[0-2])",
    "M": r"(?P<m>0?[1-9]|1[0-2])",
    "dd": r"(?P<d>0[1-9]|[12]\d|3[01])",
    "d": r"(?P<d>0?[1-9]|[12]\d|3[01])",
    "HH": r"(?P<h>[01]\d|2[0-3])",
    "mm": r"(?P<n>[0-5]\d)",
    "ss": r"(?P<s>[0-5]\d)",
    "fff": r"(?P<f>\d{3})",
    "Www": r"W(?P<week>[0-4]\d|5[0-3])",
    "Qq": r"Q(?P<q>[1-4])",
}
_FIELD = re.compile("|".join(sorted(_FIELDS, key=len, reverse=True)))
_ORDERED = re.compile(r"yyyy(\W?(MM|Www|Qq))?(\W?dd(\W?HH(mm(ss(fff)?)?)?)?)?")
"""Notations that sort by time: the largest unit first, all of a fixed width."""
_LEAST_VALUES = {"yyyy": 0, "yyyyMM": 5, "MMyyyy": 5}


def _date(name: str) -> Notation:
    first, *others = (_FIELD.sub(lambda found: _FIELDS[found[0]], part) for part in name.split("-"))
    same = "(?P=separator)"
    pattern = first if not others else f"{first}(?P<separator>[-._ ]){same.join(others)}"
    return Notation(
        name=name,
        kind=TokenKind.TIME if "mm" in name else TokenKind.DATE,
        pattern=re.compile(pattern, re.ASCII | re.IGNORECASE),
        read=_calendar,
        order=SortOrder.LATER if _ORDERED.fullmatch(name) else SortOrder.BROKEN,
        pieces=2 * len(others) + 1,
        least=_LEAST_VALUES.get(name, 1),
    )


_ISO_PATTERN = (
    r"(?P<y>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])-(?P<d>0[1-9]|[12]\d|3[01])"
    r"[T ](?P<h>[01]\d|2[0-3])"
    r"(?:[:.-]?(?P<n>[0-5]\d)(?:[:.-]?(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?)?"
    r"(?P<z>Z|[+-][01]\d:?[0-5]\d)?"
)
ISO = Notation(
    name="ISO date and time",
    kind=TokenKind.TIME,
    pattern=re.compile(_ISO_PATTERN, re.ASCII),
    read=_calendar,
)
ISO_WITHIN = re.compile(
    rf"(?<![0-9])(?:{re.sub('[?]P<.>', '?:', _ISO_PATTERN)})(?![0-9A-Za-z])", re.ASCII
)
"""Finds `ISO` in a key."""
ISO_HOUR = dataclasses.replace(ISO, name="yyyy-MM-ddTHH", kind=TokenKind.DATE)
"""`ISO` without minutes."""

_HEX = "[0-9a-fA-F]"


def _form(
    name: str, kind: TokenKind, pattern: str, read: _Read | None = None, **more: int
) -> Notation:
    order = SortOrder.NONE if read is None else SortOrder.LATER
    compiled = _of(pattern.replace("X", _HEX))
    return Notation(name=name, kind=kind, pattern=compiled, read=read, order=order, **more)


def _of(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _count(name: str, digits: str, read: _Read, order: SortOrder = SortOrder.LATER) -> Notation:
    return Notation(
        name=name,
        kind=TokenKind.TIME,
        pattern=_of(rf"(?P<t>\d{digits})"),
        read=read,
        order=order,
        # One number in a hundred of 18 digits is a plausible time, and one in nine of fewer.
        least=1 if digits.startswith(("{18", "{19")) else 0,
    )


DAY_FIRST, MONTH_FIRST = _date("dd-MM-yyyy"), _date("MM-dd-yyyy")
DAY_FIRST_PLAIN, MONTH_FIRST_PLAIN = _date("ddMMyyyy"), _date("MMddyyyy")
AMBIGUOUS = {DAY_FIRST: MONTH_FIRST, DAY_FIRST_PLAIN: MONTH_FIRST_PLAIN}
"""Texts may match both forms."""

NOTATIONS = (
    _form(
        "GUID, version 7",
        TokenKind.TIMED_ID,
        "(?P<t>X{8}-X{4})-7X{3}-[89abAB]X{3}-X{12}",
        _GUID_7,
        pieces=9,
    ),
    _form("GUID", TokenKind.GUID, "X{8}-(?:X{4}-){3}X{12}", pieces=9),
    *map(_date, ("yyyy-MM-dd-HH", "yyyy-MM-dd")),
    DAY_FIRST,
    MONTH_FIRST,
    *map(_date, ("dd-MMM-yyyy", "yyyy-M-d", "d-M-yyyy", "M-d-yyyy")),
    *map(_date, ("yyyy-MM", "yyyy-Www", "yyyy-Qq", "MM-yyyy", "MMM-yyyy", "yyyy-MMM")),
    *map(_date, ("yyyyMMddHHmmssfff", "yyyyMMddHHmmss", "yyyyMMddHHmm", "yyyyMMddHH", "yyyyMMdd")),
    DAY_FIRST_PLAIN,
    MONTH_FIRST_PLAIN,
    *map(_date, ("ddMMMyyyy", "yyyyMM", "MMyyyy", "yyyyWww", "yyyyQq", "yyyy")),
    Notation(
        name="yyyyMMddTHHmmss",
        kind=TokenKind.TIME,
        pattern=_of(
            r"(?P<y>(?:19|20)\d\d)(?P<m>\d\d)(?P<d>\d\d)T(?P<h>[01]\d|2[0-3])(?P<n>[0-5]\d)"
            r"(?:(?P<s>[0-5]\d)(?P<f>\d{3})?)?(?P<z>Z)?"
        ),
        read=_calendar,
    ),
    _count("seconds since 1970", "{10}", _counted(1)),
    _count("milliseconds since 1970", "{13}", _counted(1000)),
    _count("microseconds since 1970", "{16}", _counted(1_000_000)),
    _count(".NET ticks", "{18,19}", _counted(10_000_000, _TICKS_AT_EPOCH)),
    *(
        _count(name, digits, read, SortOrder.EARLIER)
        for name, digits, read in (
            (
                "inverted .NET ticks",
                "{19,20}",
                _counted(10_000_000, _TICKS_AT_EPOCH, most=_MOST_TICKS),
            ),
            ("2^63 - 1 - milliseconds", "{19,20}", _counted(1000, most=_MOST_INT64)),
            (
                "2^63 - 1 - .NET ticks",
                "{19,20}",
                _counted(10_000_000, _TICKS_AT_EPOCH, most=_MOST_INT64),
            ),
            ("inverted milliseconds", "{13}", _counted(1000, most=9_999_999_999_999)),
        )
    ),
    *(
        _form("ULID", TokenKind.TIMED_ID, f"(?P<t>[0-7]{digit}{{9}}){digit}{{16}}", _ulid)
        for digit in ("[0-9A-HJKMNP-TV-Z]", "[0-9a-hjkmnp-tv-z]")
    ),
    _form(
        "GUID, version 7, 32 hex digits",
        TokenKind.TIMED_ID,
        "(?P<t>X{12})7X{3}[89abAB]X{15}",
        _GUID_7,
    ),
    _form("GUID or MD5, 32 hex digits", TokenKind.GUID, "(?=.*[a-fA-F])(?=.*[0-9])X{32}"),
    _form(
        "object id, 24 hex digits",
        TokenKind.TIMED_ID,
        "(?=.*[a-fA-F])(?P<t>X{8})X{16}",
        _hexadecimal(1_000_000),
        least=5,
    ),
)
"""What texts are compared with, in this order."""

PREFIXED = _of(
    f"([a-zA-Z]+?)((?=.*[0-9])(?:{_HEX}{{64}}|{_HEX}{{40}}|{_HEX}{{32}})"
    "|[0-7][0-9A-HJKMNP-TV-Z]{25})"
)
"""An identifier behind letters, without a separator."""


def hash_form(length: int) -> Notation:
    return _form(counted(length, "hex digit"), TokenKind.HASH, f"X{{{length}}}")
