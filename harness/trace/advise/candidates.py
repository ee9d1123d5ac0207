"""Key schemes that the parts of a table's keys allow.

A candidate keeps the recorded RowKey at the end of its own, so that rows of a partition keep their
order, with what its PartitionKey no longer says in front of it, so that no two entities share keys.
Parts of the RowKey that differ within a transaction are not in its PartitionKey. A time in inverted
order moves the end at which a table grows, and spreads nothing: it is not among them.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.model.figures import counted
from harness.model.key_notations import TokenKind
from harness.model.operation import WHOLE_TABLE
from harness.trace.advise.understanding import KeyPart, Understanding
from harness.trace.operations import TracedQuery
from harness.trace.whatif.queries import treated
from harness.trace.whatif.scheme import PARTITION_KEY, ROW_KEY, Scheme, parse_scheme
from harness.workload.keys.template import PERIODS, function_named

MOST_CANDIDATES = 100
_BUCKETS = (4, 16, 8, 64)
_WHOLE = f"{{{PARTITION_KEY}}}"
_MANY = 10**9
BETWEEN = "\u2502"
"""Between the keys of `each_row`, so that these can be told."""
_MOST_OF_KEY = 4
"""Parts of a key that are combined."""
_MOST_OF_QUERIES = 0.9
_DIGITS_A_SECOND = {
    "seconds since 1970": 0,
    "milliseconds since 1970": 3,
    "inverted milliseconds": 3,
    "microseconds since 1970": 6,
    ".NET ticks": 7,
    "inverted .NET ticks": 7,
}
_COUNTED_PERIODS = {5: "28 hours", 4: "3 hours", 3: "17 minutes"}
"""What as many of the last digits of seconds are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A key scheme on trial.

    Attributes:
        idea: What it does, in words.
        distance: How far it is from today's keys: 1 for a suffix or a prefix, more for more.
    """

    name: str
    idea: str
    partition_key: str
    row_key: str
    distance: int
    content: Mapping[str, Any]

    @property
    def scheme(self) -> Scheme:
        return parse_scheme(self.name, self.content, self.name)

    @property
    def properties(self) -> list[str]:
        """Those that its keys are made of."""
        return [*self.content.get("properties", ())]

    @property
    def toml(self) -> str:
        """The scheme as a file; basic strings of TOML are those of JSON."""
        lines = [
            f"{key} = {_text(one) if isinstance(one, str) else json.dumps(one)}"
            for key, one in self.content.items()
            if not isinstance(one, dict)
        ]
        for name, values in self.content.items():
            if isinstance(values, dict):
                lines += ["", f"[{name}]", *(f"{key} = {_text(values[key])}" for key in values)]
        return "\n".join(lines) + "\n"


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """What a new PartitionKey takes of a part of today's keys."""

    part: KeyPart | None
    function: str = ""
    words: str = ""

    @property
    def field(self) -> str:
        name = PARTITION_KEY if self.part is None else self.part.name
        return f"{{{name}:{self.function}}}" if self.function else f"{{{name}}}"

    @property
    def said(self) -> str:
        return self.words or _said(PARTITION_KEY if self.part is None else self.part.name)

    @property
    def tied(self) -> bool:
        """Whether it is the same in all rows of each transaction."""
        return self.part is None or self.part.tied(function_named(self.function).of)


def each_row(found: Understanding, table: str) -> Candidate:
    """Every entity in a partition of its own: no key has a less hot partition."""
    key = f"{_WHOLE}{BETWEEN}{{{ROW_KEY}}}"
    return _candidate(found, table, "each-row", "every row is a partition", key, "", 9)


