"""Tasks of several operations: what is sent, and what follows from what became of it."""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.entity import ETAG, Properties
from harness.model.operation import PART_KINDS, Kind, Operation, transaction_problem
from harness.model.outcome import Outcome, Result
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import Latest, Uniform
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES
from harness.workload.mix import Action, ActionMix
from harness.workload.operation_source import Steps, Task, next_operation, steps_of
from harness.workload.tasks import ByPartition, TaskRow, Tasks
from harness.workload.workload import Workload
from tests.support.driving import first_of
from tests.support.results import done

FAILURES = [
    outcome
    for outcome in Outcome
    if not outcome.succeeded and outcome not in (Outcome.NOT_FOUND, Outcome.DEFECT)
]
SUCCESSES = [Outcome.SUCCESS, Outcome.SUCCESS_AFTER_AMBIGUITY]
COPIES = (("Index", "i"), ("Other", "o"))
Where = tuple[str, str, str]
"""Table, PartitionKey, RowKey."""


def key(partition: str, row: str) -> Key:
    return Key(partition_key=partition, row_key=row)


def content(of: Key, number: int) -> Properties:
    return {"Number": number}


def tasks(*, copies: bool = False, growing: bool = False, remembered: int = 1000) -> Tasks:
    """Tasks whose new rows are n1, n2, ... in the partition that was drawn, or each elsewhere."""
    numbers = iter(range(1, 10**9))

    def new(partition: int) -> TaskRow:
        number = next(numbers)
        home = f"g{number}" if growing else f"p{partition}"
        more = tuple((table, key(f"{name}{number}", home)) for table, name in COPIES)
        return TaskRow(key=key(home, f"n{number}"), number=number, copies=more if copies else ())

    return Tasks(new, content, remembered)


def result(operation: Operation, outcome: Outcome = Outcome.SUCCESS, value: Any = None) -> Result:
    return done(operation, 0.0, outcome=outcome, value=value)


class Started:
    """A task whose first operation is sent."""

    def __init__(self, task: Task) -> None:
        self._steps = steps_of(task)
        self.operation = next_operation(self._steps)

    def after(self, outcome: Outcome = Outcome.SUCCESS, value: Any = None) -> Operation | None:
        """The next operation, when the last one ended so."""
        assert self.operation is not None
        self.operation = next_operation(self._steps, result(self.operation, outcome, value))
        return self.operation


def whole(task: Task, *outcomes: Outcome) -> list[Operation]:
    """All operations of a task; beyond ``outcomes`` everything succeeds."""
    seen: list[Operation] = []
    left = list(outcomes)
    started = Started(task)
    while started.operation is not None:
        seen.append(started.operation)
        started.after(left.pop(0) if left else Outcome.SUCCESS, {ETAG: "e1"})
    return seen


def where(operation: Operation) -> Where:
    return operation.table, operation.partition_key, operation.row_key


def told(operations: list[Operation]) -> list[tuple[str, Where]]:
    return [(operation.label, where(operation)) for operation in operations]


@pytest.mark.parametrize("outcome", SUCCESSES)
def test_an_insert_is_followed_by_its_copies(outcome: Outcome) -> None:
    """First the row, then each further key in its own table, one after the other."""
    made = tasks(copies=True)
    sent = whole(made.insert(3), outcome, outcome, outcome)
    assert told(sent) == [
        ("insert", ("", "p3", "n1")),
        ("insert_copy", ("Index", "i1", "p3")),
        ("insert_copy", ("Other", "o1", "p3")),
    ]
    assert {one.kind for one in sent} == {Kind.INSERT}
    assert {one.properties["Number"] for one in sent if one.properties} == {1}
    assert made.known == 1


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_what_was_not_inserted_has_no_copies_and_is_not_remembered(outcome: Outcome) -> None:
    """Whatever became of it otherwise: the row may not be there."""
    made = tasks(copies=True)
    assert len(whole(made.insert(3), outcome)) == 1
    assert made.known == 0
    assert made.newest(0) is None
    assert first_of(made.delete(0)).kind is Kind.INSERT


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_a_copy_that_fails_is_not_made_up_for(outcome: Outcome) -> None:
    """The next copy is tried, and only what was acknowledged is deleted later."""
    made = tasks(copies=True)
    assert len(whole(made.insert(3), Outcome.SUCCESS, outcome)) == 3
    assert told(whole(made.delete(0))) == [
        ("delete", ("", "p3", "n1")),
        ("delete_copy", ("Other", "o1", "p3")),
    ]


