"""The gateway's truth beside the record of a run: two counts of the same requests.

The gateway counted what it answered, the harness what it was answered. Loading is not in the
record's counts, so the page is read when the load begins and when it is over.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from harness.gateway.process import GatewayProcess
from harness.gateway.truth import OTHER
from harness.measure.figures import counted
from harness.measure.record import RunRecord
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE

NO_ANSWER = "no whole answer"
_SHOWN = 24

Counts = collections.Counter[tuple[str, str]]
"""Requests by partition and status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Requests of one partition with one status, by both counts."""

    partition: str
    status: str
    gateway: int
    record: int


class Rehearsal:
    """One run through the harness's own gateway.

    Args:
        gateway: The gateway.
        table: The table that the run stresses.
        endings: Endings of the names of all its tables.
        name: How the record calls a partition.
    """

    def __init__(
        self,
        gateway: GatewayProcess,
        table: str,
        endings: Iterable[str] = ("",),
        name: Callable[[str], str] = str,
    ) -> None:
        self._gateway = gateway
        self._name = name
        self._tables = {table + ending: ending for ending in endings}
        self._before = Counts()
        self._after = Counts()
        self._moves: list[dict[str, Any]] = []
        self._began_s = 0.0
        self._problem = ""

    @classmethod
    def of(
        cls,
        gateway: GatewayProcess | None,
        table: str,
        endings: Iterable[str],
        name: Callable[[str], str],
    ) -> Self | None:
        """One through ``gateway``; None where there is none."""
        return None if gateway is None else cls(gateway, table, endings, name)

    def begin(self, now_s: float) -> None:
        """The load begins now, UTC seconds."""
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
        # Each count tells other partitions apart once there are more than 200.
        folded: Counts = collections.Counter()
        for (key, status), count in truth.items():
            folded[key if key in shown else OTHER, status] += count
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
        """What stands below the summary of the run."""
        if self._problem:
            return f"{record.endpoint.described}: no count beside the record: {self._problem}"
        compared = self.compared(record)
        wrong = sum(abs(row.gateway - row.record) for row in compared)
        limits = self._gateway.limits
        lines = [
            f"{record.endpoint.described}: its own count beside the record",
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
        lines += [f"  {_told(move)}" for move in self._moves]
        return "\n".join(lines)

    def _read(self) -> tuple[Counts, list[dict[str, Any]]]:
        try:
            page = json.loads(self._gateway.truth())
        except SetupError as error:
            self._problem = str(error)
            return Counts(), []
        counts = Counts()
        for row in page["counts"]:
            folded = row["table"] == "" and row["partition"] == OTHER
            if row["table"] in self._tables or folded:
                key = WHOLE_TABLE if row["partition"] is None else row["partition"]
                if ending := self._tables.get(row["table"]):
                    key = f"{ending}/{key}"
                if not folded:
                    key = self._name(key)
                status = row["sent"] if row["sent"].isdigit() else NO_ANSWER
                counts[key, status] += row["requests"]
        moves = page["moves"]
        for move in moves:
            move["partition_key"] = self._name(move["partition_key"])
        return counts, moves


def recorded_counts(record: RunRecord) -> Counts:
    """The record's attempts by partition and status."""
    found = Counts()
    parts: list[tuple[str, Mapping[str, int]]] = [
        (part.key, part.attempts_by_status) for part in record.partitions
    ]
    if record.partitions_folded is not None:
        parts.append((OTHER, record.partitions_folded.attempts_by_status))
    for key, attempts in parts:
        for name, count in attempts.items():
            status = name.partition(" ")[0]
            found[key, status if status.isdigit() else NO_ANSWER] += count
    return found


def _told(move: Mapping[str, Any]) -> str:
    at = dt.datetime.fromtimestamp(move["at_s"], tz=dt.UTC)
    gone_s = move["until_s"] - move["at_s"]
    return (
        f"partition {move['partition_key']!r} was moved from server {move['from_server']} to "
        f"{move['to_server']} at {at:%H:%M:%S} UTC, and was gone for {gone_s:g} s"
    )
