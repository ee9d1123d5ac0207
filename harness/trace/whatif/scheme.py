"""A key scheme on paper: new keys made of the recorded ones, described in a small TOML file.

    properties = ["customerId"]                 # values that the trace has, if a key needs any
    [match]                                     # named groups of regular expressions
    partition_key = '(?P<day>[0-9-]+)__(?P<sensor>.+)'
    [keys]
    partition_key = "{sensor}_{day:month}"      # 2026-11-20__sensor7 -> sensor7_2026-11
    row_key = "{day}_{row_key}"

A field of a template names a group, ``partition_key``, ``row_key`` or a property; see
`harness.workload.keys.template`. What it depends on, its source, is a recorded key or a property.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from harness.model.errors import SetupError, cut
from harness.model.figures import listed
from harness.model.files import mistake, mistakes_error, read_toml_file
from harness.trace.operations import RecordedValues
from harness.workload.keys.beginnings import Beginning, of_pattern
from harness.workload.keys.template import PERIODS, Reference, Template, parse_template

LONGEST_PATTERN = 1000
_MOST_LISTED = 10
PARTITION_KEY, ROW_KEY = "partition_key", "row_key"
_KEYS = frozenset((PARTITION_KEY, ROW_KEY))
_EVEN = frozenset(("bucket", "hash", "random", "guid"))
_BEGINNINGS = frozenset(("", "first", *PERIODS))
"""Functions that keep the order of values."""
_FIRST_GROUP = re.compile(r"(?:\\[^a-zA-Z0-9]|[^\\\[\](){}?*+|^$.])*\(\?P<(\w+)>([^()]*)\)")
"""A group, and its content, before which a regular expression has literals only."""
_VARYING = re.compile(r"[+*?|]|\{\d*,")
_NO_GROUP = re.compile(r"there is no group '(\w+)'")

Rows = dict[str, dict[str, list[str]]]
"""RowKeys by table and by PartitionKey."""


class NewKey:
    """A new key: a template, with what each of its references depends on.

    Attributes:
        by_row: References that may differ between rows of a partition.
    """

    def __init__(self, template: Template, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.text, self.fill, self.parts = template.text, template.fill, template.parts
        self.references = template.references
        self.by_row = [one for one in self.references if self.sources(one) != {PARTITION_KEY}]

    def sources(self, reference: Reference) -> frozenset[str]:
        return frozenset(self._sources[name] for name in reference.names)

    @property
    def keeps_row_order(self) -> bool:
        """Whether rows of one partition keep their order: the recorded RowKey ends the new one."""
        last = self.parts[-1]
        return isinstance(last, Reference) and last.is_plain(ROW_KEY) and len(self.by_row) == 1

    @property
    def tells_apart(self) -> bool:
        """Whether it differs for rows of equal RowKeys in different partitions.

        It does where the recorded PartitionKey stands in it, and all else has the same length.
        """
        others = [one for one in self.references if not one.is_plain(PARTITION_KEY)]
        return len(others) < len(self.references) and all(
            one.function.name in _EVEN or self.sources(one) == {ROW_KEY} for one in others
        )


class Scheme:
    """How new keys are made of recorded ones.

    Attributes:
        table: The only table whose keys are replaced, in lower case; empty for all.
        patterns: Regular expressions with named groups over recorded keys.
        properties: Those that the keys are made of.
        spreads_any_row: Rows of one partition are spread evenly, or not at all, whatever their
            RowKeys are.
        identity: The keys stay as they were recorded.
        keeps_entities: No two entities can get the same keys.
        keeps_partitions: Nor do entities of one partition get different ones, or those of two the
            same, and RowKeys stay as they were recorded.
    """

    def __init__(
        self,
        *,
        name: str,
        partition_key: NewKey,
        row_key: NewKey,
        question: str,
        table: str,
        patterns: Mapping[str, re.Pattern[str]],
        content: Mapping[str, Any],
    ) -> None:
        self._content = content
        sources = [key.sources(one) for key in (partition_key, row_key) for one in key.by_row]
        self.properties = tuple(sorted(frozenset[str]().union(*sources) - _KEYS))
        self.name, self.question, self.table = name, question, table.lower()
        self.partition_template, self.row_template = partition_key, row_key
        self.patterns = patterns
        self.matches_row_key = ROW_KEY in patterns
        self.by_partition_key = not partition_key.by_row and not self.matches_row_key
        self.spreads_any_row = all(one.function.name in _EVEN for one in partition_key.by_row)
        self.row_part = _part_of(partition_key.by_row)
        """Makes the part of the new PartitionKey that depends on the recorded RowKey."""
        self.keeps_row_key = row_key.text == f"{{{ROW_KEY}}}"
        # Entities that no pattern matches, or with an unknown property, keep keys that others get.
        all_replaced = not (patterns or self.properties)
        self.keeps_entities = self.keeps_row_key and partition_key.tells_apart and all_replaced
        self.keeps_partitions = self.keeps_entities and not partition_key.by_row
        self.identity = self.keeps_partitions and partition_key.text == f"{{{PARTITION_KEY}}}"

    @property
    def keeps_row_order(self) -> bool:
        """Whether rows of one recorded partition that are in several keep their order over these.

        They do if nothing but what their RowKeys begin with says in which one they are. First
        characters are taken to be there; a whole group has to be of one length.
        """
        if not self.row_template.keeps_row_order or len(self.partition_template.by_row) != 1:
            return False
        [part] = self.partition_template.by_row
        if part.function.name not in _BEGINNINGS or part.names == (ROW_KEY,):
            return part.function.name in _BEGINNINGS
        pattern = self.patterns.get(ROW_KEY)
        begins = None if pattern is None else _FIRST_GROUP.match(pattern.pattern)
        if begins is None or part.names != (begins[1],):
            return False
        return bool(part.function.name) or _VARYING.search(begins[2]) is None

    def __reduce__(self) -> tuple[object, ...]:
        return parse_scheme, (self.name, self._content, self.name)

    def applies_to(self, table: str) -> bool:
        return not self.table or table.lower() == self.table

    def keys(
        self, partition_key: str, row_key: str, properties: RecordedValues = None
    ) -> tuple[str, str] | None:
        """The new keys; None where a regular expression does not match the recorded ones, and where
        a property is not known.
        """
        values = self.values(partition_key, row_key)
        if values is None or not self.takes_properties(properties, values):
            return None
        new_row_key = row_key if self.keeps_row_key else self.row_template.fill(values)
        return self.partition_template.fill(values), new_row_key

    def new_keys(
        self, table: str, partition_key: str, row_key: str, properties: RecordedValues = None
    ) -> tuple[str, str]:
        """The keys of an entity, which keeps those that have no new ones."""
        new = self.keys(partition_key, row_key, properties) if self.applies_to(table) else None
        return (partition_key, row_key) if new is None else new

    def new_rows(
        self, rows: Rows, properties: Mapping[tuple[str, str, str], RecordedValues]
    ) -> Iterator[tuple[str, str, tuple[str, str]]]:
        """Table, recorded RowKey and new keys of each row; properties are by table and keys."""
        for table, partitions in rows.items():
            for partition_key, row_keys in partitions.items():
                for row_key in row_keys:
                    values = properties.get((table, partition_key, row_key))
                    yield table, row_key, self.new_keys(table, partition_key, row_key, values)

    def values(self, partition_key: str, row_key: str | None) -> dict[str, str] | None:
        """The values of all groups; those of the RowKey only if it is known."""
        values = groups_of(PARTITION_KEY, partition_key, self.patterns.get(PARTITION_KEY))
        if values is None or (row_key is not None and not self.takes_row(row_key, values)):
            return None
        return values

    def begun(self, partition_key: Beginning | None, row_key: Beginning) -> dict[str, Beginning]:
        """What the values of keys begin with of which the beginning is known.

        Those of the PartitionKey are left out where it is None.
        """
        begun = {ROW_KEY: row_key}
        if partition_key is not None:
            begun[PARTITION_KEY] = partition_key
        for name in self.patterns.keys() & begun.keys():
            begun |= of_pattern(self.patterns[name].pattern, begun[name])
        return begun

    def takes_row(self, row_key: str, values: dict[str, str]) -> bool:
        """Set the values of the RowKey; False if its regular expression does not match."""
        values[ROW_KEY] = row_key
        return _match(self.patterns.get(ROW_KEY), row_key, values)

    def takes_properties(self, found: RecordedValues, values: dict[str, str]) -> bool:
        """Set the values of the properties; False if one is not known."""
        for name in self.properties:
            if found is None or name not in found:
                return False
            values[name] = found[name]
        return True


def _part_of(
    references: Sequence[Reference],
) -> Callable[[Mapping[str, str]], str | tuple[str, ...]]:
    if len(references) == 1 and len(references[0].names) == 1:
        [name], take = references[0].names, references[0].function.of
        return lambda values: take(values[name])
    return lambda values: tuple([reference.of(values) for reference in references])


def groups_of(source: str, text: str, pattern: re.Pattern[str] | None) -> dict[str, str] | None:
    """A text and the groups that a pattern finds in it, by name; None if it does not match."""
    values = {source: text}
    return values if _match(pattern, text, values) else None


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
    partition_key: str = f"{{{PARTITION_KEY}}}"
    row_key: str = f"{{{ROW_KEY}}}"


class _Match(_Settings):
    partition_key: str | None = None
    row_key: str | None = None


class _File(_Settings):
    question: str = ""
    table: str = ""
    properties: list[str] = []
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
    known = _sources(patterns, settings.properties)
    groups = itertools.chain(*(pattern.groupindex for pattern in patterns.values()))
    meanings = collections.Counter((*groups, *{*settings.properties}, *_KEYS))
    for group in sorted(name for name, meant in meanings.items() if meant > 1):
        wrong.append(f"match: the group {group!r} has two meanings; rename one")
    templates: dict[str, NewKey] = {}
    for key, text in settings.keys:
        try:
            templates[key] = NewKey(parse_template(text, known, "group"), known)
        except ValueError as error:
            remedy = ""
            if (missing := _NO_GROUP.match(str(error))) is not None:
                remedy = f'; a property is listed: properties = ["{missing[1]}"]'
            wrong.append(f"keys.{key}: {error}{remedy}")
    # A pattern with a mistake has groups that cannot be known.
    if len(patterns) < sum(text is not None for _, text in settings.match):
        wrong = [line for line in wrong if "there is no group" not in line]
    if wrong:
        raise mistakes_error(f"key scheme {file}", wrong)
    return Scheme(
        name=name,
        question=settings.question,
        table=settings.table,
        patterns=patterns,
        content=content,
        **templates,
    )


def _pattern(text: str) -> re.Pattern[str]:
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"the regular expression is longer than {LONGEST_PATTERN:,} characters")
    try:
        return re.compile(text)
    except re.error as error:
        at = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"invalid regular expression{at}: {error.msg}") from error
    except (RecursionError, OverflowError) as error:
        raise ValueError("the regular expression is too complex") from error


def _sources(patterns: Mapping[str, re.Pattern[str]], properties: Sequence[str]) -> dict[str, str]:
    """The source of each name that a field may have."""
    known = {name: name for name in (*properties, *_KEYS)}
    for key, pattern in patterns.items():
        known |= dict.fromkeys(pattern.groupindex, key)
    return known


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


def require_properties(scheme: Scheme, recorded: Collection[str]) -> None:
    """Raise `SetupError` if a trace lacks values that the keys of ``scheme`` are made of."""
    missing = [name for name in scheme.properties if name not in recorded]
    if missing:
        has = f"those of {cut(', '.join(recorded))}" if recorded else "no values of properties"
        raise SetupError(
            f"key scheme {scheme.name}: the trace lacks the values of {listed(missing)}; it has "
            f"{has}. Record them: --trace-properties {','.join(missing)}"
        )


def sample_lines(
    scheme: Scheme, keys: Sequence[tuple[str, str, RecordedValues]]
) -> list[tuple[str, str]]:
    """Recorded and new keys, as ``PartitionKey / RowKey``, of a few entities."""
    lines = []
    for partition_key, row_key, properties in keys:
        new = scheme.keys(partition_key, row_key, properties)
        shown = "not matched: keeps its keys" if new is None else " / ".join(new)
        lines.append((f"{partition_key} / {row_key}", shown))
    return lines
