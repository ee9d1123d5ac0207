"""What is sent: keys, entities to the byte, operations of a mix."""

from __future__ import annotations

import collections
import random
from collections.abc import Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.model.entity import characters, entity_problems, key_problem, stored_size
from harness.model.operation import Kind, Operation
from harness.workload.entities import RUN_PROPERTY, EntityFactory, wire_bytes
from harness.workload.keys import NumberedKeys, Picker, Uniform, Zipfian
from harness.workload.workload import Mix, Workload

KINDS: list[Kind] = [kind for kind in Kind if kind is not Kind.QUERY]
key_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\#?"))


def workload(
    mix: Mapping[Kind, float] | None = None,
    *,
    partitions: int = 3,
    rows: int = 20,
    size: int = 5,
    worker: int = 0,
    transaction_kind: Kind = Kind.UPSERT_MERGE,
) -> Workload:
    return Workload(
        keys=NumberedKeys(count=partitions),
        picker=Uniform(partitions),
        rows_per_partition=rows,
        mix=Mix(dict.fromkeys(KINDS, 1.0) if mix is None else mix),
        entities=EntityFactory(1024, "run1"),
        transaction_size=size,
        transaction_kind=transaction_kind,
        worker=worker,
    )


def drawn(of: Workload, count: int, seed: int = 1) -> list[Operation]:
    rng = random.Random(seed)
    return [of.next(rng) for _ in range(count)]


def writes(operations: list[Operation]) -> list[Operation]:
    """Every single operation, those inside transactions too."""
    return [one for operation in operations for one in (operation.parts or (operation,))]


@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_operations(seed: int) -> None:
    """Nothing but the arguments and the random source decides what is sent."""
    assert drawn(workload(), 30, seed) == drawn(workload(), 30, seed)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 100),
    st.integers(0, 30),
    st.sampled_from([Kind.INSERT, Kind.UPSERT_MERGE, Kind.UPDATE_REPLACE]),
)
def test_a_transaction_names_each_row_once(seed: int, size: int, spare: int, kind: Kind) -> None:
    """Parts of a transaction are distinct rows of one partition, also with just enough rows."""
    of = workload({Kind.TRANSACTION: 1}, rows=size + spare, size=size, transaction_kind=kind)
    for operation in drawn(of, 5, seed):
        assert len(operation.parts) == size
        assert len({part.row_key for part in operation.parts}) == size
        assert {part.partition_key for part in operation.parts} == {operation.partition_key}
        assert {part.kind for part in operation.parts} == {kind}


def test_inserts_are_disjoint_over_workers_and_from_what_was_loaded() -> None:
    """No two workers insert the same row, nor one that was loaded, alone or in transactions."""
    mix = {Kind.INSERT: 1.0, Kind.TRANSACTION: 1.0}
    rows: list[str] = []
    for worker in (0, 1, 12, 123):
        made = workload(mix, worker=worker, transaction_kind=Kind.INSERT)
        rows += [one.row_key for one in writes(drawn(made, 50))]
    rows += [one.row_key for one in writes(list(workload().loading()))]
    assert len(rows) == len(set(rows))


def test_reads_and_updates_go_to_loaded_rows() -> None:
    """Whatever is not inserted by the run itself was loaded before."""
    loaded = {(one.partition_key, one.row_key) for one in writes(list(workload().loading()))}
    mix = dict.fromkeys(KINDS, 1.0)
    mix[Kind.INSERT] = mix[Kind.DELETE] = 0.0
    touched = writes(drawn(workload(mix), 500))
    assert {(one.partition_key, one.row_key) for one in touched} <= loaded


def test_a_delete_takes_what_was_inserted_before() -> None:
    """Deletes follow inserts one to one; without an insert a delete becomes one."""
    operations = drawn(workload({Kind.DELETE: 1.0}), 40)
    assert [one.kind for one in operations] == [Kind.INSERT, Kind.DELETE] * 20
    for insert, delete in zip(operations[::2], operations[1::2], strict=True):
        assert (insert.partition_key, insert.row_key) == (delete.partition_key, delete.row_key)


