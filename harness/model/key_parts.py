"""What a column of texts is: numbers, hashes, random characters, or texts of a known notation."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from harness.model.figures import counted
from harness.model.key_notations import (
    AMBIGUOUS,
    PREFIXED,
    Notation,
    SortOrder,
    TokenKind,
    hash_form,
    number_value,
)

FEW = 5
"""With fewer different values, where letters and digits change is no sign of a layout, and their
order none of time."""
_LEAST_HASH = 8
_LEAST_RANDOM = 6
_RUN = re.compile(r"[0-9]+|[^0-9]+")
_SEPARATED = re.compile(r"[-._ ]")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+_=-]{10,}", re.ASCII)
_DIGITS = frozenset("0123456789")
_CLASSES = _DIGIT, _, _ = tuple(re.compile(f"[{chars}]") for chars in ("0-9", "a-z", "A-Z"))
_LETTER = re.compile("[a-zA-Z]")


@dataclasses.dataclass(frozen=True, slots=True)
class TokenPart:
    """What a column of texts is.

    Attributes:
        value: What a text stands for; None for texts without a value.
        number: Its number, of which a sequence leaves few out.
        least: As of a `Notation`.
    """

    kind: TokenKind
    pattern: str
    form: str = ""
    order: SortOrder = SortOrder.TEXT
    value: Callable[[str], Any] | None = None
    number: Callable[[str], int] | None = None
    least: int = 1


TEXT = TokenPart(TokenKind.TEXT, r"[^\W_]+")
LETTERS = TokenPart(TokenKind.TEXT, r"[^\W_0-9]+")
REST = TokenPart(TokenKind.TEXT, r"(?s:.*)")


def part_of(form: Notation, *texts: str) -> TokenPart:
    """The part for texts that match ``form``."""
    name = form.name
    other = AMBIGUOUS.get(form)
    if other is not None and all(map(other.matches, texts)):
        name = f"{name} or {other.name}"
    pattern = form.pattern.pattern
    if (separator := _SEPARATED.search(texts[0])) is not None and "-" in name:
        name = name.replace("-", separator[0])
    pattern = re.sub(r"\(\?P<\w+>", "(?:", pattern).replace("(?P=separator)", "[-._ ]")
    value = form.read and form.value
    return TokenPart(form.kind, f"(?ai:{pattern})", name, form.order, value, least=form.least)


def prefixed(values: Iterable[str]) -> dict[str, list[str]] | None:
    """Values that are an identifier behind letters, in two pieces."""
    found = {value: PREFIXED.fullmatch(value) for value in values}
    split = {value: list(match.groups()) for value, match in found.items() if match is not None}
    return split or None


def runs_of(values: Mapping[str, float]) -> dict[str, list[str]] | None:
    """Values with the same sequence of letters and digits in pieces; None without a sequence."""
    layouts: dict[tuple[bool, ...], dict[str, list[str]]] = {}
    for value in values:
        runs = _RUN.findall(value)
        layouts.setdefault(tuple(run[0] in _DIGITS for run in runs), {})[value] = runs
    layout, split = max(layouts.items(), key=lambda item: sum(map(values.__getitem__, item[1])))
    if len(layout) == 1:
        return None
    scrambled = len(values) < FEW and len(layout) > 2 and _hash_length(values)
    return None if scrambled else split


def _hash_length(values: Collection[str]) -> int:
    """The length of hexadecimal hashes; 0 if the values are none."""
    lengths = {len(value) for value in values}
    if len(lengths) > 1 or not all(map(_HEX.fullmatch, values)):
        return 0
    length = lengths.pop()
    half = len(values) / 2
    letters, digits = (sum(map(bool, map(find.search, values))) for find in (_LETTER, _DIGIT))
    if not _scattered(values):
        return 0
    if length < _LEAST_HASH:
        return length if letters and digits and len(values) >= _LEAST_HASH else 0
    return length if letters >= half and digits >= half else 0


def word_of(values: Collection[str]) -> TokenPart:
    """What words are that have no form and are not split."""
    if (counter := _hexadecimal(values)) is not None:
        return counter
    if length := _hash_length(values):
        return part_of(hash_form(length), "")
    return random_of(values) or (LETTERS if not any(map(_DIGIT.search, values)) else TEXT)


def number_of(values: Collection[str]) -> TokenPart:
    lengths, pattern = {len(value) for value in values}, "[0-9]+"
    if len(lengths) > 1:
        form, order = f"{min(lengths)} to {max(lengths)} digits", SortOrder.BROKEN
    else:
        length = lengths.pop()
        padded = length > 1 and any(value[0] == "0" for value in values)
        form, order = counted(length, "digit") + (", padded" if padded else ""), SortOrder.LATER
        pattern = f"[0-9]{{{length}}}" if padded else pattern
    return TokenPart(TokenKind.NUMBER, pattern, form, order, number_value, int)


def _hexadecimal(values: Collection[str]) -> TokenPart | None:
    """Hexadecimal numbers of one width with few gaps, or with leading zeros; None for hashes."""
    if len(values) < FEW or len(set(map(len, values))) > 1 or not _HEX.fullmatch("".join(values)):
        return None
    numbers = [int(value, 16) for value in values]
    dense = max(numbers) - min(numbers) < 2 * len(numbers)
    if not dense and any(value[0] != "0" for value in values):
        return None
    length = len(next(iter(values)))
    form, order = counted(length, "hex digit"), SortOrder.LATER
    return TokenPart(TokenKind.NUMBER, "[0-9a-fA-F]+", form, order, _of_hex, _of_hex)


def _of_hex(digits: str) -> int:
    return int(digits, 16)


def _scattered(values: Collection[str]) -> bool:
    """Whether the first characters differ as those of random texts do."""
    return len({value[0] for value in values}) * 3 >= min(len(values), 16)


def random_of(values: Collection[str]) -> TokenPart | None:
    """Random characters of one length; None if the values are none."""
    length, count = collections.Counter(map(len, values)).most_common(1)[0]
    if length < _LEAST_RANDOM or count < len(values) or not _scattered(values):
        return None
    half = len(values) / 2
    mixed = [sum(map(bool, map(find.search, values))) >= half for find in _CLASSES]
    if sum(mixed) < 2 or not mixed[0] or not all(map(_BASE64.fullmatch, values)):
        return None
    name = counted(length, "character")
    return TokenPart(TokenKind.RANDOM, f"[A-Za-z0-9+_=-]{{{length}}}", name, SortOrder.NONE)
