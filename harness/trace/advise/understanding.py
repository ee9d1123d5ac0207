"""What the keys of a table are made of, as named fields that a key scheme can use.

The parts are those of `harness.model.key_tokens`, unless ``--fields`` names them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.model.errors import echoed
from harness.model.key_notations import SortOrder, TokenKind
from harness.model.key_tokens import KeyToken, tokens_of
from harness.trace.advise.traffic import PropertySample
from harness.trace.whatif.scheme import LONGEST_PATTERN, PARTITION_KEY, ROW_KEY

_WORD_BEFORE = re.compile(r"([A-Za-z]{2,20})[^A-Za-z]*\Z")
_NAMES = {
    TokenKind.TEXT: "text",
    TokenKind.NUMBER: "number",
    TokenKind.DATE: "date",
    TokenKind.TIME: "time",
    TokenKind.GUID: "guid",
    TokenKind.TIMED_ID: "id",
    TokenKind.HASH: "hash",
    TokenKind.RANDOM: "random",
}
_FIELD = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)
_MOST_PARTS = 6
"""Of a key; one with more is taken whole."""
_MATCHING = 0.995
"""Share of the keys that a layout has to match: the others would keep their keys, hot or not."""
_APART = 0.9
"""Of all rows."""
_AGREEING = 0.5
"""The same of a template of ``--fields``, which may be meant for one table of several."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """A part of a key that differs from key to key.

    Attributes:
        of_row: It is a part of the RowKey.
        of_property: It is no part of a key, but a property of the entity.
        values: Different values in the sample, in order.
        together: The values that differ within a transaction, each group once.
        of_row_alone: Nearly every row has another value.
        with_key_of_row: Nearly every row of a partition has another value.
    """

    name: str
    token: KeyToken
    of_row: bool = False
    of_property: bool = False
    values: tuple[str, ...]
    together: tuple[tuple[str, ...], ...] = ()
    of_row_alone: bool = False
    with_key_of_row: bool = False

    def tied(self, take: Callable[[str], str] = str) -> bool:
        """Whether all rows of each transaction have the same value, or ``take`` of it."""
        return all(len({*map(take, group)}) == 1 for group in self.together)

    @property
    def field(self) -> str:
        return f"{{{self.name}}}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """The parts of the keys of a table.

    Attributes:
        patterns: Regular expressions with a group for each part, by key. A key without one is a
            part itself.
        parts: Those of the PartitionKey first.
        fixed: The PartitionKeys are the same, or have digits beside their parts that may differ
            another time, as those of one day do.
    """

    patterns: Mapping[str, str]
    parts: tuple[KeyPart, ...]
    fixed: bool = False

    def of(self, row: bool) -> tuple[KeyPart, ...]:
        """The parts of one of the keys."""
        parts = (part for part in self.parts if not part.of_property)
        return tuple(part for part in parts if part.of_row is row)


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    """A regular expression with named groups, and what each group is."""

    pattern: str
    tokens: Mapping[str, KeyToken]


def understood(
    keys: Sequence[tuple[str, str]],
    together: Sequence[tuple[str, tuple[str, ...]]] = (),
    given: Mapping[str, str] | None = None,
    properties: Sequence[PropertySample] = (),
) -> Understanding:
    """What ``keys``, PartitionKeys and RowKeys, are made of.

    ``together`` are RowKeys that transactions wrote together, with their PartitionKey; ``given``
    overrides what is found: see `fields_of`; ``properties`` may be parts of new keys.
    """
    layouts: dict[str, _Layout] = {}
    taken = {PARTITION_KEY, ROW_KEY, *(one.name for one in properties)}
    for place, key in enumerate((PARTITION_KEY, ROW_KEY)):
        texts = sorted({pair[place] for pair in keys})
        layout = _given(texts, (given or {}).get(key)) or _found(texts, taken, bool(place))
        if layout is not None:
            layouts[key] = layout
            taken |= layout.tokens.keys()
    compiled = {key: re.compile(layout.pattern) for key, layout in layouts.items()}
    split = [values for pair in keys if (values := _split(pair, compiled)) is not None]
    tied = [
        [values for row in rows if (values := _split((key, row), compiled)) is not None]
        for key, rows in together
    ]
    tokens = {key: layout.tokens for key, layout in layouts.items()}
    for place, key in enumerate((PARTITION_KEY, ROW_KEY)):
        tokens.setdefault(key, {key: _whole([pair[place] for pair in keys])})
    parts = tuple(
        KeyPart(
            name=name,
            token=token,
            of_row=key == ROW_KEY,
            values=tuple(sorted({values[name] for values in split})),
            of_row_alone=_tell_apart(split, name),
            with_key_of_row=_tell_apart(split, PARTITION_KEY, name),
            together=_groups(name, tied),
        )
        for key in (PARTITION_KEY, ROW_KEY)
        for name, token in tokens[key].items()
    )
    parts += tuple(
        KeyPart(
            name=one.name,
            token=_single(one.values),
            of_property=True,
            values=one.values,
            together=one.together,
        )
        for one in properties
        if one.values
    )
    differing = tuple(part for part in parts if len(part.values) > 1)
    return Understanding(
        patterns={key: layout.pattern for key, layout in layouts.items()},
        parts=differing,
        fixed=bool(split) and _fixed(split[0][PARTITION_KEY], compiled, differing),
    )


def _fixed(key: str, compiled: Mapping[str, re.Pattern[str]], differing: Sequence[KeyPart]) -> bool:
    """Whether there is more to a PartitionKey than the parts that differ: a digit, or all of it."""
    own = [part.name for part in differing if not part.of_row and not part.of_property]
    if not own or own == [PARTITION_KEY]:
        return not own
    found = compiled[PARTITION_KEY].fullmatch(key)
    assert found is not None
    spans = sorted(found.span(name) for name in own if found[name] is not None)
    ends = [0, *itertools.chain(*spans), len(key)]
    between = (key[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    return any(one.isdigit() for text in between for one in text)


def _tell_apart(rows: Sequence[Mapping[str, str]], *names: str) -> bool:
    return len({tuple(map(row.__getitem__, names)) for row in rows}) > _APART * len(rows)


def _groups(name: str, tied: Iterable[Iterable[dict[str, str]]]) -> tuple[tuple[str, ...], ...]:
    groups = {tuple(sorted({values[name] for values in rows})): None for rows in tied}
    return tuple(group for group in groups if len(group) > 1)


def _split(pair: tuple[str, str], compiled: Mapping[str, re.Pattern[str]]) -> dict[str, str] | None:
    """The value of each group and of both keys; None where a key has another layout."""
    values = {PARTITION_KEY: pair[0], ROW_KEY: pair[1]}
    for key, text in zip((PARTITION_KEY, ROW_KEY), pair, strict=True):
        if (pattern := compiled.get(key)) is not None:
            if (found := pattern.fullmatch(text)) is None:
                return None
            values |= found.groupdict("")
    return values


def _found(texts: Sequence[str], taken: Iterable[str], of_row: bool) -> _Layout | None:
    """The layout of nearly all keys, or what layouts of RowKeys have in common; None without any.

    Rows that belong together may begin alike, as an order and its lines. A PartitionKey is not
    kept whole, so all of it has to be known.
    """
    shape = tokens_of(texts)
    if shape.others and of_row:
        shape = tokens_of(texts, together=True)
    varying = [token for token in shape.tokens if token.varies]
    if not 0 < len(varying) <= _MOST_PARTS:
        return None
    known, tokens, before = set(taken), dict[str, KeyToken](), ""
    exact = simple = ""
    for token, after in itertools.zip_longest(shape.tokens, shape.tokens[1:]):
        if "" in token.examples:
            # What only some keys have.
            exact, simple, before = exact + token.pattern, simple + ".*", ""
            continue
        if not token.varies:
            before = token.examples[0]
            exact, simple = exact + token.pattern, simple + re.escape(before).replace("\\-", "-")
            continue
        word = _WORD_BEFORE.search(before)
        name = _free(word[1].lower() if word else _NAMES.get(token.kind, "text"), known, of_row)
        known.add(name)
        tokens[name] = token
        before = ""
        follows = "" if after is None else after.examples[0][:1]
        short = f"[^{re.escape(follows)}]+" if follows else ".+"
        short = token.pattern if token.kind is TokenKind.NUMBER else short
        exact, simple = f"{exact}(?P<{name}>{token.pattern})", f"{simple}(?P<{name}>{short})"
    if not tokens:
        return None
    compiled, easy = re.compile(exact), re.compile(simple)
    split = [match.groups() for text in texts if (match := compiled.fullmatch(text))]
    easily = [match.groups() for text in texts if (match := easy.fullmatch(text))]
    if len(easily) >= len(split) and len(easily) >= _MATCHING * len(texts):
        return _Layout(simple, tokens)
    if len(split) < _MATCHING * len(texts) or len(exact) > LONGEST_PATTERN:
        return None
    return _Layout(exact, tokens)


def _free(name: str, known: Iterable[str], of_row: bool) -> str:
    """A name that is not known yet: ``number``, ``row_number``, ``number2``."""
    tried = [name, *([f"row_{name}"] if of_row else []), *(f"{name}{n}" for n in range(2, 20))]
    return next(one for one in tried if one not in known)


def _given(texts: Sequence[str], pattern: str | None) -> _Layout | None:
    """The layout of a regular expression; None without one, and where it matches few keys."""
    if pattern is None:
        return None
    compiled = re.compile(pattern)
    found = [match.groupdict("") for text in texts if (match := compiled.fullmatch(text))]
    if len(found) < _AGREEING * len(texts) or not found:
        return None
    tokens = {name: _single([one[name] for one in found]) for name in compiled.groupindex}
    return _Layout(pattern, tokens)


def _single(values: Sequence[str]) -> KeyToken:
    """What values of one part are."""
    shape = tokens_of(values)
    return shape.tokens[0] if len(shape.tokens) == 1 else _whole(values)


def _whole(values: Sequence[str]) -> KeyToken:
    """A text that is not taken apart."""
    return KeyToken(
        kind=TokenKind.TEXT,
        examples=tuple(dict.fromkeys(values[:3])),
        distinct=len({*values}),
        order=SortOrder.TEXT,
        pattern=".*",
    )


def fields_of(text: str) -> tuple[str, str]:
    """The key and the regular expression of an argument of ``--fields``.

    It is ``partition_key=TEMPLATE`` or ``row_key=TEMPLATE``, such as
    ``partition_key={sensor}_{day}``, or a regular expression with named groups in its place.

    Raises:
        ValueError: it is invalid; the message is a sentence.
    """
    key, separator, template = text.partition("=")
    if not separator or key not in (PARTITION_KEY, ROW_KEY) or not template:
        raise ValueError(f"{echoed(text)}: write {PARTITION_KEY}=TEMPLATE or {ROW_KEY}=TEMPLATE")
    pattern = template if "(?P<" in template else _pattern_of(template)
    try:
        groups = re.compile(pattern).groupindex
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{echoed(template)} is no regular expression: {error}") from error
    if not groups or {PARTITION_KEY, ROW_KEY} & groups.keys() or len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"{echoed(template)} names no field, a key itself, or is too long")
    return key, pattern


def _pattern_of(template: str) -> str:
    """The regular expression of a template: a field ends where the text behind it begins."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{echoed(template)}: a brace has no partner") from error
    pattern = ""
    for place, (literal, name, *_) in enumerate(pieces):
        pattern += re.escape(literal)
        if name is None:
            continue
        if not _FIELD.fullmatch(name):
            raise ValueError(f"{echoed(template)}: {echoed(name)} is no name of a field")
        follows = pieces[place + 1][0] if place + 1 < len(pieces) else ""
        if place + 1 < len(pieces) and not follows:
            raise ValueError(
                f"{echoed(template)}: nothing shows where {name} ends; write a regular expression"
            )
        pattern += f"(?P<{name}>{f'[^{re.escape(follows[0])}]' if follows else '.'}+)"
    return pattern
