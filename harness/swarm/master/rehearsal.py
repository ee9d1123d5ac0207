"""Compares the counts of the embedded gateway with the record of a run.

The gateway counts its responses, the harness the responses that it received. The record does not
count loading, so the gateway's counts are read when the load begins and when it is over.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from harness.gateway.process import GatewayProcess
from harness.model.figures import counted
from harness.measure.record.enforced import EnforcedPart, moves_of
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.model.operation import FOLDED, WHOLE_TABLE

NO_ANSWER = "no whole answer"
_SHOWN = 24

Counts = collections.Counter[tuple[str, str]]
"""Number of requests by partition and status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What the gateway's page says.

    Attributes:
        counts: Requests by partition and status.
        exact: Partitions whose row has all of their requests.
        moves: The latest moves.
    """

    counts: Counts = dataclasses.field(default_factory=Counts)
    exact: frozenset[str] = frozenset()
    moves: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class Rehearsal:
    """One run through the embedded gateway; ``name`` returns a partition's name in the record."""

    def __init__(
        self,
        gateway: GatewayProcess,
        table: str,
        suffixes: Iterable[str],
        name: Callable[[str], str],
    ) -> None:
        self._gateway = gateway
        self._name = name
        self._tables = {table + suffix: suffix for suffix in suffixes}
        self._before, self._after = _Counted(), _Counted()
        self._moves: list[dict[str, Any]] = []
        self._began_s = 0.0
        self._problem = ""

    def begin(self, now_s: float) -> None:
        self._before = self._read()
        self._began_s = now_s

    def end(self) -> None:
        self._after = self._read()
        self._moves = self._after.moves

    def follow(self) -> None:
        """Read the moves so far; the earlier ones stay if the gateway does not answer."""
        with contextlib.suppress(SetupError):
            self._moves = json.loads(self._gateway.truth())["moves"]

    def enforced(self) -> EnforcedPart:
        """The limits that the run is held to, and the moves up to its end."""
        limits = self._gateway.limits
        return EnforcedPart(
            partition_per_s=limits.partition.entities_per_s,
            account_per_s=limits.account.entities_per_s,
            server_per_s=limits.servers.entities_per_s,
            moves=moves_of(self._moves, self._began_s, self._named),
        )

    def text(self, record: RunRecord) -> str:
        """Both counts by partition and status, for below the summary of the run."""
        described = record.endpoint.described
        if self._problem:
            return f"{described}: the counts of the gateway cannot be read: {self._problem}"
        # Above 200 partitions, gateway and record have rows for different ones, and some rows begin
        # late: only partitions that both have counted from the start are compared one by one.
        kept = self._after.exact & {part.key for part in record.partitions if part.exact}
        recorded = _folded(recorded_counts(record), kept)
        counted_there = _folded(self._after.counts, kept) - _folded(self._before.counts, kept)
        rows = sorted(counted_there.keys() | recorded.keys())
        wrong = sum(abs(counted_there[row] - recorded[row]) for row in rows)
        lines = [
            f"{described}: counts of the gateway and of the record",
            f"  {'partition':24} {'answer':16} {'gateway':>12} {'record':>12}",
        ]
        lines += [
            f"  {row[0][:24]:24} {row[1]:16} {counted_there[row]:12,} {recorded[row]:12,}"
            for row in rows[:_SHOWN]
        ]
        if len(rows) > _SHOWN:
            lines.append(f"  and {counted(len(rows) - _SHOWN, 'row')} more")
        lines.append(f"  {'all':41} {counted_there.total():12,} {recorded.total():12,}")
        lines.append(
            "  all counts are equal" if not wrong else f"  {counted(wrong, 'request')} apart"
        )
        counts = record.counts
        if counts.operations:
            lines.append(f"  {counts.attempts / counts.operations:.3f} attempts an operation")
        return "\n".join(lines)

    def _read(self) -> _Counted:
        try:
            page = json.loads(self._gateway.truth())
        except SetupError as error:
            self._problem = str(error)
            return _Counted()
        counts, exact = Counts(), set()
        for row in page["counts"]:
            folded = row["table"] == "" and row["partition"] == FOLDED
            if row["table"] in self._tables or folded:
                key = WHOLE_TABLE if row["partition"] is None else row["partition"]
                if suffix := self._tables.get(row["table"]):
                    key = f"{suffix}/{key}"
                if not folded:
                    key = self._name(key)
                status = row["sent"] if row["sent"].isdigit() else NO_ANSWER
                counts[key, status] += row["requests"]
                if row["exact"]:
                    exact.add(key)
        return _Counted(counts=counts, exact=frozenset(exact), moves=page["moves"])

    def _named(self, table: str, key: str) -> str:
        suffix = self._tables.get(table)
        return self._name(f"{suffix}/{key}" if suffix else key)


def _folded(counts: Counts, kept: Container[str]) -> Counts:
    folded = Counts()
    for (key, status), count in counts.items():
        folded[key if key in kept else FOLDED, status] += count
    return folded


def recorded_counts(record: RunRecord) -> Counts:
    found = Counts()
    parts: list[tuple[str, Mapping[str, int]]] = [
        (part.key, part.attempts_by_status) for part in record.partitions
    ]
    if record.partitions_folded is not None:
        parts.append((FOLDED, record.partitions_folded.attempts_by_status))
    for key, attempts in parts:
        for name, count in attempts.items():
            status = name.partition(" ")[0]
            found[key, status if status.isdigit() else NO_ANSWER] += count
    return found
