"""The text in entities: how far it compresses, and that reading it back gives the same."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.entity import EdmValue, stored_size
from harness.model.operation import Kind
from harness.workload.entity_factory import EntityFactory, Payload, unpacked
from harness.workload.mix import Action, ActionMix
from harness.workload.workload import Workload
from tests.support.keys import spread
from tests.support.results import done


@given(st.floats(0, 1), st.integers(1, 30_000), st.integers(0, 2**44))
def test_what_is_compressed_is_read_back(compressible: float, length: int, version: int) -> None:
    """The same text comes back, and the next version has another one of the same length."""
    plain, packed = Payload(compressible), Payload(compressible, compress=True)
    text = plain.value(length, version)
    assert isinstance(text, str)
    assert len(text) == length
    assert unpacked({"Text0": packed.value(length, version), "Digest": b"\0"}) == {
        "Text0": text,
        "Digest": b"\0",
    }
    if length > 200 and compressible < 0.95:
        assert plain.value(length, version + 1) != text


@pytest.mark.parametrize(
    ("compressible", "least", "most"), [(1.0, 0.0, 0.02), (0.8, 0.15, 0.25), (0.0, 0.74, 0.8)]
)
def test_the_share_says_how_far_gzip_gets(compressible: float, least: float, most: float) -> None:
    """Random letters and digits keep three quarters; what repeats nearly disappears."""
    value = Payload(compressible, compress=True).value(20_000, 3)
    assert isinstance(value, bytes)
    assert least < len(value) / 20_000 < most


def test_a_compressed_entity_holds_what_the_plain_one_holds() -> None:
    """All other properties are the same, and it is smaller; own entities are compressed too."""
    plain = EntityFactory(8192, "run1", Payload(0.5))
    packed = EntityFactory(8192, "run1", Payload(0.5, compress=True))
    one, other = plain.properties("p", "r", 7, 3), packed.properties("p", "r", 7, 3)
    assert stored_size("p", "r", one) == 8192
    assert stored_size("p", "r", other) < 4096
    assert unpacked(other) == one
    own = packed.filled("p", "r", {"Text": "my own"})
    assert own["Text"] == "my own"
    assert unpacked(own) == plain.filled("p", "r", {"Text": "my own"})


class Read(dict[str, EdmValue]):
    """An entity that notes whether its properties were read."""

    looked_at = False

    def items(self) -> Any:
        self.looked_at = True
        return super().items()


def test_damaged_texts_stay_as_they_are() -> None:
    """A service may answer anything."""
    packed = Payload(compress=True).value(500, 1)
    assert isinstance(packed, bytes)
    broken: dict[str, EdmValue] = {
        "Text0": packed[:-9],
        "Text1": b"no gzip",
        "Text2": b"",
        "Text3": "text",
    }
    assert unpacked(broken) == {**broken, "Text2": ""}


@pytest.mark.parametrize("action", [Action.POINT_QUERY, Action.PARTITION_SCAN])
def test_reads_decompress_what_they_read(action: Action) -> None:
    """A read is a task that takes its result, which may also be nothing."""
    of = Workload(
        design=spread(2, 5),
        mix=ActionMix({action: 1.0}),
        entities=EntityFactory(4096, "run1", Payload(0.8, compress=True)),
    )
    entity = Read(Text0=b"")
    for value in (None, entity, [entity]):
        entity.looked_at = False
        task = of.next_task(random.Random(1))
        assert isinstance(task, Generator)
        read = next(task)
        assert read.kind in (Kind.POINT_QUERY, Kind.QUERY)
        with pytest.raises(StopIteration):
            task.send(done(read, 0.0, value=value))
        assert entity.looked_at is (value is not None)
