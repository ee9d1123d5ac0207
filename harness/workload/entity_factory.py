"""Entities of a wanted stored size, with a property of each Edm type, and their text.

How much of the text repeats is chosen, and the client can compress it. Compression saves
bandwidth, and costs CPU for each write and each read (performance checklist,
"Capacity and transaction targets").
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import itertools
import json
import random
import string
import uuid
import zlib
from collections.abc import Mapping

from harness.model.entity import EdmValue, Int64, characters, stored_size

TEXT_PROPERTY = "Text"
"""Begin of the names of the properties that hold the text."""
_VARIANTS = 16
"""Different texts of a length: no two writes in a row have the same."""
_BLOCK = 100
_PHRASE = "the same words come again and again in the text of such an entity; "
_RANDOM = string.ascii_letters + string.digits + "-_"
_LEVEL = 6
"""The level of the gzip program, and of most libraries."""
RUN_PROPERTY = "StressRun"
"""Property with the run id; every entity that a run writes has it."""
NUMBER_PROPERTY = "Number"
"""Property with the number of the entity in its table; loaded entities come first."""
GROUP_PROPERTY = "Group"
"""Property with one of `GROUPS` numbers: a filter on it returns a known share of any range.

Neighbours are in distant groups, so that this also holds for short ranges.
"""
GROUPS = 1000
_GROUP_STEP = 621
"""Coprime with `GROUPS`, and near its golden section."""

_TEXT_CHARACTERS = 30_000
"""Characters of one text property: less than 64 KiB in any encoding."""


@dataclasses.dataclass(frozen=True, slots=True)
class Payload:
    """Makes the text of entities.

    Attributes:
        compressible: Share of the text that repeats. The rest is random letters and digits, which
            gzip shortens by a quarter.
        compress: Whether the client compresses each text with gzip, and stores it as binary.
    """

    compressible: float = 1.0
    compress: bool = False
    _texts: dict[int, tuple[str, ...]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def fixed(self) -> bool:
        """Whether all texts of a length are the same."""
        return self.compressible >= 1 and not self.compress

    def value(self, length: int, version: int) -> EdmValue:
        """The value of a property with a text of ``length``; it differs from version to version."""
        text = self.text(length, version)
        return gzip.compress(text.encode(), _LEVEL, mtime=0) if self.compress else text

    def text(self, length: int, version: int) -> str:
        """The same, never compressed."""
        texts = self._texts.get(length)
        if texts is None:
            texts = self._texts[length] = tuple(
                self._text(length, variant) for variant in range(_VARIANTS)
            )
        return texts[version % _VARIANTS]

    def _text(self, length: int, variant: int) -> str:
        rng = random.Random(f"{length} {variant}")
        repeated = round(_BLOCK * self.compressible)
        phrase = "".join(itertools.islice(itertools.cycle(_PHRASE), repeated))
        blocks = -(-length // _BLOCK)
        made = (phrase + "".join(rng.choices(_RANDOM, k=_BLOCK - repeated)) for _ in range(blocks))
        return "".join(made)[:length]


def unpacked(entity: Mapping[str, EdmValue]) -> dict[str, EdmValue]:
    """An entity that was read, with its compressed texts as text again.

    What is not gzip, as in a damaged answer, stays as it is.
    """
    return {
        name: _text_of(value)
        if name.startswith(TEXT_PROPERTY) and isinstance(value, bytes)
        else value
        for name, value in entity.items()
    }


def _text_of(packed: bytes) -> EdmValue:
    try:
        return gzip.decompress(packed).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return packed


def _fixed_properties(run_id: str) -> dict[str, EdmValue]:
    return {
        RUN_PROPERTY: run_id,
        NUMBER_PROPERTY: 0,
        GROUP_PROPERTY: 0,
        "Count": 0,
        "Total": Int64(2**40),
        "Ratio": 0.5,
        "Active": True,
        "Created": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "Reference": uuid.UUID(int=1),
        "Digest": bytes(16),
    }


class EntityFactory:
    """Makes the properties of entities, marked with the run id.

    ``size_bytes`` is the wanted stored size before compression, keys included, by Microsoft's
    formula.
    """

    __slots__ = ("_payload", "_run_id", "_templates", "size_bytes")

    def __init__(self, size_bytes: int, run_id: str, payload: Payload | None = None) -> None:
        self.size_bytes = size_bytes
        self._run_id = run_id
        self._payload = None if payload is None or payload.fixed else payload
        self._templates: dict[int, dict[str, EdmValue]] = {}

    def properties(
        self, partition_key: str, row_key: str, version: int, number: int = 0
    ) -> dict[str, EdmValue]:
        """Properties for one entity; a `ValueError` if the wanted size is too small for the keys.

        ``version`` varies the content from one write to the next. The number of the entity
        determines `NUMBER_PROPERTY` and `GROUP_PROPERTY`.
        """
        key_length = characters(partition_key + row_key)
        template = self._templates.get(key_length)
        if template is None:
            template = self._templates[key_length] = self._template(partition_key, row_key)
        made = template.copy()
        made["Count"] = version & 0x7FFFFFFF
        made[NUMBER_PROPERTY] = number & 0x7FFFFFFF
        made[GROUP_PROPERTY] = number * _GROUP_STEP % GROUPS
        if self._payload is not None:
            self._write_texts(made, version)
        return made

    @property
    def compresses(self) -> bool:
        return self._payload is not None and self._payload.compress

    def _write_texts(self, made: dict[str, EdmValue], version: int) -> None:
        """Replace the texts that `_fill` added by those of the payload."""
        assert self._payload is not None
        for place, (name, value) in enumerate(made.items()):
            if name.startswith(TEXT_PROPERTY) and isinstance(value, str):
                made[name] = self._payload.value(len(value), version + place)

    def marked(self, own: Mapping[str, EdmValue]) -> dict[str, EdmValue]:
        """The properties ``own`` of an application, with the run id."""
        return {**own, RUN_PROPERTY: self._run_id}

    def filled(
        self, partition_key: str, row_key: str, own: Mapping[str, EdmValue]
    ) -> dict[str, EdmValue]:
        """The properties ``own`` of an application, with the run id, filled up to the size."""
        made = self.marked(own)
        added: dict[str, EdmValue] = {}
        _fill(added, self.size_bytes - stored_size(partition_key, row_key, made))
        if self._payload is not None:
            self._write_texts(added, zlib.crc32(f"{partition_key} {row_key}".encode()))
        return {**made, **added}

    def message(self, number: int) -> str:
        """The text of a message, of the wanted size in ASCII: its number and the run, filled up."""
        head = f"{number} {self._run_id} "[: self.size_bytes]
        missing = self.size_bytes - len(head)
        if self._payload is None:
            return head + "x" * missing
        return head + self._payload.text(missing, number)

    def _template(self, partition_key: str, row_key: str) -> dict[str, EdmValue]:
        made = _fixed_properties(self._run_id)
        missing = _fill(made, self.size_bytes - stored_size(partition_key, row_key, made))
        # The rest is less than the overhead of a property; binary fills it to the byte.
        if missing < 0:
            smallest = stored_size(partition_key, row_key, _fixed_properties(self._run_id))
            raise ValueError(
                f"an entity of {self.size_bytes} bytes is too small: with these keys and one "
                f"property of each type it has at least {smallest}"
            )
        made["Digest"] = bytes(16 + missing)
        return made


def _fill(made: dict[str, EdmValue], missing: int) -> int:
    """Add text properties; returns the bytes still missing, too few for one more."""
    text = 0
    while missing > 0:
        name = f"{TEXT_PROPERTY}{text}"
        overhead = 8 + 2 * len(name) + 4
        if missing < overhead:
            break
        length = min((missing - overhead) // 2, _TEXT_CHARACTERS)
        made[name] = "x" * length
        missing -= overhead + 2 * length
        text += 1
    return missing


def wire_bytes(partition_key: str, row_key: str, properties: Mapping[str, EdmValue]) -> int:
    """Approximate bytes of an entity in the JSON of azure-data-tables.

    The SDK annotates every value with its type, keys included, except booleans and 32-bit integers.
    """
    everything = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
    return sum(_json_bytes(name, value) for name, value in everything.items())


def _json_bytes(name: str, value: EdmValue) -> int:
    annotation = ""
    if isinstance(value, bytes):
        body, annotation = 2 + 4 * ((len(value) + 2) // 3), "Edm.Binary"
    elif isinstance(value, str):
        body, annotation = len(json.dumps(value)), "Edm.String"
    elif isinstance(value, bool):
        body = 5
    elif isinstance(value, Int64):
        body, annotation = 2 + len(str(int(value))), "Edm.Int64"
    elif isinstance(value, int):
        body = len(str(value))
    elif isinstance(value, dt.datetime):
        body, annotation = 29, "Edm.DateTime"
    elif isinstance(value, uuid.UUID):
        body, annotation = 38, "Edm.Guid"
    else:
        body, annotation = len(repr(value)), "Edm.Double"
    size = len(json.dumps(name)) + 2 + body + 2
    if annotation:
        size += len(json.dumps(name)) + len("@odata.type") + 2 + len(annotation) + 4
    return size
