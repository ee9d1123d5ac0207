"""Tasks of several users at once, whose results come in any order."""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation, transaction_problem
from harness.model.outcome import Outcome, Result
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.operation_source import Steps, next_operation, steps_of
from harness.workload.workload import Workload
from tests.support.driving import first_of
from tests.support.examples import examples
from tests.support.keys import NAMES, newest, sized
from tests.support.tasks import FAILURES, MIXED, SUCCESSES, Where, result, where

WRITING = (
    Action.INSERT,
    Action.UPSERT_MERGE,
    Action.UPDATE_REPLACE,
    Action.DELETE,
    Action.TRANSACTION,
    Action.SERIES_MERGE,
    Action.CONDITIONAL_UPDATE,
    Action.READ_THEN_WRITE,
    Action.KEY_CHANGE,
)
EITHER = (Kind.INSERT, Kind.DELETE)


DESIGNS = {name: sized(name, 4, 8) for name in NAMES} | {"newest": newest(8)}


def workload(of: KeyDesign, *actions: Action, kinds: tuple[Kind, ...] = MIXED) -> Workload:
    if of.scatters:
        kinds = (Kind.UPSERT_MERGE,)
    wanted = [one for one in actions if one is not Action.TRANSACTION or not of.one_row]
    return Workload(
        design=of,
        mix=ActionMix(dict.fromkeys(wanted, 1.0)),
        entities=EntityFactory(1024, "run1"),
        transaction_size=6,
        transaction_kinds=EITHER if of.grows else kinds,
        worker=3,
    )


class Service:
    """Applies what it answers with success, and some of what it does not answer."""

    def __init__(self, of: Workload) -> None:
        self.there: set[Where] = set()
        self.acknowledged: set[Where] = set()
        self.sent: set[Where] = set()
        for operation in of.loading():
            for part in operation.parts or (operation,):
                assert where(part) not in self.there
                self.there.add(where(part))
        self.loaded = frozenset(self.there)

    def send(self, operation: Operation) -> None:
        """Check what is asked for, when it is sent."""
        for part in operation.parts or (operation,):
            place = where(part)
            if part.kind is Kind.INSERT:
                assert place not in self.loaded
                again = part.label == "insert_after_read" and place not in self.there
                assert again or place not in self.sent, "a new row is new"
                self.sent.add(place)
            elif part.kind is Kind.DELETE:
                assert place in self.acknowledged, "only acknowledged rows are deleted"
                self.acknowledged.discard(place)
            elif part.kind is not Kind.POINT_QUERY:
                known = place in self.loaded or place in self.sent
                assert known, "what is changed was loaded, or inserted by this worker"

    def answer(self, operation: Operation, outcome: Outcome, applied: bool) -> Result:
        """The answer; what was applied without success nobody knows."""
        value = None
        if operation.kind is Kind.POINT_QUERY:
            if outcome.succeeded or outcome is Outcome.NOT_FOUND:
                there = where(operation) in self.there
                outcome = Outcome.SUCCESS if there else Outcome.NOT_FOUND
            value = {ETAG: "e"} if outcome.succeeded else None
        elif operation.kind is Kind.INSERT and where(operation) in self.there and outcome.succeeded:
            # Two users may both have read that the row is missing.
            outcome = Outcome.CONFLICT
        elif outcome.succeeded or applied:
            for part in operation.parts or (operation,):
                if part.kind is Kind.DELETE:
                    self.there.discard(where(part))
                else:
                    self.there.add(where(part))
                    if part.kind is Kind.INSERT and outcome.succeeded:
                        self.acknowledged.add(where(part))
        return result(operation, outcome, value)


