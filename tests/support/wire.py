"""What another process gets: Locust packs messages with msgpack."""

from __future__ import annotations

from typing import TypeVar

import msgpack
from pydantic import TypeAdapter

_T = TypeVar("_T")


def over_the_wire(sent: _T) -> _T:
    """A copy of ``sent`` that was packed and unpacked, as in a message to another process."""
    adapter: TypeAdapter[_T] = TypeAdapter(type(sent))
    packed = msgpack.packb(adapter.dump_python(sent))
    return adapter.validate_python(msgpack.unpackb(packed, strict_map_key=False))
