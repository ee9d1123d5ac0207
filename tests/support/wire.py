"""What another process gets: Locust packs messages with msgpack."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgpack
from pydantic import TypeAdapter

_T = TypeVar("_T")


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Kept, because to make one takes longer than a small message."""
    return TypeAdapter(kind)


def over_the_wire(sent: _T) -> _T:
    """A copy of ``sent`` that was packed and unpacked, as in a message to another process."""
    kind: Any = type(sent)
    adapter: TypeAdapter[_T] = _adapter(kind)
    packed = msgpack.packb(adapter.dump_python(sent))
    return adapter.validate_python(msgpack.unpackb(packed, strict_map_key=False))
