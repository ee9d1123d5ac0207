"""Compares the counts of the embedded gateway with the record of a run.

The gateway counts its responses, the harness the responses that it received. The record does not
count loading, so the gateway's counts are read when the load begins and when it is over.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.gateway.process import GatewayProcess
from harness.measure.figures import counted
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.model.operation import FOLDED, WHOLE_TABLE

NO_ANSWER = "no whole answer"
_SHOWN = 24

Counts = collections.Counter[tuple[str, str]]
"""Number of requests by partition and status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Both counts of one partition and one status."""

    partition: str
    status: str
    gateway: int
    record: int


class Rehearsal:
    """One run through the embedded gateway.

    Args:
        gateway: The gateway.
        table: Name of the stressed table.
        suffixes: Suffixes of the names of all tables.
        name: Returns the name of a partition in the record.
    """

    def __init__(
        self,
        gateway: GatewayProcess,
        table: str,
        suffixes: Iterable[str] = ("",),
        name: Callable[[str], str] = str,
    ) -> None:
        self._gateway = gateway
        self._name = name
        self._tables = {table + suffix: suffix for suffix in suffixes}
        self._before = Counts()
        self._after = Counts()
        self._moves: list[dict[str, Any]] = []
        self._began_s = 0.0
        self._problem = ""

    def begin(self, now_s: float) -> None:
        """The load begins at ``now_s``, UTC."""
        self._before, _ = self._read()
        self._began_s = now_s

    def end(self) -> None:
        """The load is over."""
        self._after, moves = self._read()
        self._moves = [move for move in moves if move["until_s"] > self._began_s]

    def compared(self, record: RunRecord) -> list[Compared]:
        """Both counts, by partition and status."""
        truth, recorded = self._after - self._before, recorded_counts(record)
        shown = {key for key, _ in recorded}
        # Above 200 partitions, gateway and record keep different ones.
        folded: Counts = collections.Counter()
        for (key, status), count in truth.items():
            folded[key if key in shown else FOLDED, status] += count
        return [
            Compared(
                partition=key,
                status=status,
                gateway=folded[key, status],
                record=recorded[key, status],
            )
            for key, status in sorted(folded.keys() | recorded.keys())
        ]

    def text(self, record: RunRecord) -> str:
        """Return the text below the summary of the run."""
        if self._problem:
            described = record.endpoint.described
            return f"{described}: its counts cannot be read: {self._problem}"
        compared = self.compared(record)
        wrong = sum(abs(row.gateway - row.record) for row in compared)
        limits = self._gateway.limits
        lines = [
            f"{record.endpoint.described}: its own counts and the record",
            f"  held to {limits.partition.entities_per_s:,.0f} entities/s a partition, "
            f"{limits.account.entities_per_s:,.0f} the account",
            f"  {'partition':24} {'answer':16} {'gateway':>12} {'record':>12}",
        ]
        lines += [
            f"  {row.partition[:24]:24} {row.status:16} {row.gateway:12,} {row.record:12,}"
            for row in compared[:_SHOWN]
        ]
        if len(compared) > _SHOWN:
            lines.append(f"  and {counted(len(compared) - _SHOWN, 'row')} more")
        sums = [sum(row.gateway for row in compared), sum(row.record for row in compared)]
        lines.append(f"  {'all':41} {sums[0]:12,} {sums[1]:12,}")
        lines.append(
            "  equal to the last request" if not wrong else f"  {counted(wrong, 'request')} apart"
        )
        counts = record.counts
        if counts.operations:
            lines.append(f"  {counts.attempts / counts.operations:.3f} attempts an operation")
        lines += [f"  {_move_text(move)}" for move in self._moves]
        return "\n".join(lines)

    def _read(self) -> tuple[Counts, list[dict[str, Any]]]:
        try:
            page = json.loads(self._gateway.truth())
        except SetupError as error:
            self._problem = str(error)
            return Counts(), []
        counts = Counts()
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
        moves = page["moves"]
        for move in moves:
            move["partition_key"] = self._name(move["partition_key"])
        return counts, moves


def recorded_counts(record: RunRecord) -> Counts:
    """Return the attempts of a record by partition and status."""
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


def _move_text(move: Mapping[str, Any]) -> str:
    at = dt.datetime.fromtimestamp(move["at_s"], tz=dt.UTC)
    gone_s = move["until_s"] - move["at_s"]
    return (
        f"partition {move['partition_key']!r} was moved from server {move['from_server']} to "
        f"{move['to_server']} at {at:%H:%M:%S} UTC and was unavailable for {gone_s:g} s"
    )
