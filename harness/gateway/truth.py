"""What the gateway saw and did: counts by partition, scope and status, apart from any client's.

Exact for the first 200 partitions of all tables, the rest folded into ``(other)``; sums are exact.
A request is counted once, when it is known what its client is sent.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from harness.gateway.rules.moving import Move
from harness.model.outcome import Scope

MOST_PARTITIONS = 200
OTHER = "(other)"
_LINE_END = ",\n"

RESET = "reset"
HALF = "half"
GONE = "gone"
"""Instead of a status, where no whole answer was sent: the client had gone, for the last."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of a request.

    Attributes:
        result: ``passed``, ``refused`` by a limit, or ``fault``.
        scope: What a refusal was about.
        rule: The rule that refused, or the fault.
        sent: Status that the client was sent; of a transaction whose part failed, the part's.
            A word where no whole answer was sent.
        upstream: Status that the endpoint behind answered; empty where it was not asked.
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
            table: The table; empty for a request about none.
            partition_key: The partition; None where it is about several, or none.
            fate: What became of it.
            entities: What it counts for by the targets' rule.
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
        """The page. Counts of no partition are of requests about several, or of the tables."""
        content = {
            "what": "Azurite or another endpoint behind a model of the published limits, not Azure",
            "address": address,
            "upstream": upstream,
            "requests": self._requests,
            "counts": list(self._rows()),
            "moved": moved,
            "moves": [dataclasses.asdict(move) for move in moves],
        }
        # A line for each count, which is for people too.
        lines = [
            f"{json.dumps(name)}: [\n{_LINE_END.join(map(json.dumps, value))}\n]"
            if isinstance(value, list)
            else f"{json.dumps(name)}: {json.dumps(value)}"
            for name, value in content.items()
        ]
        return "{" + ",\n".join(lines) + "}\n"

    def to_prometheus(self, *, moved: int) -> str:
        """The same counts as Prometheus reads them."""
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
        for (table, key), counts in [*by_name, (("", OTHER), self._other)]:
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
