"""Splits the body of a ``$batch`` into its requests.

A batch is multipart: a change set of writes, or one query (Microsoft, "Performing entity group
transactions"). Lines may end with LF alone, and a URL may contain blanks.
"""

from __future__ import annotations

import dataclasses
import re

_BOUNDARY = re.compile(rb"boundary=\"?([^\s\";]+)")
_FIRST_DELIMITER = re.compile(rb"\A\s*--([^\s]+)")
_REQUEST_LINE = re.compile(
    rb"^(GET|POST|PUT|PATCH|MERGE|DELETE)[ \t]+(\S.*?)(?:[ \t]+HTTP/\d\.\d)?[ \t]*\r?$",
    re.MULTILINE,
)
_IF_MATCH = re.compile(rb"^If-Match:", re.MULTILINE | re.IGNORECASE)
_OVERRIDE = re.compile(rb"^X-HTTP-Method:[ \t]*(\w+)", re.MULTILINE | re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_HOST = re.compile(r"[A-Za-z]+://[^/]*")


@dataclasses.dataclass(frozen=True, slots=True)
class BatchPart:
    """One request of a batch.

    Attributes:
        method: That of X-HTTP-Method where POST stands in for it.
        target: Path and query, without scheme and host.
        conditional: It has the header If-Match.
    """

    method: str
    target: str
    body: bytes
    conditional: bool = False


def batch_parts(body: bytes) -> list[BatchPart]:
    """Return the requests in a batch; empty if there are none."""
    boundary = _BOUNDARY.search(body) or _FIRST_DELIMITER.search(body)
    if boundary is None:
        return []
    delimiter = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary[1]) + rb"(?=\s|--|\Z)")
    parts = []
    for piece in delimiter.split(body)[1:]:
        line = _REQUEST_LINE.search(piece)
        if line is None:
            continue
        blank = _BLANK_LINE.search(piece, line.end(2))
        target = _HOST.sub("", line[2].decode("utf-8", "replace"), count=1)
        head_end = len(piece) if blank is None else blank.start()
        override = _OVERRIDE.search(piece, line.end(2), head_end)
        method = override[1].upper() if override and line[1] == b"POST" else line[1]
        parts.append(
            BatchPart(
                method.decode(),
                target,
                b"" if blank is None else piece[blank.end() :],
                _IF_MATCH.search(piece, line.end(2), head_end) is not None,
            )
        )
    return parts
