"""Parses ``$filter`` into a tree of the comparisons of keys.

Comparisons of other properties are leaves that any row may pass; `equal_values` reads some. The
operators, type prefixes and quotes are those that the table service and Azurite accept; a filter
that neither accepts is not an error here, because the endpoint answers it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from harness.model.entity import canonical_text

_TOKENS = re.compile(
    r"""\s*(?:(?P<prefix>[A-Za-z]*)(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
    r"""|(?P<bracket>[()])|(?P<word>[^\s()'"]+))"""
)
_FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_KEYS = ("PartitionKey", "RowKey")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NOT_PROPERTIES = frozenset((*_KEYS, "and", "or", "not", "true", "false", *_FLIPPED))
_MOST_DEPTH = 100
_TYPES = {"guid": "Edm.Guid", "datetime": "Edm.DateTime"}
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)[Ll]?")


@dataclasses.dataclass(frozen=True, slots=True)
class KeyComparison:
    """A comparison of a key with a text. ``operator`` is eq, ne, lt, le, gt or ge."""

    key: str
    operator: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A part that every row passes, or none."""

    passes: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Unknown:
    """A part about other properties: any row may pass it, and its negation.

    ``name`` and ``text`` are those of a comparison by eq: the property, and the canonical text of
    its value.
    """

    name: str = ""
    text: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Both:
    """``and``."""

    parts: tuple[Node, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Either:
    """``or``."""

    parts: tuple[Node, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Negated:
    """``not``."""

    part: Node


Node = KeyComparison | Constant | Unknown | Both | Either | Negated


class FilterError(ValueError):
    """The text is not a filter."""


def parse_filter(text: str) -> Node:
    """Return the tree of a filter; an empty filter passes every row.

    A `FilterError` says that the text is not a filter, or is nested more than 100 deep.
    """
    if not text.strip():
        return Constant(passes=True)
    parser = _Parser(_tokens(text))
    tree = parser.either(0)
    parser.end()
    return tree


def compared_properties(text: str) -> tuple[str, ...]:
    """Names of the properties, besides the keys, that a filter compares; empty if it is none."""
    try:
        tokens = _tokens(text)
    except FilterError:
        return ()
    words = dict.fromkeys(token.text for token in tokens if token.kind == "word")
    return tuple(one for one in words if one not in _NOT_PROPERTIES and _NAME.fullmatch(one))


def equal_values(text: str, names: Sequence[str]) -> dict[str, str]:
    """The values of named properties that every row has which passes a filter, as texts."""
    try:
        waiting = [parse_filter(text)]
    except FilterError:
        return {}
    found: dict[str, str] = {}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Both):
            waiting += node.parts
        elif isinstance(node, Unknown) and node.name in names and node.text is not None:
            found[node.name] = node.text
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Token:
    """A bracket, a word, or a quoted text, which has the type ``prefix`` if not empty."""

    kind: str
    text: str
    prefix: str = ""


def _tokens(text: str) -> list[_Token]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKENS.match(text, at)
        if match is None:
            raise FilterError(f"unreadable from character {at}")
        at = match.end()
        if (quoted := match["text"]) is not None:
            quote = quoted[0]
            plain = quoted[1:-1].replace(quote * 2, quote)
            tokens.append(_Token("text", plain, match["prefix"]))
        elif match["bracket"] is not None:
            tokens.append(_Token("bracket", match["bracket"]))
        else:
            tokens.append(_Token("word", match["word"]))
    return tokens


class _Parser:
    """Recursive descent: or, and, not, parentheses, comparison; the loosest first."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise FilterError(f"{self._tokens[self._at].text!r} is left over")

    def either(self, depth: int) -> Node:
        parts = [self._both(depth)]
        while self._taken("word", "or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self, depth: int) -> Node:
        parts = [self._single(depth)]
        while self._taken("word", "and"):
            parts.append(self._single(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _single(self, depth: int) -> Node:
        if depth > _MOST_DEPTH:
            raise FilterError("nested too deeply")
        if self._taken("word", "not"):
            return Negated(self._single(depth + 1))
        if not self._taken("bracket", "("):
            return self._comparison()
        inside = self.either(depth + 1)
        if not self._taken("bracket", ")"):
            raise FilterError("a parenthesis is not closed")
        return inside

    def _comparison(self) -> Node:
        left = self._operand()
        operator = self._tokens[self._at].text.lower() if self._at < len(self._tokens) else ""
        if operator in _FLIPPED and self._taken("word", operator):
            return _compared(left, operator, self._operand())
        # Without an operator: a constant, or a boolean property.
        if left.kind == "word" and left.text.lower() in ("true", "false"):
            return Constant(passes=left.text.lower() == "true")
        return Unknown()

    def _operand(self) -> _Token:
        if self._at >= len(self._tokens) or self._tokens[self._at].kind == "bracket":
            raise FilterError("a comparison is incomplete")
        self._at += 1
        return self._tokens[self._at - 1]

    def _taken(self, kind: str, text: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        if token.kind != kind or token.text.lower() != text:
            return False
        self._at += 1
        return True


def _compared(left: _Token, operator: str, right: _Token) -> Node:
    if left.kind == "text" and right.kind == "word":
        left, right, operator = right, left, _FLIPPED[operator]
    is_key = left.kind == "word" and left.text in _KEYS
    if is_key and right.kind == "text" and not right.prefix:
        return KeyComparison(left.text, operator, right.text)
    if left.kind == "word" and operator == "eq":
        return Unknown(left.text, _value_of(right))
    return Unknown()


def _value_of(token: _Token) -> str | None:
    """The canonical text of a literal; None if it is none."""
    text, prefix = token.text, token.prefix.lower()
    try:
        if token.kind == "text":
            if prefix in ("x", "binary"):
                return canonical_text(bytes.fromhex(text))
            return canonical_text(text, _TYPES.get(prefix, ""))
        if text.lower() in ("true", "false"):
            return text.lower()
        whole = _WHOLE_NUMBER.fullmatch(text)
        return canonical_text(int(whole[1]) if whole else float(text))
    except ValueError:
        return None
