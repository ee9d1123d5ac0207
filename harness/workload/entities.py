"""Entities of a wanted stored size, built of real Edm types."""

from __future__ import annotations

import datetime as dt
import uuid

from harness.model.entity import EdmValue, Int64, characters, stored_size

RUN_PROPERTY = "StressRun"
"""Every entity that a run writes carries the run's id in this property."""

_TEXT_CHARACTERS = 30_000
"""Characters of one text property: under 64 KiB, however the service measures it."""


def _fixed_properties(run_id: str) -> dict[str, EdmValue]:
    """One property of each Edm type but the text that fills up."""
    return {
        RUN_PROPERTY: run_id,
        "Count": 0,
        "Total": Int64(2**40),
        "Ratio": 0.5,
        "Active": True,
        "Created": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "Reference": uuid.UUID(int=1),
        "Digest": bytes(16),
    }


class EntityFactory:
    """Makes the properties of entities that the service stores in ``size_bytes`` bytes.

    Args:
        size_bytes: Wanted stored size, keys included, by Microsoft's formula.
        run_id: Marks every entity as this run's own.
    """

    __slots__ = ("_run_id", "_templates", "size_bytes")

    def __init__(self, size_bytes: int, run_id: str) -> None:
        self.size_bytes = size_bytes
        self._run_id = run_id
        self._templates: dict[int, dict[str, EdmValue]] = {}

    def properties(self, partition_key: str, row_key: str, number: int) -> dict[str, EdmValue]:
        """Properties for one entity; ``number`` varies its content.

        Raises:
            ValueError: the wanted size is less than the smallest entity with these keys.
        """
        key_length = characters(partition_key) + characters(row_key)
        template = self._templates.get(key_length)
        if template is None:
            template = self._templates[key_length] = self._template(partition_key, row_key)
        made = template.copy()
        made["Count"] = number & 0x7FFFFFFF
        return made

    def _template(self, partition_key: str, row_key: str) -> dict[str, EdmValue]:
        made = _fixed_properties(self._run_id)
        missing = self.size_bytes - stored_size(partition_key, row_key, made)
        text = 0
        while missing > 0:
            name = f"Text{text}"
            overhead = 8 + 2 * len(name) + 4
            if missing < overhead:
                break
            length = min((missing - overhead) // 2, _TEXT_CHARACTERS)
            made[name] = "x" * length
            missing -= overhead + 2 * length
            text += 1
        # What is left is less than a property's overhead; binary fills it to the byte.
        if missing < 0:
            smallest = stored_size(partition_key, row_key, _fixed_properties(self._run_id))
            raise ValueError(
                f"an entity of {self.size_bytes} bytes is too small: with these keys and one "
                f"property of each type it has {smallest} at least"
            )
        made["Digest"] = bytes(16 + missing)
        return made


def wire_bytes(partition_key: str, row_key: str, properties: dict[str, EdmValue]) -> int:
    """About how many bytes an entity takes as JSON with its type annotations."""
    size = 2 + len(f'"PartitionKey":"{partition_key}","RowKey":"{row_key}",'.encode())
    for name, value in properties.items():
        annotation = 0
        if isinstance(value, bytes):
            body, annotation = 2 + 4 * ((len(value) + 2) // 3), len("Edm.Binary")
        elif isinstance(value, str):
            body = 2 + len(value.encode())
        elif isinstance(value, bool):
            body = 5
        elif isinstance(value, Int64):
            body, annotation = 2 + len(str(int(value))), len("Edm.Int64")
        elif isinstance(value, dt.datetime):
            body, annotation = 30, len("Edm.DateTime")
        elif isinstance(value, uuid.UUID):
            body, annotation = 38, len("Edm.Guid")
        else:
            body, annotation = len(str(value)), len("Edm.Double")
        size += len(name) + 6 + body
        if annotation:
            size += len(name) + len('"@odata.type":"", ') + annotation
    return size
