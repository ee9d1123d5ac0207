"""A service and its clients in simulated time, for the tests of the audit: it may lose writes.

Every client sends one operation after the other. At each tick one client, drawn by chance, goes a
step further: its request leaves, is done by the service, is answered, or is not. So operations of
all clients overlap in every way. What really was done is kept beside it.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Generator, Iterator
from typing import Any

from harness.endpoint.retrying import applied, in_order_of_evidence
from harness.measure.audit.audit import AuditTally, LookUp, WriteVerdict, look_ups, verdicts
from harness.measure.audit.journal import Journal, JournaledWrite, RowKey
from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Attempt, Fault, Outcome, Result, classify

RETRIES = 2
LOADED = tuple(("", "p", f"loaded{number}") for number in range(3))

Steps = Generator[bool, None, tuple[int, Fault | None]]
"""The steps of one attempt, and its status or fault."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Service:
    """Rows by key, and all that goes wrong with them.

    Attributes:
        lossy: Share of the requests that are acknowledged, and not done.
        ambiguous: Share of the requests whose answer does not come; done, not done, or done later.
        busy: Share of the requests that are refused.
        done: Numbers of the writes that were done, with their worker.
        dropped: The same of those that were acknowledged and not done.
    """

    lossy: float = 0.0
    ambiguous: float = 0.0
    busy: float = 0.0
    rows: dict[RowKey, dict[str, Any]] = dataclasses.field(default_factory=dict)
    etags: dict[RowKey, int] = dataclasses.field(default_factory=dict)
    done: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    dropped: set[tuple[int, int]] = dataclasses.field(default_factory=set)

    def do(self, operation: Operation) -> int:
        """Do it, all or nothing; the status."""
        parts = operation.parts or (operation,)
        for part in parts:
            status = self._refusal(part)
            if status is not None:
                return status
        for part in parts:
            self._apply(part)
        return 204

    def _refusal(self, part: Operation) -> int | None:
        key = key_of(part)
        there = key in self.rows
        if part.kind is Kind.INSERT:
            return 409 if there else None
        if part.kind in (Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE):
            if not there:
                return 404
            if part.etag not in (None, str(self.etags.get(key, 0))):
                return 412
        return None

    def _apply(self, part: Operation) -> None:
        key = key_of(part)
        if part.kind is Kind.DELETE:
            self.rows.pop(key, None)
            return
        merges = part.kind in (Kind.UPSERT_MERGE, Kind.UPDATE_MERGE)
        before = self.rows.get(key, {}) if merges else {}
        self.rows[key] = {**before, **(part.properties or {})}
        self.etags[key] = self.etags.get(key, 0) + 1


def key_of(part: Operation) -> RowKey:
    return part.table, part.partition_key, part.row_key