def test_nothing_is_deleted_while_it_is_being_copied() -> None:
    """Until the last copy is acknowledged the row is not one that can be deleted or moved."""
    made = tasks(copies=True)
    insert = Started(made.insert(3))
    assert insert.after() is not None
    assert made.known == 0
    assert insert.after() is not None
    assert made.known == 0
    assert insert.after() is None
    assert made.known == 1


def test_the_oldest_row_is_deleted_first_then_its_copies() -> None:
    """A delete takes what was inserted first; a copy that is gone already holds up nothing."""
    made = tasks(copies=True)
    for _ in range(3):
        whole(made.insert(0))
    assert told(whole(made.delete(9), Outcome.SUCCESS, Outcome.NOT_FOUND)) == [
        ("delete", ("", "p0", "n1")),
        ("delete_copy", ("Index", "i1", "p0")),
        ("delete_copy", ("Other", "o1", "p0")),
    ]
    assert where(first_of(made.delete(9))) == ("", "p0", "n2")
    assert made.known == 1


@pytest.mark.parametrize("outcome", FAILURES)
def test_a_delete_that_fails_keeps_the_copies(outcome: Outcome) -> None:
    """Where the row may still be there, its copies are not taken away; it is not tried again."""
    made = tasks(copies=True)
    whole(made.insert(0))
    assert len(whole(made.delete(0), outcome)) == 1
    assert made.known == 0


def test_without_a_row_a_delete_is_an_insert() -> None:
    """A delete never depends on chance: there is one insert first."""
    made = tasks()
    assert [one.label for one in whole(made.delete(5))] == ["insert"]
    assert [one.label for one in whole(made.delete(5))] == ["delete"]


@pytest.mark.parametrize("outcome", SUCCESSES)
def test_a_conditional_update_sends_the_etag_it_read(outcome: Outcome) -> None:
    """The entity is read, and changed only if it still is as it was read."""
    update = Started(tasks().conditional_update(key("p", "r"), 7))
    first = update.operation
    assert first is not None
    assert (first.kind, first.label) == (Kind.POINT_QUERY, "read_for_update")
    second = update.after(outcome, {ETAG: 'W/"5"'})
    assert second is not None
    assert (second.kind, second.label) == (Kind.UPDATE_MERGE, "conditional_update")
    assert (where(second), second.etag) == (("", "p", "r"), 'W/"5"')
    assert second.properties == {"Number": 7}
    assert update.after(Outcome.PRECONDITION) is None


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_what_was_not_read_is_not_changed(outcome: Outcome) -> None:
    """Without an ETag there is no conditional update."""
    assert len(whole(tasks().conditional_update(key("p", "r"), 7), outcome)) == 1


def test_read_then_write_updates_what_is_there() -> None:
    """Found is updated, under a name that tells it from other updates."""
    first, *rest = whole(tasks().read_then_write(TaskRow(key=key("p", "r"), number=7)))
    assert (first.kind, first.label) == (Kind.POINT_QUERY, "read_before_write")
    assert told(rest) == [("update_after_read", ("", "p", "r"))]


def test_read_then_write_inserts_what_is_missing() -> None:
    """Not found is inserted with its copies, and remembered."""
    made = tasks(copies=True)
    new = TaskRow(key=key("p", "r"), number=7, copies=(("Index", key("i", "x")),))
    sent = whole(made.read_then_write(new), Outcome.NOT_FOUND)
    assert told(sent[1:]) == [
        ("insert_after_read", ("", "p", "r")),
        ("insert_copy", ("Index", "i", "x")),
    ]
    assert made.known == 1


@pytest.mark.parametrize("outcome", FAILURES)
def test_read_then_write_needs_to_know(outcome: Outcome) -> None:
    """Where the read failed nothing is written."""
    new = TaskRow(key=key("p", "r"), number=7)
    assert len(whole(tasks().read_then_write(new), outcome)) == 1


