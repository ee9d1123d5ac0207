"""What a faulty table service counted, and where a run's record says something else."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.support.faulty_service.asked import Asked

if TYPE_CHECKING:
    from harness.measure.record.record import RunRecord

ABANDONED = "abandoned"
"""Nobody waited for the answer to its end."""

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_SUCCESSES = range(200, 300)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request.

    Attributes:
        phase: What the run was doing.
        seen_as: What a client saw, in the words of a record's ``attempts_by_status``.
        acknowledged: Whether the client saw a success.
        applied: Entities that the real service wrote for it.
        returned: Entities that its answer brought, where it came whole.
    """

    phase: str
    kind: str
    table: str
    partition: str
    seen_as: str
    acknowledged: bool
    applied: int
    returned: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Every request of a run, and the rows that are there after the load."""

    requests: tuple[Row, ...]
    rows_left: int

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Books:
        return cls(
            requests=tuple(Row(**row) for row in content["requests"]),
            rows_left=content["rows_left"],
        )

    def of(self, phase: str) -> list[Row]:
        """Requests about entities in one phase, without those that nobody waited for."""
        return [
            row
            for row in self.requests
            if row.phase == phase and row.seen_as != ABANDONED and "table" not in row.kind
        ]


def seen_in(asked: Asked, answer: bytes) -> tuple[str, bool, str]:
    """What a whole answer says: status and code and scope, whether it is a success, its message."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if asked.kind == "transaction" and status == 202:
        for inner in _STATUS_LINE.finditer(body):
            if int(inner[1]) not in _SUCCESSES:
                status, head, body = int(inner[1]), b"", body[inner.start() :]
                body = body.partition(b"\r\n\r\n")[2].partition(b"\r\n--")[0]
                break
    if status in _SUCCESSES:
        return str(status), True, ""
    code = message = ""
    named = re.search(rb"(?i)\r\nx-ms-error-code: *([^\r]+)", head)
    try:
        error = json.loads(body)["odata.error"]
        code, message = error["code"], error["message"]["value"]
    except (ValueError, KeyError, TypeError):
        pass
    code = code if named is None else named[1].decode()
    scope = ""
    if status in (503, 504, 429) or (status, code) == (500, "OperationTimedOut"):
        scope = "account" if "over the account limit" in message else "partition"
    return " ".join(part for part in (str(status), code, scope) if part), False, message


def differences(record: RunRecord, books: Books) -> list[str]:
    """Where the record of a run and the server's books are not the same, as sentences."""
    return list(_differences(record, books))


def _differences(record: RunRecord, books: Books) -> Iterator[str]:
    load, loading = books.of("load"), books.of("loading")

    def same(what: str, recorded: object, received: object) -> Iterator[str]:
        if recorded != received:
            yield f"{what}: record {recorded}, server {received}"

    by_status = Counter(row.seen_as for row in load)
    yield from same(
        "attempts by status", record.attempts_by_status, dict(sorted(by_status.items()))
    )
    yield from same("attempts", record.counts.attempts, len(load))
    for scope in ("partition", "account"):
        scoped = sum(count for name, count in by_status.items() if name.endswith(f" {scope}"))
        yield from same(f"throttled by {scope}", record.throttled[scope], scoped)
    before = Counter(row.seen_as for row in loading)
    yield from same(
        "attempts of loading", record.loading.attempts_by_status, dict(sorted(before.items()))
    )
    sent = len(books.requests)
    yield from same("billable transactions", record.counts.billable_transactions, sent)
    yield from _partitions(record, load)
    yield from _writes(record, load)
    returned = sum(row.returned for row in load if row.kind == "query")
    yield from same("entities returned", record.counts.entities_returned, returned)
    yield from same("broken invariants", record.invariants, ())
    yield from same("complete", record.complete, True)


def _partitions(record: RunRecord, load: list[Row]) -> Iterator[str]:
    """Every partition that is told apart has the attempts that the server had for it."""
    received: dict[str, Counter[str]] = {}
    for row in load:
        table = row.table.removeprefix(record.endpoint.table)
        # No PartitionKey holds a slash; a query over several partitions has only that.
        key = row.partition or "/"
        received.setdefault(f"{table}/{key}" if table else key, Counter())[row.seen_as] += 1
    for part in record.partitions:
        there = dict(sorted(received.get(part.key, Counter()).items()))
        if part.exact and part.since is None and part.attempts_by_status != there:
            yield f"partition {part.key!r}: record {part.attempts_by_status}, server {there}"
    if record.partitions_folded is None:
        missing = received.keys() - {part.key for part in record.partitions}
        if missing:
            yield f"partitions that the record does not have: {sorted(missing)}"


def _writes(record: RunRecord, load: list[Row]) -> Iterator[str]:
    """Acknowledged writes are those answered with success, and of the lost ones at most all."""
    writes = [row for row in load if row.kind not in ("point", "query")]
    parts = [part for part in record.operations if part.type not in ("point_query", "query")]
    acknowledged = sum(part.entities for part in parts)
    answered = sum(row.applied for row in writes if row.acknowledged)
    lost = sum(row.applied for row in writes if not row.acknowledged)
    decided = sum(part.outcomes.get("success_after_ambiguity", 0) for part in parts)
    if not answered <= acknowledged <= answered + lost or (not decided and acknowledged > answered):
        yield (
            f"entities written: record {acknowledged}, of them {decided} operations by read-back; "
            f"server {answered} answered with success, {lost} with the answer lost"
        )
