"""What is sent: operations of a mix, one seed for one list, entities to the byte."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.model.entity import characters, entity_problems, stored_size
from harness.model.operation import Kind, Operation
from harness.workload.entity_factory import (
    GROUP_PROPERTY,
    GROUPS,
    NUMBER_PROPERTY,
    RUN_PROPERTY,
    EntityFactory,
    wire_bytes,
)
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.workload import Workload
from tests.support.driving import first_of, operations
from tests.support.examples import examples
from tests.support.keys import NAMES, newest, sized, spread

key_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\#?"))


def workload(
    mix: Mapping[Action, float] | None = None,
    *,
    design: KeyDesign | None = None,
    partitions: int = 3,
    rows: int = 20,
    size: int = 5,
    worker: int = 0,
    kinds: tuple[Kind, ...] = (Kind.UPSERT_MERGE,),
) -> Workload:
    return Workload(
        design=design or spread(partitions, rows),
        mix=ActionMix(dict.fromkeys(Action, 1.0) if mix is None else mix),
        entities=EntityFactory(1024, "run1"),
        transaction_size=size,
        transaction_kinds=kinds,
        worker=worker,
    )


def drawn(of: Workload, count: int, seed: int = 1) -> list[Operation]:
    """Operations of a run in which everything that is asked for is done at once."""
    return list(itertools.islice(operations(of, random.Random(seed)), count))


def writes(operations: list[Operation]) -> list[Operation]:
    """Every single operation, those inside transactions too."""
    return [one for operation in operations for one in (operation.parts or (operation,))]


@examples(30)
@given(st.integers(0, 2**32), st.sampled_from([*NAMES, "newest"]))
def test_the_same_seed_gives_the_same_operations(seed: int, name: str) -> None:
    """Nothing but the arguments, the random source and the outcomes decides what is sent."""
    mix = dict.fromkeys(Action, 1.0)

    def made() -> list[Operation]:
        design = newest(20) if name == "newest" else sized(name, 3, 20)
        if design.one_row or design.scatters:
            mix[Action.TRANSACTION] = 0.0
        of = workload(mix, design=design, kinds=(Kind.INSERT, Kind.DELETE))
        return drawn(of, 40, seed)

    assert made() == made()


@examples(50)
@given(
    st.integers(0, 2**32),
    st.integers(1, 100),
    st.integers(0, 30),
    st.lists(st.sampled_from([kind for kind in Kind if kind.part]), min_size=1, max_size=5),
)
def test_a_transaction_names_each_row_once(
    seed: int, size: int, spare: int, kinds: list[Kind]
) -> None:
    """Parts of a transaction are distinct rows of one partition, also with just enough rows."""
    of = workload({Action.TRANSACTION: 1}, rows=size + spare, size=size, kinds=tuple(kinds))
    for operation in drawn(of, 5, seed):
        assert len(operation.parts) == size
        assert len({part.row_key for part in operation.parts}) == size
        assert {part.partition for part in operation.parts} == {operation.partition}
        in_turn = [kinds[place % len(kinds)] for place in range(size)]
        for part, kind in zip(operation.parts, in_turn, strict=True):
            # Without a row that can be deleted, a delete is an insert.
            assert part.kind is kind or (kind is Kind.DELETE and part.kind is Kind.INSERT)


def test_inserts_are_disjoint_over_workers_and_from_what_was_loaded() -> None:
    """No two workers insert the same row, nor one that was loaded, alone or in transactions."""
    mix = {Action.INSERT: 1.0, Action.TRANSACTION: 1.0, Action.KEY_CHANGE: 0.5}
    rows: list[str] = []
    for worker in (0, 1, 12, 123):
        made = workload(mix, worker=worker, kinds=(Kind.INSERT,))
        inserts = [one for one in writes(drawn(made, 80)) if one.kind is Kind.INSERT]
        rows += [one.row_key for one in inserts]
    rows += [one.row_key for one in writes(list(workload().loading()))]
    assert len(rows) == len(set(rows))


MOVING = (Action.INSERT, Action.DELETE, Action.READ_THEN_WRITE, Action.KEY_CHANGE)


def test_reads_and_updates_go_to_loaded_rows() -> None:
    """Whatever is not inserted by the run itself was loaded before."""
    loaded = {(one.partition_key, one.row_key) for one in writes(list(workload().loading()))}
    of_rows = [action for action in Action if action.on_rows]
    mix = dict.fromkeys(of_rows, 1.0) | dict.fromkeys(MOVING, 0.0)
    touched = [one for one in writes(drawn(workload(mix), 500)) if one.kind is not Kind.QUERY]
    assert {(one.partition_key, one.row_key) for one in touched} <= loaded


def test_the_newest_rows_are_those_that_were_inserted() -> None:
    """With a preference for the newest, reads follow the inserts."""
    mix = {Action.INSERT: 1.0, Action.POINT_QUERY: 1.0}
    sent = drawn(workload(mix, design=newest(20)), 200)
    inserted = {one.row_key for one in sent if one.kind is Kind.INSERT}
    read = [one.row_key for one in sent[50:] if one.kind is Kind.POINT_QUERY]
    assert read
    assert set(read) <= inserted


def test_a_delete_takes_what_was_inserted_before() -> None:
    """Deletes follow inserts one to one; without an insert a delete becomes one."""
    sent = drawn(workload({Action.DELETE: 1.0}), 40)
    assert [one.kind for one in sent] == [Kind.INSERT, Kind.DELETE] * 20
    for insert, delete in zip(sent[::2], sent[1::2], strict=True):
        assert (insert.partition_key, insert.row_key) == (delete.partition_key, delete.row_key)


def test_no_row_is_deleted_twice() -> None:
    """Each delete has an insert of its own, whatever the mix."""
    mix = {Action.DELETE: 2.0, Action.INSERT: 1.0, Action.TRANSACTION: 1.0}
    sent = writes(drawn(workload(mix, kinds=(Kind.DELETE, Kind.INSERT)), 300))
    deleted = [one.row_key for one in sent if one.kind is Kind.DELETE]
    assert deleted
    assert len(deleted) == len(set(deleted))


def test_an_hour_of_a_data_series_is_one_property() -> None:
    """Nothing but the value of the hour is merged into the entity, under one of 24 names."""
    sent = drawn(workload({Action.SERIES_MERGE: 1.0}), 300)
    assert {(one.kind, one.label) for one in sent} == {(Kind.UPSERT_MERGE, "series_merge")}
    names = [tuple(one.properties) for one in sent if one.properties]
    assert {len(one) for one in names} == {1}
    assert {one[0] for one in names} == {f"Hour{hour:02d}" for hour in range(24)}


def test_the_mix_is_kept() -> None:
    """Actions come as often as their weights say; a weight of 0 never."""
    rng = random.Random(3)
    mix = ActionMix(
        {
            Action.POINT_QUERY: 50,
            Action.UPSERT_MERGE: 40,
            Action.TRANSACTION: 10,
            Action.DELETE: 0,
        }
    )
    seen = collections.Counter(mix.draw(rng) for _ in range(20_000))
    assert mix.actions == (Action.POINT_QUERY, Action.UPSERT_MERGE, Action.TRANSACTION)
    assert seen[Action.DELETE] == 0
    assert seen[Action.POINT_QUERY] / 20_000 == pytest.approx(0.5, abs=0.02)
    assert seen[Action.UPSERT_MERGE] / 20_000 == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("action", list(Action))
def test_every_action_is_called_by_its_name(action: Action) -> None:
    """What a task begins with carries the action's name, or one that tells its first step."""
    first_steps = {
        Action.DELETE: "insert",
        Action.KEY_CHANGE: "insert",
        Action.CONDITIONAL_UPDATE: "read_for_update",
        Action.READ_THEN_WRITE: "read_before_write",
        Action.UPDATE_MESSAGE: "get_messages",
        Action.DELETE_MESSAGE: "get_messages",
    }
    first = first_of(workload({action: 1.0}).next_task(random.Random(1)))
    assert first.label == first_steps.get(action, action.value)


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 250])
def test_loading_makes_every_row_once(rows: int) -> None:
    """Loading is transactions of at most 100 that name every row of every partition once."""
    loading = list(workload(partitions=2, rows=rows, size=1).loading())
    assert all(len(operation.parts) <= 100 for operation in loading)
    made = [(one.partition_key, one.row_key) for one in writes(loading)]
    assert len(made) == len(set(made)) == 2 * rows
    assert made == sorted(made)


