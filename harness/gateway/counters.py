"""The gateway's own counts by partition, scope and status, independent of any client's.

The heaviest partitions of all tables have a row each, as in the ledger of a run. The others are
summed in ``(other)``; sums are exact. A request is counted once, when its response is known.
"""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from datasketches import frequent_strings_sketch

from harness.gateway.requests import Asked
from harness.gateway.rules.counting import NO_ENTITIES, Count
from harness.gateway.rules.moving import Move
from harness.model.operation import FOLDED
from harness.model.outcome import Scope
from harness.model.partition import EXACT_PARTITIONS
from harness.model.request_units import HUNDREDTHS, charge_text

_SKETCH_LOG2 = 12
"""4,096 counters: a weight is off by at most 0.09 % of all that was counted."""
_HEAVY_SHARE = 0.001
"""A partition with this share of all weight is heavy. Many equally light ones would only replace
each other."""
_MARGIN = 0.9
"""This share of a partition's weight has to exceed the lightest row's to take its place, so that
nearly equal partitions do not swap rows."""
_LINE_END = ",\n"
_WEIGHT = operator.attrgetter("weight")
_FAMILIES = (
    ("gateway_requests_total", "requests", "Requests by what became of them."),
    ("gateway_entities_total", "entities", "Entities by the targets' counting rule."),
    ("gateway_entities_returned_total", "returned", "Entities in the answers."),
)
_CHARGED = ("gateway_request_units_total", HUNDREDTHS, "Request units charged.")
_COUNTED = ("requests", "entities", "returned", "estimated")

RESET = "reset"
HALF = "half"
GONE = "gone"
"""In place of a status if no complete response was sent; `GONE`: the client had disconnected."""

UNANSWERED = "unanswered"
"""In place of the endpoint's status if it got the request and sent no complete response."""


# A tuple, because its hash is needed for each request.
class Disposition(NamedTuple):
    """The result of a request.

    Attributes:
        result: ``passed``, ``refused`` by a limit, or ``fault``.
        scope: Scope of a refusal: partition or account.
        rule: The rule that refused, or the fault.
        sent: Status of the response, of a failed part for a transaction; `RESET`, `HALF` or `GONE`
            without a complete response.
        upstream: Status of the endpoint's response; `UNANSWERED` without a complete one; empty if
            the endpoint got no request.
    """

    result: str
    sent: str
    scope: Scope = Scope.NONE
    rule: str = ""
    upstream: str = ""


@dataclasses.dataclass(slots=True)
class _Sums:
    """Requests, entities and request units (hundredths) of one disposition."""

    requests: int = 0
    entities: int = 0
    returned: int = 0
    estimated: int = 0
    charged: int = 0


_Partition = tuple[str, str | None]
"""Table in lower case, and PartitionKey; None for several partitions, or none."""


class _Row:
    """The counts of one partition.

    Attributes:
        table: Name of the table as first spelled.
        partition: What it has the counts of.
        earlier: Weight before the partition had the row; 0 if every request is in it.
        weight: Requests and entities, what a row is kept for.
    """

    __slots__ = ("counts", "earlier", "partition", "table", "weight")

    def __init__(self, table: str, partition: _Partition, *, earlier: int = 0) -> None:
        self.table = table
        self.partition = partition
        self.earlier = self.weight = earlier
        self.counts: dict[Disposition, _Sums] = {}

    def add(self, disposition: Disposition, count: Count | _Sums, requests: int = 1) -> None:
        sums = self.counts.get(disposition)
        if sums is None:
            sums = self.counts[disposition] = _Sums()
        entities = count.entities
        sums.requests += requests
        sums.entities += entities
        sums.returned += count.returned
        sums.estimated += count.estimated
        sums.charged += count.charged
        self.weight += requests + entities