def candidates(
    found: Understanding, table: str, *, transactions: bool, queries: bool
) -> list[Candidate]:
    """The candidates, those that change least first.

    Args:
        transactions: Rows are written together, so that what differs within a transaction is left
            out.
        queries: Partitions are read as a whole or in ranges, so that not every row can have one.
    """
    made: dict[tuple[str, str], Candidate] = {}
    own, rows = (found.of(row)[:_MOST_OF_KEY] for row in (False, True))
    rows += tuple(part for part in found.parts if part.of_property)[:_MOST_OF_KEY]
    scatter = [ROW_KEY] if not transactions else []
    scatter += [part.name for part in rows if part.name != ROW_KEY and part.tied()]
    few = {part.name: len(part.values) for part in rows if part.of_property}
    for core in _cores(own, rows, queries=queries):
        if not all(piece.tied for piece in core):
            continue
        named = {piece.part.name for piece in core if piece.part}
        plain, said, rest, distance = _written(core, found)
        tried = [] if plain == _WHOLE else [(said, plain, distance)]
        for name in scatter:
            for number in _BUCKETS if name not in named else ():
                if number >= few.get(name, _MANY):
                    continue
                words, bucket = f"one of {number} buckets by", f"{{{name}:bucket{number}}}"
                far = distance + (name != ROW_KEY)
                tried.append((f"{said} and {words} {_said(name)}", f"{plain}-{bucket}", far))
                if plain == _WHOLE:
                    # Buckets of one key are no neighbours then: they spread over servers too.
                    words = f"{words} {_said(name)} before {said}"
                    tried.append((words, f"{bucket}-{plain}", far))
        if plain == _WHOLE:
            tried.append(("a hash before today's key", f"{{{PARTITION_KEY}:hash2}}-{plain}", 1))
        for words, key, far in tried:
            if (key, rest) not in made:
                name = _named(key, {one.name for one in made.values()})
                made[key, rest] = _candidate(found, table, name, words, key, rest, far)
    return sorted(made.values(), key=lambda one: one.distance)[:MOST_CANDIDATES]


def of_longer_time(
    found: Understanding, table: str, ranges: Sequence[TracedQuery]
) -> Candidate | None:
    """The shortest time that makes one partition of what a query over a range of them reads."""
    own = found.of(False)[:_MOST_OF_KEY]
    for part in own if ranges else ():
        others = [_Piece(one) for one in own if one is not part]
        for period in reversed(list(_periods(part))):
            key, said, rest, distance = _written((*others, period), found)
            tried = _candidate(found, table, _named(key, ()), said, key, rest, distance)
            scheme = tried.scheme
            read = [treated(scheme, table, WHOLE_TABLE, query).ranges for query in ranges]
            alone = sum(len(one) == 1 and not one[0].several for one in read)
            if alone >= _MOST_OF_QUERIES * len(read):
                return tried
    return None


def splitting(found: Understanding, table: str) -> Candidate:
    """Buckets by row, which split transactions: what they would bring is worth knowing."""
    key = f"{_WHOLE}-{{{ROW_KEY}:bucket16}}"
    return _candidate(found, table, "split-transactions", "16 buckets by row", key, "", 1)


def _written(core: Sequence[_Piece], found: Understanding) -> tuple[str, str, str, int]:
    """PartitionKey, idea, what begins the RowKey, and distance of keys without buckets.

    Today's key stays whole where it has more than its parts say: keys of another day may be equal
    without it.
    """
    kept = {piece.part.name for piece in core if piece.part and not piece.function}
    whole = any(piece.part is None for piece in core)
    own = found.of(False)
    lost = [] if whole else [part.field for part in own if part.name not in kept]
    rest, away = "".join(f"{field}_" for field in lost), len(lost)
    if not whole and (found.fixed or len(own) > _MOST_OF_KEY):
        rest, away = f"{_WHOLE}_", max(1, away)
    return (
        "_".join(piece.field for piece in core),
        " and ".join(piece.said for piece in core),
        rest,
        len(core) + (0 if whole else 1 + away),
    )


def _said(name: str) -> str:
    return {PARTITION_KEY: "today's key", ROW_KEY: "row"}.get(name, name)