def test_a_key_change_within_a_partition_is_one_transaction() -> None:
    """Both steps or none: the old row goes and the new one comes, and can be moved again."""
    made = tasks()
    whole(made.insert(3))
    (change,) = whole(made.key_change(3))
    assert (change.kind, change.label) == (Kind.TRANSACTION, "key_change")
    assert [(part.kind, where(part)) for part in change.parts] == [
        (Kind.DELETE, ("", "p3", "n1")),
        (Kind.INSERT, ("", "p3", "n2")),
    ]
    newest = made.newest(0)
    assert newest is not None
    assert newest.key.row_key == "n2"
    assert made.known == 1


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_a_key_change_that_fails_is_forgotten(outcome: Outcome) -> None:
    """Neither the old key nor the new one is known to be there."""
    made = tasks()
    whole(made.insert(3))
    whole(made.key_change(3), outcome)
    assert made.known == 0


def test_a_key_change_between_partitions_is_two_steps() -> None:
    """No transaction spans two partitions: delete, then insert."""
    made = tasks()
    whole(made.insert(3))
    assert told(whole(made.key_change(4))) == [
        ("key_change_delete", ("", "p3", "n1")),
        ("key_change_insert", ("", "p4", "n2")),
    ]
    assert made.known == 1


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_what_could_not_be_deleted_is_not_inserted_again(outcome: Outcome) -> None:
    """Else the entity would be there twice."""
    made = tasks()
    whole(made.insert(3))
    assert len(whole(made.key_change(4), outcome)) == 1
    assert made.known == 0


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_an_entity_is_lost_where_the_second_step_fails(outcome: Outcome) -> None:
    """That is what a key change between partitions risks; nobody makes up for it."""
    made = tasks()
    whole(made.insert(3))
    assert len(whole(made.key_change(4), Outcome.SUCCESS, outcome)) == 2
    assert made.known == 0


def test_a_key_change_takes_the_copies_along() -> None:
    """The copies of the old key go, those of the new one come, also within one partition."""
    made = tasks(copies=True)
    whole(made.insert(3))
    assert told(whole(made.key_change(3))) == [
        ("key_change_delete", ("", "p3", "n1")),
        ("delete_copy", ("Index", "i1", "p3")),
        ("delete_copy", ("Other", "o1", "p3")),
        ("key_change_insert", ("", "p3", "n2")),
        ("insert_copy", ("Index", "i2", "p3")),
        ("insert_copy", ("Other", "o2", "p3")),
    ]


def test_without_a_row_a_key_change_is_an_insert() -> None:
    """There has to be a row before its key can change."""
    assert told(whole(tasks().key_change(2))) == [("insert", ("", "p2", "n1"))]


def touched(*kinds: Kind, partition: str = "p0") -> list[tuple[Kind, Key, int]]:
    return [(kind, key(partition, f"r{place}"), place) for place, kind in enumerate(kinds)]


MIXED = (
    Kind.INSERT,
    Kind.UPSERT_MERGE,
    Kind.DELETE,
    Kind.UPSERT_REPLACE,
    Kind.UPDATE_MERGE,
    Kind.INSERT,
    Kind.UPDATE_REPLACE,
    Kind.DELETE,
)


def parts_of(operation: Operation) -> list[tuple[Kind, str]]:
    return [(part.kind, part.row_key) for part in operation.parts]


def test_a_transaction_of_mixed_kinds() -> None:
    """Writes go to rows that are there, inserts make new ones, deletes take those of before."""
    made = tasks()
    (first,) = whole(made.transaction(0, touched(*MIXED)))
    assert parts_of(first) == [
        (Kind.INSERT, "n1"),
        (Kind.UPSERT_MERGE, "r1"),
        (Kind.INSERT, "n2"),
        (Kind.UPSERT_REPLACE, "r3"),
        (Kind.UPDATE_MERGE, "r4"),
        (Kind.INSERT, "n3"),
        (Kind.UPDATE_REPLACE, "r6"),
        (Kind.INSERT, "n4"),
    ]
    second = first_of(made.transaction(0, touched(*MIXED)))
    assert parts_of(second)[2] == (Kind.DELETE, "n1")
    assert parts_of(second)[7] == (Kind.DELETE, "n2")
    assert parts_of(second)[0] == (Kind.INSERT, "n5")
    assert {part.properties is None for part in second.parts if part.kind is Kind.DELETE} == {True}