def test_loading_makes_every_copy_after_the_rows() -> None:
    """Copies come one by one, each in its table, as many as rows."""
    of = workload(design=sized("index-table", 2, 30))
    loading = list(of.loading())
    tables = [one.table for one in writes(loading)]
    assert tables == [""] * 60 + ["Index"] * 60
    assert of.loaded_entities == 120
    assert of.tables == ("", "Index")
    made = [(one.partition, one.row_key) for one in writes(loading)]
    assert len(made) == len(set(made))


@examples(100)
@given(st.integers(1, 200_000), key_text, key_text, st.text(max_size=20))
def test_entities_have_exactly_the_wanted_size(
    size: int, partition_key: str, row_key: str, run_id: str
) -> None:
    """Whatever the keys are, the stored size is the wanted one to the byte, within the limits."""
    assume(characters(partition_key) <= 1024)
    assume(characters(row_key) <= 1024)
    factory = EntityFactory(size, run_id)
    try:
        properties = factory.properties(partition_key, row_key, 7)
    except ValueError as error:
        smallest = int(str(error).split()[-1])
        assert size < smallest < 5000
        return
    assert stored_size(partition_key, row_key, properties) == size
    assert list(entity_problems(partition_key, row_key, properties)) == []
    assert properties[RUN_PROPERTY] == run_id


