"""Splits keys of one table into tokens: what they are made of, and what sorts by time.

Keys that were made alike have the same separators. Each column of texts between them is compared
with the notations of `harness.model.key_notations`, so that ``20240501`` is a date where all of its
column are dates. Up to a tenth of the rows may have other keys.
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.model.key_notations import (
    AMBIGUOUS,
    ISO,
    ISO_HOUR,
    ISO_WITHIN,
    NOTATIONS,
    Notation,
    SortOrder,
    TokenKind,
    is_plausible,
)
from harness.model.key_parts import (
    FEW,
    REST,
    TokenPart,
    number_of,
    part_of,
    prefixed,
    random_of,
    runs_of,
    word_of,
)

MOST_KEYS = 4_096
"""More keys are thinned out: every n-th is looked at."""
_AGREEING = 0.9
_UNSORTED = 0.2
"""Share of the keys that sort before the one before them, where a list is not in key order."""
_GROUPS = 4
"""Layouts of keys that are told apart; with more the keys hold free text."""
_LEAST_GROUP = 0.1
_MOST_PIECES = 40
_TRIED = 12
_WORD = re.compile(r"[^\W_]+")
_PIECE = re.compile(rf"{ISO_WITHIN.pattern}|[^\W_]+")


class _Row(list[str]):
    """The pieces of a key, which so many rows have."""

    __slots__ = ("weight",)

    def __init__(self, pieces: Iterable[str], weight: float) -> None:
        super().__init__(pieces)
        self.weight = weight


def _weight(rows: Iterable[_Row]) -> float:
    return sum(row.weight for row in rows)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyToken:
    """A part that all keys of a shape have.

    Attributes:
        form: The notation; empty for text.
        examples: Some values: the first and the last one in key order, and one between.
        distinct: Number of different values among the keys that were looked at.
        order: How its values sort.
        wrong: Two values of which the first sorts first and should not; None where the order is
            right, or no two such values were seen.
        pattern: A regular expression of its texts.
        doubtful: It may be a time, or another number; or a time at which no row was written.
        span: From the lowest to the highest of its numbers; None for other texts.
    """

    kind: TokenKind
    form: str = ""
    examples: tuple[str, ...]
    distinct: int
    order: SortOrder
    wrong: tuple[str, str] | None = None
    pattern: str
    doubtful: bool = False
    span: int | None = None

    @property
    def varies(self) -> bool:
        return self.kind not in (TokenKind.CONSTANT, TokenKind.SEPARATOR)

    @property
    def timed(self) -> bool:
        """Whether it says a time."""
        return self.kind in (TokenKind.DATE, TokenKind.TIME, TokenKind.TIMED_ID)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyShape:
    """What keys look like.

    Attributes:
        tokens: Of the most frequent layout, in the order of the key; none without keys.
        keys: Number of different keys that were looked at.
        share: Of the rows, those whose keys have this layout.
        example: A key of this layout.
        others: Further frequent layouts, if keys have several.
    """

    tokens: tuple[KeyToken, ...]
    keys: int
    share: float
    example: str
    others: tuple[KeyShape, ...] = ()
    _pattern: re.Pattern[str]

    def split(self, key: str) -> tuple[str, ...] | None:
        """The text of each token of ``key``; None where it has another layout."""
        found = self._pattern.fullmatch(key)
        return None if found is None else found.groups()

    @property
    def leading(self) -> KeyToken | None:
        """The first token that differs from key to key: it decides where new keys go."""
        return next((token for token in self.tokens if token.varies), None)

    @property
    def template(self) -> str:
        """The layout in one line: ``order-{yyyy-MM-dd}-{number}``."""
        return "".join(
            f"{{{token.form or token.kind}}}" if token.varies else token.examples[0]
            for token in self.tokens
        )

    def mostly(self, test: Callable[[KeyShape], bool]) -> bool:
        """Whether nine of ten rows that have a layout have one that passes ``test``."""
        layouts = (self, *self.others)
        passing = sum(layout.share for layout in layouts if test(layout))
        return passing > 0 and passing >= _AGREEING * sum(layout.share for layout in layouts)

    def whole(self, kind: TokenKind) -> bool:
        """Whether keys are of one token of this kind, besides what all keys have."""
        return [token.kind for token in self.tokens if token.varies] == [kind]


def tokens_of(keys: Iterable[str] | Mapping[str, float], *, together: bool = False) -> KeyShape:
    """What ``keys`` look like, each once; of many, every n-th is looked at.

    Pure, and bounded by the length of the keys: no text makes it fail.

    Args:
        keys: In the order in which they were written, if it is known; it can tell times from other
            numbers. A mapping says how many rows have each key.
        together: Of keys of several layouts, what they have in common at the beginning and the end.
    """
    weights = keys if isinstance(keys, Mapping) else dict.fromkeys(keys, 1.0)
    looked = list(weights)
    if len(looked) > MOST_KEYS:
        looked = looked[:: -(-len(looked) // MOST_KEYS)]
    falling = sum(later < earlier for earlier, later in itertools.pairwise(looked))
    rows = [_Row(_pieces(key), weights[key]) for key in looked]
    whole = _weight(rows)
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(map(_class, row)), []).append(row)
    largest = sorted(groups.values(), key=_weight, reverse=True)[:_GROUPS]
    designed = [group for group in largest if _weight(group) >= _LEAST_GROUP * whole]
    if together or not designed or sum(map(_weight, designed)) < _AGREEING * whole:
        designed = [rows]
    unsorted = falling >= _UNSORTED * len(looked)
    first, *others = (_shape(group, len(looked), whole, unsorted) for group in designed)
    return dataclasses.replace(first, others=tuple(others))


def _pieces(key: str) -> list[str]:
    """Words and what separates them; a date with its time is one word, a very long rest too."""
    row: list[str] = []
    place = 0
    for found in _PIECE.finditer(key):
        if found.start() > place:
            row.append(key[place : found.start()])
        if len(row) >= _MOST_PIECES:
            break
        row.append(found[0])
        place = found.end()
    return [*row, key[place:]] if place < len(key) else row


def _class(piece: str) -> str:
    """What pieces of keys that were made alike have in common; of a separator its text."""
    if _WORD.fullmatch(piece):
        return "word"
    if ISO_WITHIN.fullmatch(piece):
        return "time"
    return "rest" if _WORD.search(piece) else piece


def _shape(rows: list[_Row], keys: int, whole_weight: float, unsorted: bool) -> KeyShape:
    """The shape of the rows of one layout, or of several with a common beginning or end."""
    least = _AGREEING * _weight(rows)
    rows, front, back = _aligned(rows, least)
    whole = back is None
    if back is not None:
        for row in rows:
            row[front : len(row) - back] = ["".join(row[front : len(row) - back])]
    parts: list[TokenPart] = []
    while rows and (place := len(parts)) < len(rows[0]):
        if not whole and place == front:
            parts.append(_rest(rows, parts))
            whole = True
            continue
        end = len(rows[0]) if whole else front
        rows, width, part = _next(rows, place, end, least)
        front += width
        if part is not None:
            parts.append(part)
    columns = [list(column) for column in zip(*rows, strict=True)]
    pairs = zip(parts, columns, strict=True)
    tokens = _merged(_token(*pair, unsorted=unsorted) for pair in pairs)
    return KeyShape(
        tokens=tokens,
        keys=keys,
        share=_weight(rows) / (whole_weight or 1),
        example="".join(rows[0]) if rows else "",
        _pattern=re.compile("".join(f"({token.pattern})" for token in tokens)),
    )


def _aligned(rows: list[_Row], least: float) -> tuple[list[_Row], int, int | None]:
    """The rows that agree, and the number of pieces that agree at their beginning and end.

    The latter is None where whole rows agree.
    """
    front = back = 0
    while rows:
        top, kept = _most(rows, front, front)
        if _weight(kept) < least:
            break
        rows = kept
        if top is None:
            return rows, front, None
        front += 1
    while rows:
        top, kept = _most(rows, -1 - back, front + back)
        if top is None or _weight(kept) < least:
            break
        rows, back = kept, back + 1
    return rows, front, back if rows else None


def _most(rows: list[_Row], place: int, longer: int) -> tuple[str | None, list[_Row]]:
    """The class of most pieces at ``place``, and the rows with it.

    None is the class of rows that are not ``longer`` than this.
    """
    classes: dict[str | None, list[_Row]] = {}
    for row in rows:
        classes.setdefault(_class(row[place]) if len(row) > longer else None, []).append(row)
    return max(classes.items(), key=lambda item: _weight(item[1]))


def _next(
    rows: list[_Row], place: int, end: int, least: float
) -> tuple[list[_Row], int, TokenPart | None]:
    """What is at ``place``: the rows that have it as one text there, and how many pieces are added.

    There is no part where a word was split: its first run is at ``place`` then.
    """
    first = rows[0][place]
    kind = _class(first)
    if kind == "time":
        hours = all(len(row[place]) == len("2024-05-01T10") for row in rows)
        return rows, 0, part_of(ISO_HOUR if hours else ISO, first)
    if kind != "word":
        pattern = r"(?s:.*)" if kind == "rest" else re.escape(first)
        return (
            rows,
            0,
            TokenPart(TokenKind.TEXT if kind == "rest" else TokenKind.SEPARATOR, pattern),
        )
    for form in NOTATIONS:
        if place + form.pieces <= end and (found := _matching(rows, place, form, least)):
            width = form.pieces
            for text, row in found:
                row[place : place + width] = [text]
            part = part_of(form, *{text for text, _ in found})
            return [row for _, row in found], 1 - width, part
    numbers = [row for row in rows if row[place].isascii() and row[place].isdecimal()]
    if _weight(numbers) >= least:
        return numbers, 0, number_of({row[place] for row in numbers})
    values: dict[str, float] = collections.defaultdict(float)
    for row in rows:
        values[row[place]] += row.weight
    for splitter in (prefixed, runs_of):
        if (parts := splitter(values)) is None:
            continue
        kept = [row for row in rows if row[place] in parts]
        if _weight(kept) >= least:
            for row in kept:
                row[place : place + 1] = parts[row[place]]
            return kept, len(next(iter(parts.values()))) - 1, None
    return rows, 0, word_of(values)


def _matching(rows: list[_Row], place: int, form: Notation, least: float) -> list[tuple[str, _Row]]:
    """The rows with a text of this form, and the text; none if they are too few."""

    def of(chosen: Iterable[_Row]) -> list[tuple[str, _Row]]:
        joined = (("".join(row[place : place + form.pieces]), row) for row in chosen)
        return [(text, row) for text, row in joined if form.matches(text)]

    heaviest = heapq.nlargest(_TRIED, rows, key=lambda row: row.weight)
    if not of([*rows[:: -(-len(rows) // _TRIED)], *heaviest]):
        return []
    found = of(rows)
    other = AMBIGUOUS.get(form)
    if _weight(row for _, row in found) < least or (
        other and len(_matching(rows, place, other, least)) > len(found)
    ):
        return []
    return found


def _rest(rows: list[_Row], parts: list[TokenPart]) -> TokenPart:
    """What is between the pieces that agree, with words before it that belong to the same text."""
    place = len(parts)
    rest = "".join(row[place] for row in rows)
    loose = (TokenKind.TEXT, TokenKind.RANDOM, TokenKind.HASH)
    while parts:
        if parts[-1].kind in loose:
            count = 1
        elif len(parts) > 1 and parts[-2].kind in loose and rows[0][place - 1] in rest:
            count = 2
        else:
            break
        first = len(parts) - count
        if len({row[first] for row in rows}) == 1:
            break
        for row in rows:
            row[first : place + 1] = ["".join(row[first : place + 1])]
        del parts[first:]
        place = first
    return random_of({row[place] for row in rows}) or REST


def _token(part: TokenPart, column: Sequence[str], *, unsorted: bool) -> KeyToken:
    values = sorted(set(column))
    kind, order, wrong, pattern = part.kind, part.order, None, part.pattern
    if part.value is not None:
        wrong = _wrong(values, part.value, falling=order is SortOrder.EARLIER)
        order = order if wrong is None else SortOrder.BROKEN
    timed = kind in (TokenKind.DATE, TokenKind.TIME)
    if len(values) == 1 < len(column) and not timed and kind is not TokenKind.SEPARATOR:
        kind, pattern = TokenKind.CONSTANT, re.escape(values[0])
    numbers = () if part.number is None else [*map(part.number, values)]
    return KeyToken(
        kind=kind,
        form=part.form,
        examples=tuple(dict.fromkeys((values[0], values[len(values) // 2], values[-1]))),
        distinct=len(values),
        order=order,
        wrong=wrong,
        pattern=pattern,
        doubtful=timed and _doubtful(part, column, unsorted),
        span=max(numbers) - min(numbers) + 1 if numbers else None,
    )


def _doubtful(part: TokenPart, column: Sequence[str], unsorted: bool) -> bool:
    """Whether texts may be other numbers than times, or other times than those of rows.

    Texts that rise with the rows of a list are times of rows, unless the list is in key order.
    """
    times = [at for text in column if part.value and (at := part.value(text)) is not None]
    if len(set(column)) >= (part.least or math.inf) and all(map(is_plausible, times)):
        return False
    steps = [later - earlier for earlier, later in itertools.pairwise(times) if later != earlier]
    rising = sum(step > 0 for step in steps)
    return not unsorted or len(steps) < FEW or rising < _AGREEING * len(steps)


def _wrong(
    values: Sequence[str], value: Callable[[str], Any], *, falling: bool
) -> tuple[str, str] | None:
    """Two of the sorted texts whose values have another order."""
    for first, second in itertools.pairwise(values):
        earlier, later = (second, first) if falling else (first, second)
        before, after = value(earlier), value(later)
        if before is not None and after is not None and before > after:
            return first, second
    return None


def _merged(tokens: Iterable[KeyToken]) -> tuple[KeyToken, ...]:
    """The tokens, with neighbours in one that are equal in all keys."""
    merged: list[KeyToken] = []
    for token in tokens:
        if merged and not token.varies and not merged[-1].varies:
            before = merged.pop()
            kind = max(before.kind, token.kind, key=lambda kind: kind is TokenKind.CONSTANT)
            token = dataclasses.replace(
                token,
                kind=kind,
                form="",
                examples=(before.examples[0] + token.examples[0],),
                order=SortOrder.TEXT,
                pattern=before.pattern + token.pattern,
            )
        merged.append(token)
    return tuple(merged)
