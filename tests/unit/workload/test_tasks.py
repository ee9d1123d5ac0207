"""Tasks of several operations: what is sent, and what follows from what became of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome
from harness.workload.keys.design import Key
from harness.workload.operation_source import Task, next_operation, steps_of
from harness.workload.tasks import ByPartition, TaskRow, Tasks
from tests.support.driving import first_of
from tests.support.tasks import FAILURES, MIXED, SUCCESSES, Where, result, where

COPIES = (("Index", "i"), ("Other", "o"))


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