def _cores(
    own: Sequence[KeyPart], rows: Sequence[KeyPart], *, queries: bool
) -> Iterator[tuple[_Piece, ...]]:
    """What decides about the partition, without buckets."""
    yield (_Piece(None),)
    # Orders of parts of today's key: fewer of them, and another one first.
    for count in range(len(own), 0, -1):
        for chosen in itertools.permutations(own, count):
            if count == len(own) and (chosen == tuple(own) or count == 1):
                continue
            if 1 < count < len(own) and list(chosen) != sorted(chosen, key=own.index):
                continue
            yield tuple(map(_Piece, chosen))
    for part in own:
        others = [_Piece(one) for one in own if one is not part]
        for period in _periods(part):
            yield (*others, period)
    for part in rows:
        forms = [*_periods(part), _Piece(part)]
        for form in forms:
            # Where partitions are read, not every row can have one.
            apart = queries and not form.function
            alone: list[tuple[_Piece, ...]] = [(form,)]
            both = [(_Piece(None), form), (form, _Piece(None))]
            alone += [(_Piece(kept), form) for kept in own if len(own) > 1]
            alone = [] if apart and part.of_row_alone else alone
            both = [] if apart and part.with_key_of_row else both
            yield from (*alone, *both) if part.of_property else (*both, *alone)


def _periods(part: KeyPart) -> Iterator[_Piece]:
    """Longer times than that of a part, and what numbers of one length begin with."""
    if part.token.kind is TokenKind.NUMBER and len({*map(len, part.values)}) == 1:
        length = len(part.values[0])
        for first in range(length - 1, max(length - 4, 1), -1):
            if 1 < len({value[:first] for value in part.values}) < len(part.values):
                words = f"the first {counted(first, 'digit')} of {part.name}"
                yield _Piece(part, f"first{first}", words)
    if part.token.kind not in (TokenKind.DATE, TokenKind.TIME):
        return
    sample = part.values[:: max(1, len(part.values) // 50)]
    digits = _DIGITS_A_SECOND.get(part.token.form)
    if digits is None:
        for period in PERIODS:
            take = function_named(period).of
            made = {take(value) for value in sample}
            if made.isdisjoint(sample) and 1 <= len(made) < len(sample):
                yield _Piece(part, period, f"{period} of {part.name}")
    elif len({len(value) for value in sample}) == 1:
        for left, words in _COUNTED_PERIODS.items():
            first = len(sample[0]) - digits - left
            yield _Piece(part, f"first{first}", f"{words} of {part.name}")


def _named(partition_key: str, taken: Iterable[str]) -> str:
    """A name for a file: ``tenant-row-bucket16``."""
    text = partition_key.replace(_WHOLE, "key").replace(PARTITION_KEY, "key")
    text = text.replace(ROW_KEY, "row").replace("_", "-")
    plain = "".join(one if one.isalnum() else "-" for one in text.replace("}", "-"))
    name = "-".join(filter(None, plain.split("-")))[:40]
    numbered = itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2)))
    known = set(taken)
    return next(one for one in numbered if one not in known)


def _candidate(
    found: Understanding,
    table: str,
    name: str,
    idea: str,
    partition_key: str,
    rest: str,
    distance: int,
) -> Candidate:
    row_key = f"{rest}{{{ROW_KEY}}}"
    named = partition_key + row_key
    used = [one for one in found.parts if one.field in named or f"{{{one.name}:" in named]
    content: dict[str, Any] = {
        "question": f"What if {idea} decided about the partition?",
        "table": table,
        "properties": [one.name for one in used if one.of_property],
        "match": {
            key: found.patterns[key]
            for key, row in ((PARTITION_KEY, False), (ROW_KEY, True))
            if key in found.patterns
            and any(one.of_row is row for one in used if not one.of_property)
        },
        "keys": {PARTITION_KEY: partition_key, ROW_KEY: row_key},
    }
    content = {name: value for name, value in content.items() if value}
    return Candidate(name, idea, partition_key, row_key, distance, content)


def _text(value: str) -> str:
    """A literal string where that can hold the text: regular expressions stay readable."""
    if value.isprintable() and "\\" in value and "'" not in value:
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
