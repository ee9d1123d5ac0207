"""Blocks of a trace: operations become columns of JSON, and columns become a `Batch`.

Instants are whole milliseconds: the first as UTC, each other as its distance from the one before.
Shapes and PartitionKeys are listed once for each block, and operations name them by number.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.outcome import Outcome, Scope
from harness.trace.members import BLOCK, TraceError, pack
from harness.trace.operations import (
    Answer,
    Batch,
    Detail,
    TracedParts,
    TracedQuery,
    TracedShape,
    address_of,
)

MOST_OPERATIONS = 4096
"""Operations of a block."""

RowShape = tuple[str, str, str, str, str, bool, tuple[tuple[int, str, str], ...]]
"""The fields of a `TracedShape` in its order, with plain text for enumerations."""

_KINDS = {kind.value: kind for kind in Kind}
_BOUNDS = 4
"""Fields of a query before those that are no bounds of its key range."""
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_SCOPES = frozenset(scope.value for scope in Scope)
_NUMBERS = {"at": "Q", "took": "I", "entities": "I", "returned": "I", "sent": "Q", "received": "Q"}
"""Columns of numbers, and how `struct` names the integers that they hold."""


@dataclasses.dataclass(slots=True, eq=False)
class BlockColumns:
    """The operations of a block that is being made, in the order in which they ended.

    Lists of plain values, because the garbage collector would follow an object for each operation.
    """

    at: list[int] = dataclasses.field(default_factory=list)
    done: list[int] = dataclasses.field(default_factory=list)
    shapes: list[RowShape] = dataclasses.field(default_factory=list)
    shape_keys: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    numbers: list[int] = dataclasses.field(default_factory=list)
    keys: list[str | None] = dataclasses.field(default_factory=list)
    rows: list[str | None] = dataclasses.field(default_factory=list)
    entities: list[int] = dataclasses.field(default_factory=list)
    returned: list[int] = dataclasses.field(default_factory=list)
    sent: list[int] = dataclasses.field(default_factory=list)
    received: list[int] = dataclasses.field(default_factory=list)
    details: dict[int, Any] = dataclasses.field(default_factory=dict)

    def encode(self) -> bytes:
        """A member with the operations, at least one, in order of their instants."""
        at = self.at
        order = sorted(range(len(at)), key=at.__getitem__)
        # One call for a whole column; of a single place it would not make a tuple.
        pick = operator.itemgetter(*order) if len(order) > 1 else tuple
        at_ms = pick(at)
        key_list, key_numbers = _listed(pick(self.keys))
        details = self.details
        content = {
            "first_ms": at_ms[0],
            "at": [0, *map(operator.sub, at_ms[1:], at_ms)],
            "took": list(map(operator.sub, pick(self.done), at_ms)),
            "shapes": self.shapes,
            "shape": pick(self.numbers),
            "keys": key_list,
            "key": key_numbers,
            "row": pick(self.rows),
            "entities": pick(self.entities),
            "returned": pick(self.returned),
            "sent": pick(self.sent),
            "received": pick(self.received),
            "details": [
                [place, details[number]] for place, number in enumerate(order) if number in details
            ]
            if details
            else [],
        }
        return pack(BLOCK, content, operations=len(at), first_ms=at_ms[0], last_ms=at_ms[-1])


def _listed(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Each value once, and the place of each of ``values`` in that list."""
    places: dict[Any, int] = {}
    numbers = [places.setdefault(value, len(places)) for value in values]
    return list(places), numbers


Shapes = dict[str, TracedShape]
"""Shapes that were read, by their fields."""
_MOST_SHAPES = 10_000


def decode(content: dict[str, Any], started_ms: int, shapes: Shapes) -> Batch:
    """The operations of a block, with instants since ``started_ms``.

    ``shapes`` holds the shapes of the blocks before, and gets those of this one.

    Raises:
        TraceError: the content is not a block.
    """
    try:
        batch = _decoded(content, started_ms, shapes)
        if len({*map(len, batch.columns())}) != 1:
            raise TraceError("its columns differ in length")
        for name, form in _NUMBERS.items():
            # The fastest check of a whole column: integers, not negative, not too large.
            struct.pack(f"{len(batch)}{form}", *content[name])
    except (KeyError, TypeError, ValueError, IndexError, struct.error) as error:
        raise TraceError(f"it is not a block of operations ({error!r})") from error
    return batch