def test_sizes_hold_for_keys_that_only_look_alike() -> None:
    """Two keys of as many code points, one of them with pairs of surrogates, differ in size."""
    factory = EntityFactory(1024, "run1")
    for key in ("ab", "🦊b", "🦊🦊"):
        assert stored_size(key, "r", factory.properties(key, "r", 1)) == 1024


def test_the_largest_entity_can_be_made() -> None:
    """An entity of 1 MiB keeps each property under 64 KiB and their number under 252."""
    properties = EntityFactory(1024 * 1024, "run1").properties("p", "r", 1)
    assert stored_size("p", "r", properties) == 1024 * 1024
    assert list(entity_problems("p", "r", properties)) == []


def test_entities_of_one_key_differ_and_do_not_share() -> None:
    """The number varies the content, and one entity's properties are not another's."""
    factory = EntityFactory(1024, "run1")
    one, other = factory.properties("p", "r", 1), factory.properties("p", "r", 2)
    assert one["Count"] != other["Count"]
    one["Count"] = 99
    assert factory.properties("p", "r", 2) == other


def test_the_wire_carries_about_half_of_stored_text() -> None:
    """A stored string takes two bytes a character, JSON one: both sizes are reported."""
    properties = EntityFactory(8192, "run1").properties("p", "r", 1)
    assert 0.4 < wire_bytes("p", "r", properties) / 8192 < 0.7


def test_numbers_and_groups_tell_which_entity_it_is() -> None:
    """A filter on either returns a known share: they follow from the entity's number alone."""
    factory = EntityFactory(1024, "run1")
    made = [factory.properties("p", f"r{number:04d}", 1, number) for number in range(2 * GROUPS)]
    assert [one[NUMBER_PROPERTY] for one in made] == list(range(2 * GROUPS))
    groups = collections.Counter(one[GROUP_PROPERTY] for one in made)
    assert groups == dict.fromkeys(range(GROUPS), 2)
