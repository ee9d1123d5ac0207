"""Pages with a content coding."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from harness.gateway.reading import MAX_PAGE_BYTES, entities_in

PAGE = json.dumps({"value": [{"PartitionKey": "p", "RowKey": "r"}]}).encode()
GZIP = {"Content-Encoding": "gzip"}


def test_a_packed_page_is_read() -> None:
    """A page in gzip has its entities, in one member or in several."""
    assert entities_in(GZIP, gzip.compress(PAGE)) == [("p", "r")]
    members = gzip.compress(PAGE[:10]) + gzip.compress(PAGE[10:])
    assert entities_in(GZIP, members) == [("p", "r")]


@pytest.mark.parametrize("body", [PAGE, gzip.compress(PAGE)[:-9], b""])
def test_a_broken_packed_page_has_no_entities(body: bytes) -> None:
    """A page that is not gzip, breaks off, or is empty is unreadable."""
    assert entities_in(GZIP, body) == []


def test_a_page_up_to_the_largest_is_unpacked() -> None:
    """The limit is of the unpacked page: at the limit it is read, one byte more is unreadable."""
    filled = PAGE + b" " * (MAX_PAGE_BYTES - len(PAGE))
    assert entities_in(GZIP, gzip.compress(filled)) == [("p", "r")]
    assert entities_in(GZIP, gzip.compress(filled + b" ")) == []


def test_a_small_answer_that_unpacks_to_much_takes_little_memory() -> None:
    """100 MiB of zeros in 100 KiB are not unpacked beyond the largest page."""
    bomb = gzip.compress(b"\0" * 100 * 1024 * 1024)
    tracemalloc.start()
    try:
        assert entities_in(GZIP, bomb) == []
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_PAGE_BYTES
    finally:
        tracemalloc.stop()


def test_a_deeply_nested_page_has_no_entities() -> None:
    """A page nested deeper than the reader goes is unreadable."""
    assert entities_in({}, b'{"value":' + b"[" * 200_000) == []