@pytest.mark.parametrize("outcome", [*FAILURES, Outcome.NOT_FOUND])
def test_a_transaction_that_fails_made_nothing(outcome: Outcome) -> None:
    """Its rows are not deleted later, nor are those again that it was to delete."""
    made = tasks()
    whole(made.transaction(0, touched(Kind.INSERT, Kind.INSERT)), outcome)
    whole(made.transaction(0, touched(Kind.INSERT)))
    whole(made.transaction(0, touched(Kind.DELETE)), outcome)
    assert parts_of(first_of(made.transaction(0, touched(Kind.DELETE))))[0][0] is Kind.INSERT


def test_deletes_of_a_transaction_stay_in_its_partition() -> None:
    """What was inserted into another partition is not in this one."""
    made = tasks()
    whole(made.transaction(1, touched(Kind.INSERT, partition="p1")))
    assert parts_of(first_of(made.transaction(0, touched(Kind.DELETE))))[0][0] is Kind.INSERT
    assert parts_of(first_of(made.transaction(1, touched(Kind.DELETE, partition="p1")))) == [
        (Kind.DELETE, "n1")
    ]


def test_copies_of_a_transaction_follow_it() -> None:
    """After it: copies of all it inserted, and no more those of what it deleted."""
    made = tasks(copies=True)
    whole(made.transaction(0, touched(Kind.INSERT, Kind.UPSERT_MERGE)))
    sent = whole(made.transaction(0, touched(Kind.DELETE, Kind.INSERT)))
    deleted = [part.row_key for part in sent[0].parts if part.kind is Kind.DELETE]
    assert deleted == ["n1"]
    assert sorted(label for label, _ in told(sent[1:])) == ["delete_copy"] * 2 + ["insert_copy"] * 2
    gone = {one.partition_key for one in sent if one.label == "delete_copy"}
    assert gone == {"i1", "o1"}


def test_new_rows_of_a_transaction_share_its_partition() -> None:
    """Where each new row would begin a partition of its own, all go to that of the first."""
    made = tasks(growing=True)
    (first,) = whole(made.transaction(0, touched(*[Kind.INSERT] * 5)))
    assert {part.partition_key for part in first.parts} == {"g1"}
    assert len({part.row_key for part in first.parts}) == 5


@pytest.mark.parametrize("most", [1, 2, 7])
def test_what_is_remembered_is_bounded(most: int) -> None:
    """Over however many partitions rows are spread, no more of them are kept than the bound."""
    rows: ByPartition[int] = ByPartition(most)
    for number in range(1000):
        rows.add(f"p{number % 300}", number)
        assert len(rows) <= most
    kept = [taken for place in range(300) if (taken := rows.take(f"p{place}")) is not None]
    assert kept == list(range(1000 - most, 1000))
    assert len(rows) == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=60), st.integers(1, 8))
def test_rows_of_a_partition_come_back_in_order(steps: list[tuple[bool, int]], most: int) -> None:
    """What is taken is of the partition asked for, the oldest first, and nothing comes twice."""
    rows: ByPartition[int] = ByPartition(most)
    taken: list[int] = []
    for number, (adds, place) in enumerate(steps):
        if adds:
            rows.add(str(place), number)
        elif (row := rows.take(str(place))) is not None:
            assert steps[row][1] == place
            assert not any(steps[one][1] == place and one > row for one in taken)
            taken.append(row)
    assert len(taken) == len(set(taken))
    assert len(rows) <= most


def test_a_worker_forgets_its_oldest_rows() -> None:
    """However long it runs, a worker remembers so many rows and no more."""
    made = tasks(remembered=50)
    for _ in range(60):
        whole(made.insert(0))
    assert made.known == 50
    assert where(first_of(made.delete(0))) == ("", "p0", "n11")
    for _ in range(60):
        whole(made.transaction(0, touched(Kind.INSERT)))
    (gone,) = first_of(made.transaction(0, touched(Kind.DELETE))).parts
    assert gone.row_key == "n71"


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