class World:
    """A run: clients of several workers, a service, and the audit after it."""

    def __init__(
        self, seed: int, service: Service, *, workers: int, clients: int, operations: int
    ) -> None:
        self.rng = random.Random(seed)
        self.service = service
        self.now_s = 1_000.0
        self.journals = [Journal(worker, seed="run", most_rows=10_000) for worker in range(workers)]
        self._late: list[tuple[Operation, tuple[int, int]]] = []
        self._numbers = 0
        self._own: list[list[RowKey]] = [[] for _ in range(workers)]
        for key in LOADED[:-1]:
            service.rows[key] = {"Count": -1, "Text": "loaded"}
        running = [
            self._client(worker, operations) for worker in range(workers) for _ in range(clients)
        ]
        while running:
            self.now_s += 1.0
            client = self.rng.choice(running)
            # Some are ended in the middle, as users are at the end of a run.
            if self.rng.random() < 0.002 or next(client, None) is None:
                running.remove(client)
            self._do_late(0.1)
        self._do_late(0.5)

    def _do_late(self, chance: float) -> None:
        if self._late and self.rng.random() < chance:
            operation, number = self._late.pop(self.rng.randrange(len(self._late)))
            if self.service.do(operation) == 204:
                self.service.done.add(number)

    def _client(self, worker: int, operations: int) -> Iterator[bool]:
        journal = self.journals[worker]
        for count in range(operations):
            operation = self._operation(worker)
            noted = journal.sent(operation, self.now_s)
            number = (worker, journal._number)
            yield True
            sent_s = self.now_s
            attempts: list[Attempt] = []
            outcome = Outcome.THROTTLED
            for _ in range(1 + RETRIES):
                attempt_s = self.now_s
                status, fault = yield from self._attempt(noted.operation, number)
                latency_s = self.now_s - attempt_s
                last = Attempt(status=status, fault=fault, sent_s=attempt_s, latency_s=latency_s)
                outcome = classify(noted.operation, last, attempts)
                attempts.append(last)
                if fault is None and status != 503:
                    break
            if outcome is Outcome.AMBIGUOUS:
                yield True
                outcome = self._read_back(noted.operation)
            result = Result(
                operation=noted.operation,
                outcome=outcome,
                sent_s=sent_s,
                done_s=self.now_s,
                attempts=tuple(attempts),
            )
            yield True
            journal.done(noted, result)
            if outcome.succeeded:
                for part in operation.parts or (operation,):
                    if part.kind is Kind.INSERT:
                        self._own[worker].append(key_of(part))
            if count + 1 < operations:
                yield True

    def _attempt(self, operation: Operation, number: tuple[int, int]) -> Steps:
        service, rng = self.service, self.rng
        yield True
        chance = rng.random()
        if chance < service.busy:
            return 503, None
        if chance < service.busy + service.ambiguous:
            return (yield from self._ambiguous(operation, number))
        if chance < service.busy + service.ambiguous + service.lossy:
            service.dropped.add(number)
            yield True
            return 204, None
        status = service.do(operation)
        if status == 204:
            service.done.add(number)
        yield True
        return status, None

    def _ambiguous(self, operation: Operation, number: tuple[int, int]) -> Steps:
        case = self.rng.choice(("lost answer", "not done", "late"))
        if case == "lost answer" and self.service.do(operation) == 204:
            self.service.done.add(number)
        if case == "late":
            self._late.append((operation, number))
        yield True
        return 0, Fault.READ_TIMEOUT if case == "late" else Fault.RESET

    def _read_back(self, operation: Operation) -> Outcome:
        alone = not operation.parts
        for part in in_order_of_evidence(operation.parts or (operation,)):
            stored = self.service.rows.get(key_of(part))
            if stored is not None:
                stored = {**stored, ETAG: str(self.service.etags.get(key_of(part), 0))}
            decided = applied(part, stored, alone=alone)
            if decided is not None:
                return Outcome.SUCCESS_AFTER_AMBIGUITY if decided else Outcome.CONFLICT
        return Outcome.AMBIGUOUS

    def _operation(self, worker: int) -> Operation:
        if self.rng.random() < 0.2:
            first = self._write(worker)
            parts = [first, *(self._write(worker) for _ in range(2))]
            by_key = {key_of(part): part for part in parts}
            if len(by_key) > 1:
                return transaction(tuple(by_key.values()))
        return self._write(worker)

    def _write(self, worker: int) -> Operation:
        rng = self.rng
        self._numbers += 1
        properties: dict[str, Any] = {"Count": self._numbers, "Text": "x"}
        kind = rng.choice((Kind.INSERT, Kind.INSERT, *_ANY))
        own = self._own[worker]
        if kind is Kind.INSERT and rng.random() < 0.8:
            key = ("", "p", f"{worker}/{self._numbers}")
        else:
            key = rng.choice((*LOADED, *own[-3:]))
        if kind in (Kind.UPSERT_MERGE, Kind.UPDATE_MERGE) and rng.random() < 0.5:
            properties = {f"Hour{rng.randrange(3)}": self._numbers}
        etag = None
        if kind in (Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE) and rng.random() < 0.3:
            etag = str(self.service.etags.get(key, 0))
        return Operation(
            kind=kind,
            partition_key=key[1],
            row_key=key[2],
            properties=None if kind is Kind.DELETE else properties,
            etag=etag,
        )

    def found(self) -> Iterator[tuple[tuple[int, int], JournaledWrite, WriteVerdict]]:
        """Every write that is judged after the run: its worker and number, and what is said."""
        for worker, look_up in self._look_ups():
            journal = self.journals[worker]
            for row in journal.rows(look_up.below):
                stored = self.service.rows.get(row.key)
                others = look_up.others(row.place)
                for write, verdict in verdicts(row, stored, mine=journal.mine, others=others):
                    yield (worker, write.number), write, verdict

    def tally(self) -> AuditTally:
        """The same, counted."""
        tally = AuditTally()
        for worker, look_up in self._look_ups():
            journal = self.journals[worker]
            for row in journal.rows(look_up.below):
                others = look_up.others(row.place)
                stored = self.service.rows.get(row.key)
                tally.add(row, stored, mine=journal.mine, others=others)
        return tally

    def _look_ups(self) -> Iterator[tuple[int, LookUp]]:
        written = {str(worker): journal.written() for worker, journal in enumerate(self.journals)}
        plans = look_ups(written, most_rows=10_000, strangers=False)
        yield from ((int(worker), plan) for worker, plan in plans.items())


_ANY = (
    Kind.UPSERT_MERGE,
    Kind.UPSERT_REPLACE,
    Kind.UPDATE_MERGE,
    Kind.UPDATE_REPLACE,
    Kind.DELETE,
)
