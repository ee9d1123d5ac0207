"""Parses ``$filter`` into its comparisons.

The operators, type prefixes and quotes are those that the table service and Azurite accept; a
filter that neither accepts is not an error here, because the endpoint answers it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.model.entity import canonical_text

_TOKENS = re.compile(
    r"""\s*(?:(?P<prefix>[A-Za-z]*)(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
    r"""|(?P<bracket>[()])|(?P<word>[^\s()'"]+))"""
)
_FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_KEYS = ("PartitionKey", "RowKey")
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORDS = frozenset(("true", "false"))
_MOST_DEPTH = 100
_TYPES = {"guid": "Edm.Guid", "datetime": "Edm.DateTime"}
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)[Ll]?")


class PropertyComparison(NamedTuple):
    """A comparison of a property with a value. ``operator`` is eq, ne, lt, le, gt or ge.

    Attributes:
        text: The canonical text of the value; None if it is not known.
        required: Every row that passes the filter satisfies it: nothing but ``and`` joins it.
    """

    name: str
    operator: str
    text: str | None
    required: bool = True


class FilterError(ValueError):
    """The text is not a filter."""


def parse_filter(text: str) -> list[PropertyComparison]:
    """Return the comparisons of a filter, in its order; of an empty one none.

    A `FilterError` says that the text is not a filter, or is nested more than 100 deep.
    """
    parser = _Parser(_tokens(text))
    if text.strip():
        parser.either(0)
        parser.end()
    return parser.found


def equal_values(text: str, names: Sequence[str]) -> dict[str, str]:
    """The values of named properties that every row has which passes a filter, as texts."""
    try:
        found = parse_filter(text)
    except FilterError:
        return {}
    return {
        one.name: one.text
        for one in found
        if one.required and one.operator == "eq" and one.name in names and one.text is not None
    }


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


_TRUE = _Token("word", "true")


class _Parser:
    """Recursive descent: or, and, not, parentheses, comparison; the loosest first."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.found: list[PropertyComparison] = []

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise FilterError(f"{self._tokens[self._at].text!r} is left over")

    def either(self, depth: int) -> None:
        start, parts = len(self.found), 1
        self._both(depth)
        while self._taken("word", "or"):
            parts += 1
            self._both(depth)
        if parts > 1:
            self._release(start)

    def _both(self, depth: int) -> None:
        self._single(depth)
        while self._taken("word", "and"):
            self._single(depth)

    def _single(self, depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise FilterError("nested too deeply")
        if self._taken("word", "not"):
            start = len(self.found)
            self._single(depth + 1)
            self._release(start)
        elif not self._taken("bracket", "("):
            self._comparison()
        else:
            self.either(depth + 1)
            if not self._taken("bracket", ")"):
                raise FilterError("a parenthesis is not closed")

    def _release(self, start: int) -> None:
        """A row may pass without the comparisons since a place."""
        self.found[start:] = [one._replace(required=False) for one in self.found[start:]]

    def _comparison(self) -> None:
        left = self._operand()
        operator = self._tokens[self._at].text.lower() if self._at < len(self._tokens) else ""
        if operator not in _FLIPPED or not self._taken("word", operator):
            # Without an operator: a constant, or a boolean property.
            self._compared(left, "eq", _TRUE)
            return
        right = self._operand()
        self._compared(left, operator, right)
        self._compared(right, _FLIPPED[operator], left)

    def _compared(self, left: _Token, operator: str, right: _Token) -> None:
        """Note a comparison, if it is of a property."""
        name = left.text
        if left.kind == "word" and name.lower() not in _WORDS and _NAME.fullmatch(name):
            known = name not in _KEYS or (right.kind == "text" and not right.prefix)
            self.found.append(
                PropertyComparison(name, operator, _value_of(right) if known else None)
            )

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