def scheme(name: str) -> KeyScheme:
    cls = SCHEMES[name]
    partitions = 1 if name == "single" else 4
    periods = 2 if name in ("device-date", "customer-month", "customer-year") else 1
    return cls(RowCounts(partitions, 1 if cls.one_row else 8), periods=periods)


def workload(
    of: KeyScheme, *actions: Action, kinds: tuple[Kind, ...] = MIXED, latest: bool = False
) -> Workload:
    wanted = [one for one in actions if one is not Action.TRANSACTION or not of.one_row]
    return Workload(
        scheme=of,
        picker=Latest(of.count, 0.9) if latest else Uniform(of.count),
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


@pytest.mark.parametrize("name", list(SCHEMES))
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    users=st.integers(1, 6),
    latest=st.booleans(),
)
def test_whatever_comes_back_only_what_was_acknowledged_is_deleted(
    name: str, seed: int, share: float, users: int, latest: bool
) -> None:
    """Random outcomes, several users, every scheme: new keys are new, deletes are of own rows."""
    rng = random.Random(seed)
    chances = [*SUCCESSES, *FAILURES, Outcome.NOT_FOUND]

    def outcomes() -> Iterator[Outcome]:
        while True:
            yield rng.choice(chances) if rng.random() < share else Outcome.SUCCESS

    of = workload(scheme(name), *WRITING, latest=latest)
    driven(of, outcomes(), rng, users=users, tasks=100)


@pytest.mark.parametrize("name", [name for name, of in SCHEMES.items() if len(of.tables) > 1])
@pytest.mark.parametrize("kinds", [MIXED, EITHER, (Kind.DELETE, Kind.INSERT), (Kind.DELETE,)])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), users=st.integers(1, 6))
def test_where_nothing_fails_the_tables_stay_in_step(
    name: str, kinds: tuple[Kind, ...], seed: int, users: int
) -> None:
    """Every row of the first table has its copies in the end, and no copy is left over."""
    rng = random.Random(seed)
    of = workload(scheme(name), *WRITING, kinds=kinds)
    endless = iter(lambda: Outcome.SUCCESS, None)
    service = driven(of, endless, rng, users=users, tasks=120)
    rows = collections.Counter(table for table, _, _ in service.there)
    assert len(set(rows.values())) == 1, rows
    firsts = {f"{partition}__{row}" for table, partition, row in service.there if not table}
    copied = {row for table, _, row in service.there if table == "Index"}
    assert firsts == copied


@pytest.mark.parametrize("name", [name for name, of in SCHEMES.items() if not of.one_row])
@pytest.mark.parametrize("kinds", [(Kind.DELETE, Kind.INSERT), (Kind.DELETE,), (Kind.INSERT,)])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_transactions_that_come_and_go_stay_in_one_partition(
    name: str, kinds: tuple[Kind, ...], seed: int
) -> None:
    """Also where new rows go to another partition than was drawn, and to another one tomorrow."""
    rng = random.Random(seed)
    made = scheme(name)
    of = Workload(
        scheme=made,
        picker=Uniform(made.count),
        mix=ActionMix({Action.TRANSACTION: 1.0}),
        entities=EntityFactory(1024, "run1"),
        transaction_size=5,
        transaction_kinds=kinds,
    )
    driven(of, iter(lambda: Outcome.SUCCESS, None), rng, users=2, tasks=40)


@pytest.mark.parametrize("kind", sorted(PART_KINDS))
def test_a_transaction_of_one_kind_has_as_many_parts_as_asked(kind: Kind) -> None:
    """Deletes without rows are inserts, so that the size never depends on chance."""
    of = workload(scheme("spread"), Action.TRANSACTION, kinds=(kind,))
    first = first_of(of.next_task(random.Random(1)))
    assert len(first.parts) == 6
    assert {part.kind for part in first.parts} == {Kind.INSERT if kind is Kind.DELETE else kind}
