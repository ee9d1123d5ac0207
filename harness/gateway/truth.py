"""The gateway's own counts by partition, scope and status, independent of any client's.

The first 200 partitions of all tables are counted apart, the rest is folded into ``(other)``; sums
are exact. A request is counted once, when its response is known.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from harness.gateway.rules.moving import Move
from harness.model.operation import FOLDED
from harness.model.outcome import Scope

MOST_PARTITIONS = 200
_LINE_END = ",\n"

RESET = "reset"
HALF = "half"
GONE = "gone"
"""In place of a status if no complete response was sent; `GONE`: the client had disconnected."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The result of a request.

    Attributes:
        result: ``passed``, ``refused`` by a limit, or ``fault``.
        scope: Scope of a refusal: partition or account.
        rule: The rule that refused, or the fault.
        sent: Status of the response, of a failed part for a transaction; `RESET`, `HALF` or `GONE`
            without a complete response.
        upstream: Status of the endpoint's response; empty if the endpoint got no request.
    """

    result: str
    sent: str
    scope: Scope = Scope.NONE
    rule: str = ""
    upstream: str = ""


class Truth:
    """Counts since the gateway started."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str | None], dict[Fate, list[int]]] = {}
        self._other: dict[Fate, list[int]] = {}
        self._requests = 0

    def add(self, table: str, partition_key: str | None, fate: Fate, entities: int) -> None:
        """Count one request.

        Args:
            table: Name of the table; empty without one.
            partition_key: The partition; None for several partitions, or none.
            fate: The result.
            entities: Entity count by the rule of the targets.
        """
        self._requests += 1
        partition = (table, partition_key)
        counts = self._counts.get(partition)
        if counts is None:
            counts = self._other
            if len(self._counts) < MOST_PARTITIONS:
                counts = self._counts[partition] = {}
        count = counts.get(fate)
        if count is None:
            counts[fate] = [1, entities]
        else:
            count[0] += 1
            count[1] += entities

    def to_json(self, *, address: str, upstream: str, moves: Iterable[Move], moved: int) -> str:
        """Return the page. Partition null: requests about several partitions, or about tables."""
        content = {
            "what": "Azurite or another endpoint behind a model of the published limits, not Azure",
            "address": address,
            "upstream": upstream,
            "requests": self._requests,
            "counts": list(self._rows()),
            "moved": moved,
            "moves": [dataclasses.asdict(move) for move in moves],
        }
        # One line per count, for human readers.
        lines = [
            f"{json.dumps(name)}: [\n{_LINE_END.join(map(json.dumps, value))}\n]"
            if isinstance(value, list)
            else f"{json.dumps(name)}: {json.dumps(value)}"
            for name, value in content.items()
        ]
        return "{" + ",\n".join(lines) + "}\n"

    def to_prometheus(self, *, moved: int) -> str:
        """Return the same counts in the format of Prometheus."""
        names = ("table", "partition", "result", "scope", "rule", "sent", "upstream")
        lines: list[str] = []
        for metric, field, about in (
            ("gateway_requests_total", "requests", "Requests by what became of them."),
            ("gateway_entities_total", "entities", "Entities by the targets' counting rule."),
        ):
            lines += [f"# HELP {metric} {about}", f"# TYPE {metric} counter"]
            for row in self._rows():
                labels = ",".join(f'{name}="{_escaped(str(row[name] or ""))}"' for name in names)
                lines.append(f"{metric}{{{labels}}} {row[field]}")
        lines += [
            "# HELP gateway_moves_total Hot ranges that were moved to another server.",
            "# TYPE gateway_moves_total counter",
            f"gateway_moves_total {moved}",
        ]
        return "\n".join(lines) + "\n"

    def _rows(self) -> Iterator[dict[str, Any]]:
        by_name = sorted(self._counts.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        for (table, key), counts in [*by_name, (("", FOLDED), self._other)]:
            for fate, (requests, entities) in counts.items():
                yield {
                    "table": table,
                    "partition": key,
                    **dataclasses.asdict(fate),
                    "requests": requests,
                    "entities": entities,
                }


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