def test_no_row_is_deleted_twice() -> None:
    """Each delete has an insert of its own, whatever the mix."""
    operations = drawn(workload({Kind.DELETE: 2.0, Kind.INSERT: 1.0}), 300)
    deleted = [one.row_key for one in operations if one.kind is Kind.DELETE]
    assert deleted
    assert len(deleted) == len(set(deleted))


def test_the_mix_is_kept() -> None:
    """Kinds come as often as their weights say; a weight of 0 never."""
    rng = random.Random(3)
    mix = Mix({Kind.POINT_QUERY: 50, Kind.UPSERT_MERGE: 40, Kind.TRANSACTION: 10, Kind.DELETE: 0})
    seen = collections.Counter(mix.draw(rng) for _ in range(20_000))
    assert seen[Kind.DELETE] == 0
    assert seen[Kind.POINT_QUERY] / 20_000 == pytest.approx(0.5, abs=0.02)
    assert seen[Kind.UPSERT_MERGE] / 20_000 == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 250])
def test_loading_makes_every_row_once(rows: int) -> None:
    """Loading is transactions of at most 100 that name every row of every partition once."""
    loading = list(workload(partitions=2, rows=rows, size=1).loading())
    assert all(len(operation.parts) <= 100 for operation in loading)
    made = [(one.partition_key, one.row_key) for one in writes(loading)]
    assert len(made) == len(set(made)) == 2 * rows
    assert made == sorted(made)


@settings(max_examples=100, deadline=None)
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
        smallest = int(str(error).split()[-3])
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


@given(st.integers(1, 1000), st.sampled_from(["p", "", "blog-", "🦊"]))
def test_partition_keys_are_in_number_order(count: int, prefix: str) -> None:
    """Key order is number order, every key is one that the service takes."""
    keys = NumberedKeys(count=count, prefix=prefix)
    names = [keys.partition_key(number) for number in range(count)]
    assert names == sorted(set(names))
    assert len(names) == count
    assert all(key_problem(name) is None for name in names)


def test_the_single_value_of_the_procedure() -> None:
    """One partition has one key."""
    assert NumberedKeys(count=1).partition_key(0) == "p0"


def shares(picker: Picker, draws: int, seed: int = 5) -> dict[int, float]:
    rng = random.Random(seed)
    seen = collections.Counter(picker.draw(rng) for _ in range(draws))
    return {number: count / draws for number, count in seen.items()}


@pytest.mark.parametrize("theta", [0.0, 0.5, 0.99, 1.5])
def test_zipfian_draws_follow_the_theory(theta: float) -> None:
    """Number k comes with probability 1/(k+1)^theta over the sum of all: chi-square of 20 cells."""
    count, draws = 20, 50_000
    weights = [1 / (k + 1) ** theta for k in range(count)]
    seen = shares(Zipfian(count, theta), draws)
    chi = sum(
        (seen.get(k, 0.0) - w / sum(weights)) ** 2 / (w / sum(weights)) * draws
        for k, w in enumerate(weights)
    )
    # 19 degrees of freedom: 43.8 is exceeded once in a thousand; the seed is fixed.
    assert chi < 43.8


def test_uniform_draws_are_even() -> None:
    """Every number comes equally often: chi-square of 20 cells."""
    draws = 50_000
    seen = shares(Uniform(20), draws)
    assert sum((seen.get(k, 0.0) - 0.05) ** 2 / 0.05 * draws for k in range(20)) < 43.8


@given(st.integers(1, 500), st.floats(0, 5), st.floats(0, 1, exclude_max=True))
def test_draws_are_numbers_of_the_scheme(count: int, theta: float, chance: float) -> None:
    """Whatever chance says, the number exists."""

    class Fixed(random.Random):
        def random(self) -> float:
            return chance

    assert 0 <= Zipfian(count, theta).draw(Fixed()) < count
    assert 0 <= Uniform(count).draw(Fixed()) < count
