"""Rules of a faulty table service: which request meets which fault. They are data, kept as JSON."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.support.faulty_service.asked import Asked
from tests.support.throttles import TokenBucket

HOW = ("answer", "reset", "hang", "truncate", "close", "loop", "endless")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Whom a fault meets, and what it is. Of several rules the first that matches holds.

    Attributes:
        kinds: Kinds of requests, see `Asked`; none is all that are about entities.
        partitions: PartitionKeys; none is all.
        target: What the request's address holds.
        phase: ``loading``, ``load``, ``cleaning``, or empty for all.
        attempt: Only the so-manieth request of one client request id; 0 is all.
        after_s: Only from so long after the load's first request on.
        every: Only each so-manieth of those that match so far.
        at_most: Only so many times; 0 is without bound.
        per_s: Only what is over so many entities/s, by a token bucket; 0 is all.
        burst_s: So many seconds of it are let through at once.
        each: Of the bucket: one for each ``partition``, or one for the ``account``.
        chance: Of those that are left, this share.
        apply: Whether the request is passed on to the real service first.
        how: ``answer`` with ``status`` and so on, or, where that is 0, with the real answer;
            ``reset`` the connection; ``hang`` until the client goes; ``truncate`` the answer;
            ``close`` after the answer without saying so; ``loop``, a page whose continuation token
            leads to the same page again; ``endless``, a page whose continuation token is new.
        delay_s: How long the answer is held back.
        work_s: The service does one of these requests after the other, each for so long.
        stall_s: For so long of every second no answer leaves.
        timeout_s: After so long without an answer the client goes, of ``hang``.
        status: Status of the answer; 0 is the real one.
        code: The service's error code in it.
        message: The service's message in it.
        headers: Further headers.
        body: Instead of the code and message.
    """

    kinds: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    target: str = ""
    phase: str = "load"
    attempt: int = 0
    after_s: float = 0.0
    every: int = 1
    at_most: int = 0
    per_s: float = 0.0
    burst_s: float = 0.5
    each: str = "partition"
    chance: float = 1.0
    apply: bool = False
    how: str = "answer"
    delay_s: float = 0.0
    work_s: float = 0.0
    stall_s: float = 0.0
    timeout_s: float = 2.0
    status: int = 0
    code: str = ""
    message: str = ""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    body: str | None = None

    def __post_init__(self) -> None:
        if self.how not in HOW:
            raise ValueError(f"a fault is one of {', '.join(HOW)}, not {self.how}")

    @property
    def passes_on(self) -> bool:
        """Whether the real service sees the request."""
        return self.apply or (
            self.how not in ("reset", "hang", "loop", "endless") and not self.status
        )

    @property
    def answer(self) -> bytes | None:
        """What is answered; None is the real answer."""
        if not self.status:
            return None
        body = self.body
        if body is None:
            error = {"code": self.code, "message": {"lang": "en-US", "value": self.message}}
            body = json.dumps({"odata.error": error}) if self.code else ""
        lines = [f"HTTP/1.1 {self.status} Reason", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.status != 304:
            lines.append(f"Content-Length: {len(body.encode())}")
        return "\r\n".join([*lines, "", ""]).encode() + body.encode()


PASS = Rule()
"""No fault at all."""


def _rule_of(content: dict[str, Any]) -> Rule:
    """A rule as JSON holds it, whose lists were tuples."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return Rule(**values)


class Script:
    """Rules, how often each was met, and the chance that decides."""

    def __init__(self, rules: Iterable[dict[str, Any]], seed: int) -> None:
        self._rules = [_rule_of(rule) for rule in rules]
        self._matched: Counter[int] = Counter()
        self._met: Counter[int] = Counter()
        self._attempts: Counter[str] = Counter()
        self._buckets: dict[tuple[int, str], TokenBucket] = {}
        self._done_s: dict[int, float] = {}
        self._rng = random.Random(seed)

    def work_s(self, rule: Rule, load_s: float) -> float:
        """How long a request that met ``rule`` waits for its turn, and is worked on."""
        if not rule.work_s:
            return 0.0
        done_s = max(load_s, self._done_s.get(id(rule), 0.0)) + rule.work_s
        self._done_s[id(rule)] = done_s
        return done_s - load_s

    def rule_for(self, asked: Asked, target: str, phase: str, load_s: float) -> Rule:
        """The rule that this request meets; `PASS` where none does.

        Args:
            asked: The request.
            target: Its address.
            phase: What the run is doing.
            load_s: Seconds since the load's first request.
        """
        self._attempts[asked.request_id] += 1
        for number, rule in enumerate(self._rules):
            if (
                (asked.kind not in rule.kinds if rule.kinds else not asked.of_entities)
                or (rule.partitions and asked.partition not in rule.partitions)
                or rule.target not in target
                or (rule.phase and rule.phase != phase)
                or (rule.attempt and rule.attempt != self._attempts[asked.request_id])
                or load_s < rule.after_s
                or (rule.at_most and self._met[number] >= rule.at_most)
            ):
                continue
            if rule.per_s:
                key = (number, asked.partition if rule.each == "partition" else "")
                if key not in self._buckets:
                    self._buckets[key] = TokenBucket(per_s=rule.per_s, burst_s=rule.burst_s)
                if self._buckets[key](max(1, asked.entities), load_s):
                    continue
            self._matched[number] += 1
            if self._matched[number] % rule.every or self._rng.random() >= rule.chance:
                continue
            self._met[number] += 1
            return rule
        return PASS