def _decoded(content: dict[str, Any], started_ms: int, known: Shapes) -> Batch:
    at = list(itertools.accumulate(content["at"], initial=content["first_ms"] - started_ms))
    del at[0]
    if len(known) > _MOST_SHAPES:
        known.clear()
    shapes = []
    for fields in content["shapes"]:
        name = repr(fields)
        if (shape := known.get(name)) is None:
            shape = known[name] = _shape(*fields)
        shapes.append(shape)
    details: list[Detail] = [None] * len(at)
    for place, detail in content["details"]:
        details[place] = _detail(detail)
    return Batch(
        at_ms=at,
        done_ms=list(map(operator.add, at, content["took"])),
        shapes=list(map(shapes.__getitem__, content["shape"])),
        partition_keys=list(map(content["keys"].__getitem__, content["key"])),
        row_keys=content["row"],
        entities=content["entities"],
        returned=content["returned"],
        bytes_sent=content["sent"],
        bytes_received=content["received"],
        details=details,
    )


def _shape(
    client: str, kind: str, table: str, label: str, outcome: str, estimated: bool, attempts: Any
) -> TracedShape:
    answers = tuple(Answer(*answer) for answer in attempts)
    if not answers or not all(
        isinstance(answer.status, int) and answer.scope in _SCOPES for answer in answers
    ):
        raise TraceError("an operation has no valid attempt")
    return TracedShape(
        client=client,
        kind=_KINDS[kind],
        table=table,
        label=label,
        outcome=_OUTCOMES[outcome],
        estimated=estimated,
        attempts=answers,
    )


def query_detail(query: TracedQuery) -> list[Any]:
    """The detail of a query in JSON, without the fields at its end that have their default."""
    fields = list(query)
    defaults = list(TracedQuery())
    while fields and fields[-1] == defaults[len(fields) - 1]:
        fields.pop()
    return ["query", *fields]


def parts_detail(
    kinds: Sequence[str], row_keys: Sequence[str | None], sizes: Sequence[int]
) -> list[Any]:
    """The detail of a transaction in JSON; one kind, or one size, stands for all that are equal."""
    return ["parts", _together(kinds), row_keys, _together(sizes)]


def _together(values: Sequence[Any]) -> Any:
    return values[0] if values and len({*values}) == 1 else values


def _detail(detail: list[Any]) -> Detail:
    form, *fields = detail
    if form == "query":
        query = TracedQuery(*fields)
        if len(fields) <= _BOUNDS:
            return query
        at = query.continued_at
        return query._replace(
            compared=tuple(query.compared),
            selected=tuple(query.selected),
            continued_at=None if at is None else (at[0], at[1]),
        )
    kinds, row_keys, sizes = fields
    number = len(row_keys)
    each = [kinds] * number if isinstance(kinds, str) else kinds
    return TracedParts(
        kinds=tuple(map(_KINDS.__getitem__, each)),
        row_keys=tuple(row_keys),
        sizes=(sizes,) * number if isinstance(sizes, int) else tuple(sizes),
    )


def renamed(content: dict[str, Any], alias: Callable[[str], str]) -> dict[str, Any]:
    """The content of a block with an alias for each key, and for addresses of clients."""

    def of(key: str | None) -> str | None:
        return alias(key) if key and key != WHOLE_TABLE else key

    shapes = []
    for client, *fields in content["shapes"]:
        address = address_of(client)
        shapes.append([alias(address) + client[len(address) :] if address else client, *fields])
    details = []
    for place, (form, *fields) in content["details"]:
        if form == "parts":
            kinds, row_keys, sizes = fields
            fields = [kinds, [of(key) for key in row_keys], sizes]
        else:
            fields = [*map(of, fields[:_BOUNDS]), *fields[_BOUNDS:]]
            if len(fields) == len(TracedQuery._fields):
                fields[-1] = [*map(of, fields[-1])]
        details.append([place, [form, *fields]])
    return {
        **content,
        "shapes": shapes,
        "keys": [of(key) for key in content["keys"]],
        "row": [of(key) for key in content["row"]],
        "details": details,
    }


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch with the operations of all, in order; equal instants keep their order."""
    columns = [
        list(itertools.chain.from_iterable(parts))
        for parts in zip(*(batch.columns() for batch in batches), strict=True)
    ]
    at = columns[0]
    order = sorted(range(len(at)), key=at.__getitem__)
    return Batch(*(list(map(column.__getitem__, order)) for column in columns))


def part_of(batch: Batch, start: int, end: int) -> Batch:
    """The operations from ``start`` to before ``end``."""
    if start == 0 and end == len(batch):
        return batch
    return Batch(*(column[start:end] for column in batch.columns()))