class Counters:
    """Counts since the gateway started."""

    def __init__(self) -> None:
        self._rows: dict[_Partition, _Row] = {}
        self._other = _Row("", ("", FOLDED))
        self._requests = 0
        self._weight = 0
        self._without_row = frequent_strings_sketch(_SKETCH_LOG2)
        # At most the weight of the lightest row, because rows only grow heavier.
        self._lightest = 0

    def add(self, asked: Asked, disposition: Disposition, count: Count = NO_ENTITIES) -> None:
        self._requests += 1
        self._weight += 1 + count.entities
        partition = (asked.table, asked.partition_key)
        row = self._rows.get(partition)
        if row is None:
            if len(self._rows) < EXACT_PARTITIONS:
                row = self._rows[partition] = _Row(asked.spelled, partition)
            else:
                self._fold(asked, partition, disposition, count)
                return
        row.add(disposition, count)

    def to_json(
        self,
        *,
        address: str,
        upstream: str,
        limits: Mapping[str, Any],
        moves: Iterable[Move],
        moved: int,
        units: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the page, with request units if there are ``units``, which it includes.

        Partition null: requests about several partitions, or about tables.
        """
        spelled = {table: row.table for (table, _), row in self._rows.items()}
        content = {
            "what": "Azurite or another endpoint behind a gateway, not Azure"
            if units is None
            else "A stand-in for Azure Cosmos DB, not Azure: charges are partly assumed",
            "address": address,
            "upstream": upstream,
            "limits": limits,
            "requests": self._requests,
            "counts": list(self._told(charged=units is not None)),
            "moved": moved,
            "moves": [
                {**dataclasses.asdict(move), "table": spelled.get(move.table, move.table)}
                for move in moves
            ],
            **(units or {}),
        }
        # One line per count, for human readers.
        lines = [
            f"{json.dumps(name)}: [\n{_LINE_END.join(map(json.dumps, value))}\n]"
            if isinstance(value, list)
            else f"{json.dumps(name)}: {json.dumps(value)}"
            for name, value in content.items()
        ]
        return "{" + ",\n".join(lines) + "}\n"

    def to_prometheus(self, *, moved: int, units: Mapping[str, Any] | None = None) -> str:
        """Return the same counts in the format of Prometheus."""
        names = ("table", "partition", "result", "scope", "rule", "sent", "upstream")
        lines: list[str] = []
        for metric, field, about in _FAMILIES if units is None else (*_FAMILIES, _CHARGED):
            lines += [f"# HELP {metric} {about}", f"# TYPE {metric} counter"]
            for row in self._told():
                labels = ",".join(f'{name}="{_escaped(str(row[name] or ""))}"' for name in names)
                value = charge_text(row[field]) if field == HUNDREDTHS else row[field]
                lines.append(f"{metric}{{{labels}}} {value}")
        lines += [
            "# HELP gateway_moves_total Hot ranges that were moved to another server.",
            "# TYPE gateway_moves_total counter",
            f"gateway_moves_total {moved}",
        ]
        if units is not None:
            metric = "gateway_physical_partition_request_units_total"
            about = "Request units charged by physical partition."
            lines += [f"# HELP {metric} {about}", f"# TYPE {metric} counter"]
            for one in units["physical_partitions"]:
                labels = f'physical_partition="{one["number"]}"'
                lines.append(f"{metric}{{{labels}}} {charge_text(one[HUNDREDTHS])}")
        return "\n".join(lines) + "\n"

    def _fold(
        self, asked: Asked, partition: _Partition, disposition: Disposition, count: Count
    ) -> None:
        """Count a request to a partition without a row, and give it one if it is heavy."""
        self._other.add(disposition, count)
        name = _name(partition)
        self._without_row.update(name, 1 + count.entities)
        weight = _MARGIN * self._without_row.get_lower_bound(name)
        if weight < self._lightest or weight < _HEAVY_SHARE * self._weight:
            return
        lightest = min(self._rows.values(), key=_WEIGHT)
        self._lightest = lightest.weight
        if weight > self._lightest:
            self._drop(lightest)
            # Its requests so far stay in ``(other)``.
            earlier = self._without_row.get_lower_bound(name)
            self._rows[partition] = _Row(asked.spelled, partition, earlier=earlier)

    def _drop(self, gone: _Row) -> None:
        """Fold a row into ``(other)``."""
        del self._rows[gone.partition]
        self._without_row.update(_name(gone.partition), gone.weight - gone.earlier)
        for disposition, sums in gone.counts.items():
            self._other.add(disposition, sums, sums.requests)

    def _told(self, *, charged: bool = True) -> Iterator[dict[str, Any]]:
        by_name = sorted(
            self._rows.values(), key=lambda row: (row.partition[0], row.partition[1] or "")
        )
        spelled: dict[str, str] = {}
        for row in [*by_name, self._other]:
            table, key = row.partition
            name = spelled.setdefault(table, row.table)
            for disposition, sums in row.counts.items():
                yield {
                    "table": name,
                    "partition": key,
                    **disposition._asdict(),
                    **{name: getattr(sums, name) for name in _COUNTED},
                    **({HUNDREDTHS: sums.charged} if charged else {}),
                    "exact": not row.earlier,
                }


def _name(partition: _Partition) -> str:
    table, key = partition
    return table if key is None else f"{table}/{key}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
