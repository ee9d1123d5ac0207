"""The format of a trace file: members of gzip, each with one line of JSON.

``zcat FILE`` shows the whole trace. An extra field in the header of each gzip member (RFC 1952,
"Extra field") has its size, the number of its operations and their first and last instant, so that
a reader finds every member without unpacking it, and finds the next one after damage. There are
three types of members: a head, blocks of operations in columns, and an end, which is missing if the
recording did not end regularly. A file can be appended to, and files can be concatenated.

`docs/trace.md` describes the JSON.
"""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import orjson

from harness import __version__

VERSION = 1
"""Of the format. A later version may be unreadable for this reader."""

HEAD, BLOCK, END = 0, 1, 2

KEPT = {
    "": "Keys are plain.",
    "nothing": "Keys are aliases.",
    "prefixes": "Keys are aliases that keep common prefixes, up to each separator.",
    "order": "Keys are aliases that keep their order.",
}
"""What ``TraceHead.keys`` means."""
_KEPT_LEAST = ("nothing", "prefixes", "order", "")

RUN = "run"
"""``TraceHead.source`` of a run of the harness."""
WHOLE, BODIES = "whole", "bodies"
"""``TraceHead.bytes_of``: of requests and answers with their heads, or without them."""

_LEVEL = 1
"""Of compression: a higher level takes twice the time and saves a tenth."""
_FIXED = struct.Struct("<4sIBBH")
"""Magic with method and flags, time, extra flags, operating system, length of the extra field."""
_MAGIC = b"\x1f\x8b\x08\x04"
_UNKNOWN_SYSTEM = 255
_FIELD = struct.Struct("<2sHBIIqqI")
"""Identifier, length; then type, size of the member, operations, first and last instant, checksum
of these."""
_IDENTIFIER = b"TH"
_IDENTIFIER_BYTES = 4
_TAIL = struct.Struct("<II")
PREFIX_BYTES = _FIXED.size + _FIELD.size
_START = _MAGIC + bytes(5) + bytes((_UNKNOWN_SYSTEM,))
_CHECKED = slice(_FIXED.size, PREFIX_BYTES - 4)


class TraceError(ValueError):
    """A file or a member is not a trace; the message is the reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prefix:
    """What the header of a member says.

    Attributes:
        operations: Number of operations; 0 but for a block.
        first_ms: The earliest instant of them, UTC milliseconds; ``last_ms`` the latest.
    """

    kind: int
    size: int
    operations: int = 0
    first_ms: int = 0
    last_ms: int = 0

    @classmethod
    def read(cls, data: bytes) -> Prefix | None:
        """The prefix at the beginning of ``data``; None if there is none."""
        if len(data) < PREFIX_BYTES or not data.startswith(_START):
            return None
        name, _, *fields, checksum = _FIELD.unpack_from(data, _FIXED.size)
        if name != _IDENTIFIER or checksum != zlib.crc32(data[_CHECKED]):
            return None
        return cls(*fields)


def next_member(data: bytes) -> int:
    """Where the first member begins in ``data``; -1 if none does."""
    place = data.find(_START)
    while place >= 0 and Prefix.read(data[place : place + PREFIX_BYTES]) is None:
        place = data.find(_START, place + 1)
    return place


def pack(
    kind: int, content: Any, *, operations: int = 0, first_ms: int = 0, last_ms: int = 0
) -> bytes:
    """A member with ``content`` as JSON."""
    line = _dumped(content) + b"\n"
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(line) + packer.flush()
    size = PREFIX_BYTES + len(packed) + _TAIL.size
    field = _FIELD.pack(
        _IDENTIFIER, _FIELD.size - _IDENTIFIER_BYTES, kind, size, operations, first_ms, last_ms, 0
    )[:-4]
    return b"".join(
        (
            _FIXED.pack(_MAGIC, 0, 0, _UNKNOWN_SYSTEM, _FIELD.size),
            field,
            zlib.crc32(field).to_bytes(4, "little"),
            packed,
            _TAIL.pack(zlib.crc32(line), len(line)),
        )
    )


def unpack(member: bytes) -> dict[str, Any]:
    """The content of a whole member.

    Raises:
        TraceError: it is damaged.
    """
    try:
        line = zlib.decompress(member[PREFIX_BYTES : -_TAIL.size], -zlib.MAX_WBITS)
        if _TAIL.unpack(member[-_TAIL.size :]) != (zlib.crc32(line), len(line)):
            raise TraceError("its checksum does not match")
        content = orjson.loads(line)
    except (zlib.error, struct.error, orjson.JSONDecodeError) as error:
        raise TraceError(str(error)) from error
    if not isinstance(content, dict):
        raise TraceError("it holds no JSON object")
    return content


def _dumped(content: Any) -> bytes:
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair is no text.
        return orjson.dumps(_text_only(content))


def _text_only(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_text_only(name): _text_only(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_text_only(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TraceHead:
    """What a trace says of itself.

    Attributes:
        started_ms: UTC milliseconds from which all instants count; a whole second.
        source: What was recorded: ``watch``, ``run``, or the name of a log format.
        name: Name of the run, of the watch, or of the file that was read.
        run_id: The run whose record holds the same counts; empty without one.
        harness: Version of the harness that wrote it; empty is this one.
        account: The storage account; empty if unknown, and with aliases for keys.
        keys: What the aliases of keys keep: see `KEPT`; empty for plain keys.
        bytes_of: What was counted as bytes: `WHOLE`, or `BODIES`; empty in earlier traces.
    """

    started_ms: int
    source: str
    name: str = ""
    run_id: str = ""
    harness: str = ""
    endpoint: str = ""
    account: str = ""
    keys: str = ""
    bytes_of: str = ""

    @property
    def recorded(self) -> str:
        """What was recorded, in words: ``watch (node)``, ``run (key-spread)``."""
        return f"{self.source} ({self.name})" if self.name else self.source

    @property
    def counts_whole(self) -> bool:
        """Whether bytes are those of whole requests and answers, not only of their bodies."""
        return self.bytes_of == WHOLE or (not self.bytes_of and self.source == RUN)

    def joined(self, later: TraceHead) -> TraceHead:
        """This head, for a file that another recording was appended to.

        Of the aliases in both it says what is kept in all of them.
        """
        both = (self.keys, later.keys)
        least = next((kept for kept in _KEPT_LEAST if kept in both), self.keys)
        return dataclasses.replace(self, keys=least)

    def encode(self) -> bytes:
        fields = {**dataclasses.asdict(self), "harness": self.harness or __version__}
        return pack(HEAD, {"format": "harness trace", "version": VERSION, **fields})

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> TraceHead:
        """The head in the content of a member.

        Raises:
            TraceError: it is of a later version, or unreadable.
        """
        version = content.get("version")
        if not isinstance(version, int):
            raise TraceError("its head has no version")
        if version > VERSION:
            raise TraceError(f"it has version {version}; this harness reads up to {VERSION}")
        fields: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = content.get(field.name, field.default)
            if field.name == "started_ms":
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TraceError("its head does not say when it starts")
            elif not isinstance(value, str):
                raise TraceError(f"its head has no text as {field.name}")
            fields[field.name] = value
        return cls(**fields)
