"""A key scheme on paper: new keys made of the recorded ones, described in a small TOML file.

    [match]                                     # named groups of regular expressions
    partition_key = '(?P<day>[0-9-]+)__(?P<sensor>.+)'
    [keys]
    partition_key = "{sensor}_{day:month}"      # 2026-11-20__sensor7 -> sensor7_2026-11
    row_key = "{day}_{row_key}"

A template holds fixed text and fields. A field names a group, ``partition_key`` or ``row_key``
(several are joined by ``+``), and after a colon what is taken of it; see `FUNCTIONS`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import string
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from harness.model.entity import key_problem
from harness.model.errors import SetupError, cut, echoed
from harness.model.files import mistake, mistakes_error, read_toml_file

FUNCTIONS = {
    "year, month, day, hour": "of a date such as 2026-11-20T08, 20261120 or 2026-11-20 08:15",
    "hashN": "N hexadecimal digits of a hash, 1 to 8",
    "bucketN": "one of N buckets by hash, 2 to 10000, with leading zeros",
    "firstN, lastN": "the first or last N characters",
    "lower": "in lower case",
}
"""What a field may take of a value, for the help."""

_LONGEST_PATTERN = 1000
_MOST_BUCKETS = 10_000
_MOST_LISTED = 10
_DATE = re.compile(r"(\d{4})-?(\d\d)?-?(\d\d)?(?:[T _-]?(\d\d))?")
_DATE_PARTS = ("year", "month", "day", "hour")
_SIZED = re.compile(r"(hash|bucket|first|last)(0|[1-9][0-9]{0,4})")
_PARTITION_KEY, ROW_KEY = "partition_key", "row_key"


class KeySource(enum.Enum):
    """The recorded key that a part of a new key depends on."""

    PARTITION_KEY = enum.auto()
    ROW_KEY = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A part of a new key.

    Attributes:
        sources: The recorded keys that it depends on; none for fixed text.
        names: The groups, or keys, whose values are joined.
        take: What is taken of the joined value.
        function: Name of that, such as ``month``; empty for all of it.
        choices: Every value that it can have, where that is known before.
    """

    sources: frozenset[KeySource]
    names: tuple[str, ...]
    take: Callable[[str], str]
    function: str = ""
    choices: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the value is the recorded RowKey itself."""
        return self.names == (ROW_KEY,) and not self.function

    def of(self, values: Mapping[str, str]) -> str:
        """The part for the values of all groups."""
        names = self.names
        if len(names) == 1:
            return self.take(values[names[0]])
        return self.take("".join([values[name] for name in names]))


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """A new key: fixed text and fields, in order."""

    text: str
    parts: tuple[str | Field, ...]

    @property
    def fields(self) -> Iterator[Field]:
        return (part for part in self.parts if isinstance(part, Field))

    @property
    def needs_row_key(self) -> bool:
        return any(KeySource.ROW_KEY in field.sources for field in self.fields)

    @property
    def keeps_row_order(self) -> bool:
        """Whether rows of one partition keep their order: the recorded RowKey ends the new one."""
        last = self.parts[-1]
        by_row = [field for field in self.fields if KeySource.ROW_KEY in field.sources]
        return isinstance(last, Field) and last.plain and len(by_row) == 1

    def fill(self, values: Mapping[str, str]) -> str:
        return "".join([part if isinstance(part, str) else part.of(values) for part in self.parts])


class Scheme:
    """How new keys are made of recorded ones.

    Attributes:
        table: The only table whose keys are replaced, in lower case; empty for all.
        identity: The keys stay as they were recorded.
    """

    def __init__(
        self,
        *,
        name: str,
        partition_key: Template,
        row_key: Template,
        question: str = "",
        table: str = "",
        match_partition_key: re.Pattern[str] | None = None,
        match_row_key: re.Pattern[str] | None = None,
    ) -> None:
        self.name, self.question, self.table = name, question, table.lower()
        self.partition_template, self.row_template = partition_key, row_key
        self._match_partition_key, self._match_row_key = match_partition_key, match_row_key
        self.by_partition_key = not partition_key.needs_row_key and match_row_key is None
        self.matches_row_key = match_row_key is not None
        by_row = [field for field in partition_key.fields if KeySource.ROW_KEY in field.sources]
        self.row_part: Callable[[Mapping[str, str]], str | tuple[str, ...]] = _part_of(by_row)
        """Makes the part of the new PartitionKey that depends on the recorded RowKey."""
        self.keeps_row_key = row_key.text == f"{{{ROW_KEY}}}"
        self.identity = (
            self.keeps_row_key
            and partition_key.text == f"{{{_PARTITION_KEY}}}"
            and match_partition_key is match_row_key is None
        )

    def applies_to(self, table: str) -> bool:
        return not self.table or table.lower() == self.table

    def keys(self, partition_key: str, row_key: str) -> tuple[str, str] | None:
        """The new keys; None where a regular expression does not match the recorded ones."""
        values = self.values(partition_key, row_key)
        if values is None:
            return None
        new_row_key = row_key if self.keeps_row_key else self.row_template.fill(values)
        return self.partition_template.fill(values), new_row_key

    def values(self, partition_key: str, row_key: str | None) -> dict[str, str] | None:
        """The values of all groups; those of the RowKey only if it is known."""
        values = {_PARTITION_KEY: partition_key}
        if not _match(self._match_partition_key, partition_key, values):
            return None
        if row_key is not None and not self.takes_row(row_key, values):
            return None
        return values

    def takes_row(self, row_key: str, values: dict[str, str]) -> bool:
        """Set the values of the RowKey; False if its regular expression does not match."""
        values[ROW_KEY] = row_key
        return _match(self._match_row_key, row_key, values)


def _part_of(fields: Sequence[Field]) -> Callable[[Mapping[str, str]], str | tuple[str, ...]]:
    if len(fields) == 1 and len(fields[0].names) == 1:
        [name], take = fields[0].names, fields[0].take
        return lambda values: take(values[name])
    return lambda values: tuple([field.of(values) for field in fields])


def _match(pattern: re.Pattern[str] | None, key: str, values: dict[str, str]) -> bool:
    if pattern is None:
        return True
    match = pattern.fullmatch(key)
    if match is None:
        return False
    for name, value in match.groupdict("").items():
        values[name] = value
    return True


class _Settings(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class _Keys(_Settings):
    partition_key: str = f"{{{_PARTITION_KEY}}}"
    row_key: str = f"{{{ROW_KEY}}}"


class _Match(_Settings):
    partition_key: str | None = None
    row_key: str | None = None


class _File(_Settings):
    question: str = ""
    table: str = ""
    match: _Match = _Match()
    keys: _Keys


def as_recorded() -> Scheme:
    return parse_scheme("as recorded", {"keys": {}}, "")


def read_scheme(path: Path) -> Scheme:
    """Read a scheme from a file.

    Raises:
        SetupError: the file cannot be read, or is invalid; the message lists every mistake with
            its place.
    """
    _, content = read_toml_file(path, "key scheme")
    return parse_scheme(path.stem, content, path.name)


def parse_scheme(name: str, content: Mapping[str, Any], file: str) -> Scheme:
    """The scheme ``name`` of the content of a TOML file; raises as `read_scheme` does."""
    try:
        settings = _File.model_validate(content)
    except pydantic.ValidationError as error:
        mistakes = (mistake(item) for item in error.errors(include_url=False))
        raise mistakes_error(f"key scheme {file}", mistakes) from error
    wrong: list[str] = []
    patterns: dict[str, re.Pattern[str]] = {}
    for key, text in settings.match:
        if text is not None:
            try:
                patterns[key] = _pattern(text)
            except ValueError as error:
                wrong.append(f"match.{key}: {error}")
    known = _sources(patterns)
    for group in sorted(_twice(patterns)):
        wrong.append(f"match: the group {group!r} has two meanings; rename one")
    templates: dict[str, Template] = {}
    for key, text in settings.keys:
        try:
            templates[key] = _template(text, known)
        except ValueError as error:
            wrong.append(f"keys.{key}: {error}")
    # A pattern with a mistake has groups that cannot be known.
    if len(patterns) < sum(text is not None for _, text in settings.match):
        wrong = [line for line in wrong if "there is no group" not in line]
    if wrong:
        raise mistakes_error(f"key scheme {file}", wrong)
    return Scheme(
        name=name,
        question=settings.question,
        table=settings.table,
        match_partition_key=patterns.get(_PARTITION_KEY),
        match_row_key=patterns.get(ROW_KEY),
        **templates,
    )


def _pattern(text: str) -> re.Pattern[str]:
    if len(text) > _LONGEST_PATTERN:
        raise ValueError(f"the regular expression is longer than {_LONGEST_PATTERN:,} characters")
    try:
        return re.compile(text)
    except re.error as error:
        at = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"invalid regular expression{at}: {error.msg}") from error
    except (RecursionError, OverflowError) as error:
        raise ValueError("the regular expression is too complex") from error


def _sources(patterns: Mapping[str, re.Pattern[str]]) -> dict[str, KeySource]:
    """What each name that a field may have depends on."""
    known = {_PARTITION_KEY: KeySource.PARTITION_KEY, ROW_KEY: KeySource.ROW_KEY}
    for key, pattern in patterns.items():
        known |= dict.fromkeys(pattern.groupindex, known[key])
    return known


def _twice(patterns: Mapping[str, re.Pattern[str]]) -> set[str]:
    groups = [set(pattern.groupindex) for pattern in patterns.values()]
    reserved = {_PARTITION_KEY, ROW_KEY}
    return (set.intersection(*groups) if len(groups) > 1 else set()) | (
        reserved & set[str]().union(*groups)
    )


def _template(text: str, known: Mapping[str, KeySource]) -> Template:
    parts: list[str | Field] = []
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"{error} in {echoed(text)}; write a brace of the key twice") from error
    for literal, name, function, conversion in parsed:
        if literal:
            if problem := key_problem(literal):
                raise ValueError(f"{echoed(literal)} {problem}")
            parts.append(literal)
        if name is None:
            continue
        if conversion:
            raise ValueError(f"!{conversion} has no meaning in a field")
        names = tuple(one.strip() for one in name.split("+"))
        for one in names:
            if one not in known:
                raise ValueError(
                    f"there is no group {echoed(one)}; known are {', '.join(sorted(known))}"
                )
        take, choices = _function(function or "")
        sources = frozenset(known[one] for one in names)
        parts.append(Field(sources, names, take, function or "", choices))
    if not parts:
        # Both keys of an entity may be empty.
        parts.append("")
    return Template(text, tuple(parts))


def _function(name: str) -> tuple[Callable[[str], str], tuple[str, ...]]:
    """What a field takes of a value, and all its values where they are known."""
    if not name:
        return str, ()
    if name in _DATE_PARTS:
        return functools.partial(_date, _DATE_PARTS.index(name) + 1), ()
    if name == "lower":
        return str.lower, ()
    match = _SIZED.fullmatch(name)
    size = int(match[2]) if match is not None else 0
    if match is None or (match[1] != "bucket" and not size) or (match[1] == "hash" and size > 8):
        raise ValueError(f"there is no function {echoed(name)}; there are {'; '.join(FUNCTIONS)}")
    if match[1] == "first":
        return lambda value: value[:size], ()
    if match[1] == "last":
        return lambda value: value[-size:], ()
    if match[1] == "hash":
        few = 16**size if 16**size <= _MOST_BUCKETS else 0
        digits = tuple(f"{one:0{size}x}" for one in range(few))
        return lambda value: f"{_crc32(value):08x}"[-size:], digits
    if not 2 <= size <= _MOST_BUCKETS:
        raise ValueError(f"{name}: there are 2 to {_MOST_BUCKETS} buckets")
    width = len(str(size - 1))
    buckets = tuple(f"{number:0{width}}" for number in range(size))
    return lambda value: buckets[_crc32(value) % size], buckets


def _crc32(value: str) -> int:
    return zlib.crc32(value.encode("utf-8", "surrogatepass"))


def _date(parts: int, value: str) -> str:
    """The date down to ``parts`` parts, such as 2026-11; the value itself if it is no date."""
    match = _DATE.match(value)
    if match is None or None in match.groups()[:parts]:
        return value
    year, month, day, hour = match.groups()
    date = "-".join((year, month or "", day or "")[: min(parts, 3)])
    return f"{date}T{hour}" if parts == 4 else date


def require_table(scheme: Scheme, tables: Collection[str]) -> None:
    """Raise `SetupError` if none of the tables of a trace is that of ``scheme``."""
    if any(map(scheme.applies_to, tables)):
        return
    if {*tables} == {""}:
        raise SetupError(
            f"key scheme {scheme.name}: the trace has one table and does not name it: leave out "
            "`table`"
        )
    listed = ", ".join(map(repr, sorted(tables)[:_MOST_LISTED]))
    raise SetupError(
        f"key scheme {scheme.name}: the trace has no table {scheme.table!r}; it has {cut(listed)}"
    )


def sample_lines(scheme: Scheme, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Recorded and new keys, as ``PartitionKey / RowKey``, of a few entities."""
    lines = []
    for partition_key, row_key in keys:
        new = scheme.keys(partition_key, row_key)
        shown = "not matched: keeps its keys" if new is None else " / ".join(new)
        lines.append((f"{partition_key} / {row_key}", shown))
    return lines