def driven(
    of: Workload, outcomes: Iterator[Outcome], rng: random.Random, *, users: int, tasks: int
) -> Service:
    """So many users at once, whose answers come in any order."""
    service = Service(of)
    flying: list[tuple[Steps, Operation, int]] = []

    def send(steps: Steps, operation: Operation | None, count: int) -> None:
        if operation is not None:
            service.send(operation)
            flying.append((steps, operation, count))

    for _ in range(tasks):
        while len(flying) < users:
            steps = steps_of(of.next_task(rng))
            send(steps, next_operation(steps), 1)
        steps, operation, count = flying.pop(rng.randrange(len(flying)))
        assert count < 50, "every task ends"
        if operation.kind is Kind.TRANSACTION:
            assert transaction_problem(operation.parts) is None
        answer = service.answer(operation, next(outcomes), rng.random() < 0.3)
        send(steps, next_operation(steps, answer), count + 1)
    while flying:
        steps, operation, count = flying.pop()
        answer = service.answer(operation, next(outcomes), False)
        send(steps, next_operation(steps, answer), count + 1)
    return service


@pytest.mark.parametrize("name", DESIGNS)
@examples(30)
@given(
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    users=st.integers(1, 6),
)
def test_whatever_comes_back_only_what_was_acknowledged_is_deleted(
    name: str, seed: int, share: float, users: int
) -> None:
    """Random outcomes, several users, every design: new keys are new, deletes are of own rows."""
    rng = random.Random(seed)
    chances = [*SUCCESSES, *FAILURES, Outcome.NOT_FOUND]

    def outcomes() -> Iterator[Outcome]:
        while True:
            yield rng.choice(chances) if rng.random() < share else Outcome.SUCCESS

    of = workload(DESIGNS[name], *WRITING)
    driven(of, outcomes(), rng, users=users, tasks=100)


@pytest.mark.parametrize("name", [name for name, of in DESIGNS.items() if len(of.tables) > 1])
@pytest.mark.parametrize("kinds", [MIXED, EITHER, (Kind.DELETE, Kind.INSERT), (Kind.DELETE,)])
@examples(30)
@given(seed=st.integers(0, 2**32), users=st.integers(1, 6))
def test_where_nothing_fails_the_tables_stay_in_step(
    name: str, kinds: tuple[Kind, ...], seed: int, users: int
) -> None:
    """Every row of the first table has its copies in the end, and no copy is left over."""
    rng = random.Random(seed)
    of = workload(DESIGNS[name], *WRITING, kinds=kinds)
    endless = iter(lambda: Outcome.SUCCESS, None)
    service = driven(of, endless, rng, users=users, tasks=120)
    rows = collections.Counter(table for table, _, _ in service.there)
    assert len(set(rows.values())) == 1, rows
    firsts = {f"{partition}__{row}" for table, partition, row in service.there if not table}
    copied = {row for table, _, row in service.there if table == "Index"}
    assert firsts == copied


@pytest.mark.parametrize(
    "name", [name for name, of in DESIGNS.items() if not (of.one_row or of.scatters)]
)
@pytest.mark.parametrize("kinds", [(Kind.DELETE, Kind.INSERT), (Kind.DELETE,), (Kind.INSERT,)])
@examples(5)
@given(seed=st.integers(0, 2**32))
def test_transactions_that_come_and_go_stay_in_one_partition(
    name: str, kinds: tuple[Kind, ...], seed: int
) -> None:
    """Also where new rows go to another partition than loaded ones, such as that of today."""
    rng = random.Random(seed)
    of = Workload(
        design=DESIGNS[name],
        mix=ActionMix({Action.TRANSACTION: 1.0}),
        entities=EntityFactory(1024, "run1"),
        transaction_size=5,
        transaction_kinds=kinds,
    )
    driven(of, iter(lambda: Outcome.SUCCESS, None), rng, users=2, tasks=40)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.part])
def test_a_transaction_of_one_kind_has_as_many_parts_as_asked(kind: Kind) -> None:
    """Deletes without rows are inserts, so that the size never depends on chance."""
    of = workload(DESIGNS["compare-spread"], Action.TRANSACTION, kinds=(kind,))
    first = first_of(of.next_task(random.Random(1)))
    assert len(first.parts) == 6
    assert {part.kind for part in first.parts} == {Kind.INSERT if kind is Kind.DELETE else kind}
