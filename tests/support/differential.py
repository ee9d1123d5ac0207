"""Answers of two endpoints to the same requests, and the counts of a client for itself.

An answer is compared after its times, ids and the address of the endpoint are replaced by names.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_CHANGES = frozenset(("date", "x-ms-request-id", "x-ms-client-request-id"))
"""Header fields that differ between any two answers."""
_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length"))
"""Header fields that are of one connection, or say how a body is framed."""

_TIME = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d+)?Z", re.IGNORECASE)
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATETIME = re.compile(r"datetime\.datetime\(20[2-9]\d,(?: \d+,)+ tzinfo=[\w.]+\)")
_OBJECT = re.compile(r"<\S+ object at 0x[0-9a-f]+>")
_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, as a client received it.

    Attributes:
        label: Which request it answers.
        table: Table that the request is about; empty without one.
        partition: Its partition; None for several partitions, or none.
        status: HTTP status.
        headers: Names and values in their order.
        body: The complete body.
        same_id: Whether ``x-ms-client-request-id`` is that of the request; None without one.
    """

    label: str
    table: str
    partition: str | None
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    same_id: bool | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Answer:
        """Read an answer from what the script in JavaScript prints."""
        body = base64.b64decode(content["body"])
        headers = tuple((name, value) for name, value in content["headers"])
        return cls(**{**content, "headers": headers, "body": body})

    def counted_as(self) -> str:
        """The status that the gateway counts: in a batch of the part that failed, or the query."""
        if self.status == 202:
            statuses = [found.decode() for found in _PART_STATUS.findall(self.body)]
            decisive = [status for status in statuses if int(status) >= 300 or status == "200"]
            return decisive[0] if decisive else "202"
        return str(self.status)

    def comparable(self, authority: str) -> dict[str, Any]:
        """Everything that has to be equal, of the endpoint at ``authority``."""
        headers = [
            (name, _plain(value, authority))
            for name, value in self.headers
            if name.lower() not in _CHANGES | _HOP
        ]
        declared = [int(value) for name, value in self.headers if name.lower() == "content-length"]
        return {
            "label": self.label,
            "status": self.status,
            "headers": headers,
            "changing": sorted(
                name.lower() for name, _ in self.headers if name.lower() in _CHANGES
            ),
            "length is right": not declared or declared == [len(self.body)] or not self.body,
            "body": _plain(self.body.decode("utf-8", "surrogateescape"), authority),
            "same id": self.same_id,
        }


def _plain(text: str, authority: str) -> str:
    return _ID.sub("<id>", _TIME.sub("<time>", text.replace(authority, "<host>")))


def plain(value: object, authority: str) -> str:
    """What a call of a client returned or raised, as comparable text."""
    return _plain(_OBJECT.sub("<object>", _DATETIME.sub("<time>", repr(value))), authority)


def differences(
    direct: Iterable[Answer], at: str, through: Iterable[Answer], gateway: str
) -> list[str]:
    """Every difference between two lists of answers, in a line each."""
    found = []
    for one, other in zip(direct, through, strict=True):
        first, second = one.comparable(at), other.comparable(gateway)
        found += [
            f"{one.label}: {name}\n  direct:  {value!r}\n  through: {second[name]!r}"
            for name, value in first.items()
            if value != second[name]
        ]
    return found


Counts = collections.Counter[tuple[str, str | None, str]]


def own_counts(answers: Iterable[Answer]) -> Counts:
    """A client's counts of its answers by table, partition and status."""
    return collections.Counter(
        (answer.table.lower(), answer.partition, answer.counted_as()) for answer in answers
    )


def gateway_counts(counters: bytes) -> Counts:
    """The counts on a truth page, by table, partition and status."""
    found: Counts = collections.Counter()
    for row in json.loads(counters)["counts"]:
        found[row["table"].lower(), row["partition"], row["sent"]] += row["requests"]
    return found
