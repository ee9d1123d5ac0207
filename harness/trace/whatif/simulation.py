"""The loads of a trace before the limits of the gateway's model, in simulated time.

A second whose entities no limit could refuse, in whatever order they arrive, passes as a whole.
Other seconds are simulated in steps of 20 ms, in which the requests of one partition are decided
about together, and separately where they do not all pass.
"""

from __future__ import annotations

import copy
import dataclasses
import heapq
import math
import random
from collections.abc import Mapping, Sequence

from harness.gateway.limits import GatewayLimits
from harness.gateway.model import GatewayAction, Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked, RowWrite
from harness.model.operation import Kind, over_partitions, table_and_key
from harness.workload.retry import RetryPolicy

STEPS_A_SECOND = 50
_GROUPS = 8
"""Operations of a partition that are refused in one step have at most about so many delays."""
_PASS = GatewayAction.PASS
_UPSERT = Kind.UPSERT_REPLACE
_DONE = Answered(status=204)


@dataclasses.dataclass(slots=True)
class Throttling:
    """What became of the requests.

    Attributes:
        attempts: All attempts.
        by_rule: Throttled attempts by the rule of the model that refused them: partition, server,
            moving or account.
        failed: Operations whose last attempt was throttled.
        first_s: When the first attempt was throttled; None if none was.
        first_partition: Its partition.
        first_rule: The rule that refused it.
    """

    attempts: int = 0
    by_rule: dict[str, int] = dataclasses.field(default_factory=dict)
    failed: int = 0
    first_s: float | None = None
    first_partition: str = ""
    first_rule: str = ""

    @property
    def throttled(self) -> int:
        return sum(self.by_rule.values())


class Simulation:
    """Operations that arrive as the trace says, and retry as ``policy`` says, if there is one.

    Attributes:
        throttled: Throttled attempts of the second that was simulated last, by partition.
    """

    def __init__(self, limits: GatewayLimits, policy: RetryPolicy | None, seed: int) -> None:
        self._model = Model(limits, 0.0, stored=False)
        self._policy = policy
        self._rng = random.Random(seed)
        self._most_together = max(1, int(limits.partition.entities_per_s / STEPS_A_SECOND))
        self.throttling = Throttling()
        self.throttled: dict[str, int] = {}
        # Entities of waiting operations by step, then by partition and number of the next attempt.
        self._waiting: dict[int, dict[tuple[str, int], list[int]]] = {}
        self._steps: list[int] = []
        self._rule = ""
        """Of the last refusal."""

    @property
    def moves(self) -> int:
        """How often a range of partitions moved to another server."""
        return self._model.move_count

    def forked(self, policy: RetryPolicy) -> Simulation:
        """A simulation that goes on from here with another policy."""
        other = copy.deepcopy(self)
        other._policy = policy
        return other

    def passes(self, second: int, entities: Mapping[str, int], operations: int) -> bool:
        """Pass all operations of a second as a whole; False, and nothing done, if any might fail.

        Args:
            entities: Entities by partition.
            operations: Their operations.
        """
        if self._steps and self._steps[0] < (second + 1) * STEPS_A_SECOND:
            return False
        keys = {_place(name): count for name, count in entities.items()}
        if not self._model.serve(keys, second, second + 1):
            return False
        self.throttled = {}
        self.throttling.attempts += operations
        return True

    def step_through(self, second: int, steps: Mapping[int, Mapping[str, Sequence[int]]]) -> None:
        """Simulate a second: for each step the entities of the operations of each partition."""
        self.throttled = {}
        for step in steps:
            if step not in self._waiting:
                self._waiting[step] = {}
                heapq.heappush(self._steps, step)
        end = (second + 1) * STEPS_A_SECOND
        while self._steps and self._steps[0] < end:
            step = heapq.heappop(self._steps)
            retries = self._waiting.pop(step)
            for name, operations in steps.get(step, {}).items():
                self._send(name, 1, operations, step)
            for (name, attempt), operations in retries.items():
                self._send(name, attempt, operations, step)

    def finish(self, second: int) -> None:
        """Simulate what still waits at the end of the trace, ``second`` being its next second."""
        while self._steps:
            second = max(second, self._steps[0] // STEPS_A_SECOND)
            self.step_through(second, {})

    def _send(self, name: str, attempt: int, operations: Sequence[int], step: int) -> None:
        now_s = step / STEPS_A_SECOND
        known = self.throttling
        known.attempts += len(operations)
        refused = self._refused(name, operations, now_s)
        if not refused:
            return
        self.throttled[name] = self.throttled.get(name, 0) + len(refused)
        if known.first_s is None:
            known.first_s, known.first_partition, known.first_rule = now_s, name, self._rule
        if self._policy is None:
            known.failed += len(refused)
            return
        # Many that are refused together wait in a few groups: a delay for each takes too long.
        size = max(1, len(refused) // _GROUPS)
        for start in range(0, len(refused), size):
            group = refused[start : start + size]
            delay_s = self._policy.delay_s(attempt, self._rng)
            if delay_s is None:
                known.failed += len(group)
                continue
            due = step + max(1, math.ceil(delay_s * STEPS_A_SECOND))
            waiting = self._waiting.get(due)
            if waiting is None:
                waiting = self._waiting[due] = {}
                heapq.heappush(self._steps, due)
            waiting.setdefault((name, attempt + 1), []).extend(group)

    def _refused(self, name: str, operations: Sequence[int], now_s: float) -> Sequence[int]:
        """The entities of the operations that the limits refuse; the others are served."""
        entities = sum(operations)
        if len(operations) == 1 or entities <= self._most_together:
            table, key = _place(name)
            asked = Asked(_UPSERT, table, table, key, entities)
            decision = self._model.decide(asked, now_s)
            if decision.action is _PASS:
                rows = () if key is None else (RowWrite(key, ""),)
                self._model.answered(asked._replace(rows=rows), _DONE, now_s)
                return ()
            if len(operations) == 1:
                self._note(decision.rule, 1)
                return operations
        middle = len(operations) // 2
        first, second = operations[:middle], operations[middle:]
        refused = self._refused(name, first, now_s)
        if len(refused) == len(first) and min(second) >= min(first):
            # What refused the smallest of these refuses all that follow in this step.
            self._note(self._rule, len(second))
            return operations
        return [*refused, *self._refused(name, second, now_s)]

    def _note(self, rule: str, attempts: int) -> None:
        self._rule = rule
        found = self.throttling.by_rule
        found[rule] = found.get(rule, 0) + attempts


def _place(name: str) -> tuple[str, str | None]:
    """Table and PartitionKey, which is None for several partitions."""
    if over_partitions(name):
        return name.rstrip("/"), None
    return table_and_key(name)
