"""What a trace says of itself: the key-value metadata of each of its Parquet files.

`docs/trace-schema.md` describes the keys.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence

from harness import __version__

FORMAT, VERSION = "harness trace", 2
"""Values of ``format`` and ``version``. A later version may be unreadable for this reader."""

KEPT = {
    "nothing": "Keys are aliases.",
    "prefixes": "Keys are aliases that keep common prefixes, up to each separator.",
    "order": "Keys are aliases that keep their order.",
    "": "Keys are plain.",
}
"""What ``TraceHead.keys`` means, those first that keep least."""

RUN = "run"
"""``TraceHead.source`` of a run of the harness."""
_MOST_DIGITS = 13
WHOLE, BODIES = "whole", "bodies"
"""``TraceHead.bytes_of``: of requests and answers with their heads, or without them."""


class TraceError(ValueError):
    """A file, or a part of it, is not a trace; the message is the reason."""


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
        bytes_of: What was counted as bytes: `WHOLE`, or `BODIES`.
        properties: Names of the properties whose values are recorded, separated by commas.
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
    properties: str = ""

    @property
    def property_names(self) -> tuple[str, ...]:
        return tuple(filter(None, self.properties.split(",")))

    @property
    def recorded(self) -> str:
        """What was recorded, in words: ``watch (node)``, ``run (key-spread)``."""
        return f"{self.source} ({self.name})" if self.name else self.source

    @property
    def counts_whole(self) -> bool:
        """Whether bytes are those of whole requests and answers, not only of their bodies."""
        return self.bytes_of == WHOLE or (not self.bytes_of and self.source == RUN)

    @property
    def keeps_order(self) -> bool:
        """Whether keys are in the order of the real ones, so that ranges of them are ranges."""
        return self.keys in ("", "order")

    def joined(self, later: TraceHead) -> TraceHead:
        """This head, for a folder with the files of another recording too.

        Of the aliases in both it says what is kept in all of them.
        """
        both = (self.keys, later.keys)
        least = next((kept for kept in KEPT if kept in both), self.keys)
        return dataclasses.replace(self, keys=least)

    def metadata(self) -> dict[str, str]:
        fields = {name: str(value) for name, value in dataclasses.asdict(self).items()}
        return {
            "format": FORMAT,
            "version": str(VERSION),
            **fields,
            "harness": self.harness or __version__,
        }

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> TraceHead | None:
        """The head in the metadata of a file; None if another program wrote the file.

        Raises:
            TraceError: it is of a later version, or unreadable.
        """
        if metadata.get("format") != FORMAT:
            return None
        version, started_ms = metadata.get("version", ""), metadata.get("started_ms", "")
        if version != str(VERSION):
            raise TraceError(f"it has version {version[:20]}; this harness reads {VERSION}")
        if not started_ms.isdecimal() or len(started_ms) > _MOST_DIGITS:
            raise TraceError("its metadata does not say when it starts")
        texts = {
            field.name: metadata.get(field.name, "")
            for field in dataclasses.fields(cls)
            if field.name != "started_ms"
        }
        return cls(started_ms=int(started_ms), **texts)


def ending(lost: int = 0, notes: Sequence[str] = ()) -> dict[str, str]:
    """Further metadata of the last file of a recording that ended regularly.

    Args:
        lost: Operations that are known to be missing.
        notes: Sentences about what else is missing.
    """
    return {"ended": "true", "lost": str(lost), "notes": json.dumps([*notes])}
