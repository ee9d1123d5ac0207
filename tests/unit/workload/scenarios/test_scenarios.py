"""The shipped scenarios, driven against tables in memory: keys, reads, counting, index tables."""

from __future__ import annotations

import collections
import functools
import itertools
import random
import re
from collections.abc import Iterator, Mapping

import pytest

from harness.model.entity import entity_problems, stored_size
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind, Operation, transaction_problem
from harness.model.outcome import Outcome, Result
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import Latest, Picker, Uniform
from harness.workload.scenarios.blog import Blog, BlogNewestFirst, Post
from harness.workload.scenarios.registry import SCENARIOS
from harness.workload.scenarios.row_pairs import FootRace, Registration
from harness.workload.scenarios.scenario import Pointers, Scenario, Setting
from harness.workload.simulated_time import day
from tests.support.driving import first_of, operations
from tests.support.memory_tables import Entity, MemoryTables
from tests.support.profiles import shipped, without_trace

SIZES = {
    "bank-transfers": (40, 2),
    "user-profiles": (60, 1),
    "data-series": (3, 2),
    "iot-telemetry": (3, 130),
    "iot-telemetry-by-date": (3, 130),
}
"""Partitions and rows, where (4, 30) will not do."""
TASKS = 2000
BATCHED = ("log", "log-hash-prefix")
"""Their tasks insert many rows each: a tenth of the tasks is as much."""
LOST = 0.2
READS = (Kind.POINT_QUERY, Kind.QUERY)

every_scenario = pytest.mark.parametrize("name", SCENARIOS)
every_one_on_tables = pytest.mark.parametrize(
    "name", sorted(SCENARIOS.keys() - {"producer-consumer"})
)
"""Queues have neither keys nor rows that are loaded."""


def made(
    name: str,
    *,
    worker: int = 0,
    actions: Mapping[str, float] | None = None,
    picker: Picker | None = None,
    size_bytes: int = 256,
    size: tuple[int, int] | None = None,
) -> Scenario:
    partitions, rows = size or SIZES.get(name, (4, 30))
    return SCENARIOS[name](
        Setting(
            partitions=partitions,
            rows=rows,
            picker=picker or Uniform(partitions),
            entities=EntityFactory(size_bytes, "run1"),
            worker=worker,
            actions=actions or {},
        )
    )


def tasks_of(name: str) -> int:
    """How many tasks of a scenario a run does."""
    return TASKS // 10 if name in BATCHED else TASKS


def singles(of: Operation) -> tuple[Operation, ...]:
    return of.parts or (of,)


def loaded(name: str, lost: float = 0.0) -> MemoryTables:
    """Tables with what a scenario loads, of which nothing was lost."""
    tables = MemoryTables()
    for operation in made(name).loading():
        assert tables.execute(operation).outcome is Outcome.SUCCESS
    tables.lost = lost
    return tables


def task(scenario: Scenario, rng: random.Random, tables: MemoryTables) -> Iterator[Result]:
    """Results of a whole task."""
    yield from tables.perform(scenario.next_task(rng))


def driven(
    name: str, tables: MemoryTables, workers: tuple[int, ...] = (0, 1), tasks: int = TASKS
) -> Iterator[Result]:
    """Results of whole tasks, of the workers in turn."""
    scenarios = [(made(name, worker=worker), random.Random(worker)) for worker in workers]
    for scenario, rng in itertools.islice(itertools.cycle(scenarios), tasks):
        yield from task(scenario, rng, tables)


@functools.cache
def run(name: str, lost: float = 0.0) -> tuple[MemoryTables, list[tuple[Result, int]]]:
    """Tables after a run, its results, and what each had scanned."""
    tables = loaded(name, lost)
    tasks = tasks_of(name) // (4 if lost else 1)
    return tables, [(result, tables.scanned) for result in driven(name, tables, tasks=tasks)]


@every_scenario
def test_the_same_seed_gives_the_same_operations(name: str) -> None:
    """Nothing but the setting, the seed and the answers decides what is sent."""
    one, same, other = (
        list(itertools.islice(operations(made(name), random.Random(seed)), 300))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@every_one_on_tables
def test_the_service_takes_whatever_is_sent(name: str) -> None:
    """Keys, entities, transactions and tables are within the limits; each operation has a name."""
    scenario = made(name)
    sent = [result.operation for result, _ in run(name)[1]]
    assert len(sent) >= tasks_of(name)
    assert {operation.kind.value for operation in sent if not operation.name} == set()
    for operation in itertools.chain(scenario.loading(), sent):
        assert not operation.parts or transaction_problem(operation.parts) is None
        for one in singles(operation):
            assert one.table in scenario.tables
            assert (one.properties is None) == (one.kind in (*READS, Kind.DELETE))
            content = one.properties or {}
            assert not list(entity_problems(one.partition_key, one.row_key, content)) or (
                one.partition_key == WHOLE_TABLE
            )
            assert one.properties is None or one.properties["StressRun"] == "run1"


@every_one_on_tables
def test_loading_is_what_it_says(name: str) -> None:
    """Each row is loaded once; entities and partitions are those that the scenario announces."""
    scenario = made(name)
    rows = [
        (one.table, one.partition_key, one.row_key)
        for operation in scenario.loading()
        for one in singles(operation)
    ]
    assert len(rows) == len(set(rows)) == scenario.loaded_entities
    names = {f"{table}/{partition}" if table else partition for table, partition, _ in rows}
    assert set(scenario.partitions()) == names


@every_scenario
def test_workers_never_insert_the_same_row(name: str) -> None:
    """Rows that workers insert are disjoint, and disjoint from what was loaded."""
    tables = loaded(name)
    rows = [(table, *key) for table in tables.partitions for key in tables.keys(table)]
    for worker in (0, 1, 12, 9999):
        for result in driven(name, tables, workers=(worker,), tasks=200):
            rows += [
                (one.table, one.partition_key, one.row_key)
                for one in singles(result.operation)
                if one.kind is Kind.INSERT
            ]
    assert len(rows) == len(set(rows))


@every_scenario
def test_every_operation_finds_what_it_needs(name: str) -> None:
    """No insert meets a row, no read, update or delete misses one, while two workers take turns."""
    seen = collections.Counter(
        (result.operation.name, result.outcome) for result, _ in run(name)[1]
    )
    assert {outcome for _, outcome in seen} == {Outcome.SUCCESS}


@every_scenario
def test_all_actions_are_done(name: str) -> None:
    """Each action that the class weighs leads to operations, and each name is told from others."""
    scenario = made(name)
    for action in scenario.actions:
        assert callable(getattr(scenario, action))
        alone = made(name, actions={**dict.fromkeys(scenario.actions, 0.0), action: 1.0})
        tables, rng = loaded(name), random.Random(3)
        results = [one for _ in range(60) for one in task(alone, rng, tables)]
        assert {result.outcome for result in results} == {Outcome.SUCCESS}


@every_scenario
def test_what_is_said_to_be_scanned_is_scanned(name: str) -> None:
    """What a query knows of its range is what a count of the rows says, or no more than that."""
    for result, scanned in run(name)[1]:
        operation = result.operation
        if operation.kind is Kind.QUERY:
            keys = operation.key_range
            assert keys.entities is not None
            assert keys.entities <= scanned, operation
            assert not keys.exact or keys.entities == scanned, operation


@every_scenario
def test_a_range_is_known_where_nobody_writes(name: str) -> None:
    """With the weights of all writes at 0, every query knows exactly what it scans."""
    scenario = made(name)
    reads = [
        action
        for action in scenario.actions
        if first_of(getattr(scenario, action)(random.Random(1))).kind is Kind.QUERY
    ]
    if not reads:
        return
    reading = made(name, actions={action: float(action in reads) for action in scenario.actions})
    tables, rng = loaded(name), random.Random(5)
    for _ in range(200):
        query = first_of(reading.next_task(rng))
        tables.execute(query)
        assert query.key_range.exact
        assert query.key_range.entities == tables.scanned, query


@pytest.mark.parametrize("name", [name for name, of in SCENARIOS.items() if of.pointers])
@pytest.mark.parametrize("lost", [0.0, LOST])
def test_index_rows_name_their_row(name: str, lost: float) -> None:
    """Index rows are in step when all tasks ran to their end, and are not where writes get lost."""
    tables, _ = run(name, lost)
    apart = sum(sum(out_of_step(tables, pointers)) for pointers in SCENARIOS[name].pointers)
    assert bool(apart) == bool(lost)


@every_scenario
def test_the_smallest_size_is_enough(name: str) -> None:
    """One partition, and as few rows as there can be, lead to no operation that cannot be done."""
    smallest = made(name, size=(1, 2 if name == "bank-transfers" else 1))
    tables, rng = MemoryTables(), random.Random(6)
    for operation in smallest.loading():
        tables.execute(operation)
    outcomes = {result.outcome for _ in range(200) for result in task(smallest, rng, tables)}
    assert outcomes == {Outcome.SUCCESS}


@every_scenario
def test_users_who_are_at_it_at_once_do_no_harm(name: str) -> None:
    """With tasks of two workers interleaved, no two insert one row, and index rows are in step."""
    tables, chance = loaded(name), random.Random(9)
    workers = [(made(name, worker=worker), random.Random(worker)) for worker in (0, 1)]
    users = [task(*workers[number % 2], tables) for number in range(20)]
    outcomes: collections.Counter[Outcome] = collections.Counter()
    for _ in range(tasks_of(name) // 2):
        number = chance.randrange(len(users))
        result = next(users[number], None)
        if result is None:
            users[number] = task(*workers[number % 2], tables)
        else:
            outcomes[result.outcome] += 1
    # Everybody ends what was begun.
    outcomes.update(result.outcome for user in users for result in user)
    races = (Outcome.PRECONDITION, Outcome.NOT_FOUND)
    assert sum(outcomes[race] for race in races) < 0.05 * outcomes.total()
    assert not set(outcomes) - {Outcome.SUCCESS, *races}
    for pointers in SCENARIOS[name].pointers:
        assert out_of_step(tables, pointers) == (0, 0)


def out_of_step(tables: MemoryTables, pointers: Pointers) -> tuple[int, int]:
    """Index rows whose row is gone, and rows that no index row names."""
    named = [
        (row[pointers.partition], row[pointers.row]) for row in tables.entities(pointers.table)
    ]
    there = set(tables.keys(pointers.to))
    return sum(key not in there for key in named), len(there - set(named))


@every_scenario
def test_what_was_never_acknowledged_is_not_used(name: str) -> None:
    """Rows whose insert failed are not read, changed or deleted later."""
    for result, _ in run(name, LOST)[1]:
        assert result.outcome in (Outcome.SUCCESS, Outcome.THROTTLED), result.operation


def test_debit_and_credit_net_to_zero() -> None:
    """Also where writes fail, a transfer has both of its sides or none."""
    tables, _ = run("bank-transfers", LOST)
    cents: dict[str, list[int]] = collections.defaultdict(list)
    for row in tables.entities():
        cents[row["PartitionKey"]].append(row["Cents"])
    assert len(cents) > SIZES["bank-transfers"][0]
    assert all(len(sides) == 2 and sum(sides) == 0 for sides in cents.values())


def test_a_registration_has_both_rows_or_none() -> None:
    """Bibs found by bib and bibs found by age are the same."""
    tables, _ = run("foot-race", LOST)
    rows = collections.Counter(
        (row["PartitionKey"], row["Bib"], row["RowKey"][:4]) for row in tables.entities()
    )
    assert set(rows.values()) == {1}
    by_bib, by_age = (
        {(race, bib) for race, bib, prefix in rows if prefix == wanted}
        for wanted in ("BIB:", "AGE:")
    )
    assert by_bib == by_age


def test_the_keys_of_a_registration_are_the_documented_ones() -> None:
    """The two RowKeys of the partitioning strategy's example, and its PartitionKey."""
    john = Registration(race="r", bib="01234", name="John", sex="M", age=55)
    assert (john.by_bib, john.by_age) == ("BIB:01234__John__M__55", "AGE:055__1234__John__M")
    assert "2011 New York City Marathon__Full" in set(made("foot-race").partitions())


def test_new_bibs_have_the_format_of_the_loaded_ones_and_follow_them() -> None:
    """Every RowKey is BIB:digits__name__sex__age of one width, and new bibs sort after loaded."""
    before = {row["RowKey"] for row in loaded("foot-race").entities()}
    after = {row["RowKey"] for row in run("foot-race")[0].entities()}
    form = re.compile(r"BIB:(\d{12})__[A-Z][a-z]+__[MF]__\d\d")
    old, new = (
        [found[1] for key in keys if key.startswith("BIB:") and (found := form.fullmatch(key))]
        for keys in (before, after - before)
    )
    assert len(old) == 4 * 30
    assert len(new) == sum(key.startswith("BIB:") for key in after - before) > 100
    assert max(old) < min(new)


def test_a_bib_and_an_age_are_found() -> None:
    """A query by bib brings the one runner, a query by age all of that age and no others."""
    tables, scenario = loaded("foot-race"), made("foot-race")
    assert isinstance(scenario, FootRace)
    rng = random.Random(11)
    for _ in range(100):
        by_bib = scenario.query_by_bib(rng)
        (runner,) = rows_of(tables, by_bib)
        assert by_bib.key_range.row_from == f"BIB:{runner['Bib']}__"
        by_age = scenario.query_by_age(rng)
        assert by_age.key_range.row_from is not None
        of_age = [
            row["RowKey"]
            for row in tables.entities()
            if row["RowKey"].startswith("AGE:")
            and row["PartitionKey"] == by_age.partition_key
            and row["Age"] == int(by_age.key_range.row_from[-3:])
        ]
        assert [row["RowKey"] for row in rows_of(tables, by_age)] == of_age


def rows_of(tables: MemoryTables, query: Operation) -> list[Entity]:
    value = tables.execute(query).value
    assert isinstance(value, list)
    return value


def test_a_data_series_has_its_natural_size() -> None:
    """24 values as entities take a few times the bytes of 24 properties, not 24 KiB."""
    sizes: dict[str, list[int]] = collections.defaultdict(list)
    writes = [result.operation for result, _ in run("data-series")[1]]
    for operation in itertools.chain(made("data-series", size_bytes=1024).loading(), writes):
        for one in singles(operation):
            if one.kind in (Kind.INSERT, Kind.UPSERT_REPLACE):
                content = one.properties or {}
                assert "Text0" not in content
                sizes[one.table].append(stored_size(one.partition_key, one.row_key, content))
    assert max(sizes["ValueOfHour"]) < 200
    assert 600 < min(sizes["SeriesOfDay"]) <= max(sizes["SeriesOfDay"]) < 1024


@pytest.mark.parametrize("name", ["blog", "blog-newest-first"])
def test_the_five_queries_of_a_blog_bring_what_they_should(name: str) -> None:
    """By date, category, tag and author, and the latest: what is listed, and the post behind it."""
    tables = loaded(name)
    collections.deque(driven(name, tables, tasks=400), maxlen=0)
    scenario, rng = made(name), random.Random(2)
    assert isinstance(scenario, Blog)
    for _ in range(30):
        for make in (scenario.list_by_category, scenario.list_by_tag, scenario.list_by_author):
            listing, *posts = tables.perform(make(rng))
            assert isinstance(listing.value, list)
            assert len(posts) == min(1, len(listing.value))
            for post in posts:
                assert isinstance(post.value, dict)
                assert post.value["Title"] == listing.value[0]["Title"]
        by_date = rows_of(tables, scenario.list_by_date(rng))
        times = sorted(row["Published"] for row in by_date)
        assert (times[-1] - times[0]).days < 7


def test_inverted_timestamps_bring_the_latest_posts_without_scanning_the_month() -> None:
    """The latest ten stand first in key order; by slug they are somewhere in the whole month."""
    tables = loaded("blog-newest-first")
    newest = made("blog-newest-first")
    assert isinstance(newest, BlogNewestFirst)
    rng = random.Random(1)
    for _ in range(50):
        collections.deque(task(newest, rng, tables), maxlen=0)
    query = newest.latest_posts(rng)
    latest = [row["Published"] for row in rows_of(tables, query)]
    month = [
        row["Published"]
        for row in tables.entities("Posts")
        if row["PartitionKey"] == query.partition_key
    ]
    assert latest == sorted(month, reverse=True)[:10]
    by_slug = made("blog")
    assert isinstance(by_slug, Blog)
    assert by_slug.latest_posts(rng).top is None


def test_an_index_row_sorts_by_time_and_then_slug() -> None:
    """RowKeys of the index tables are yyyy-MM-dd-HH-mm-ss + slug."""
    post = Post(number=0, slug="my-first-post", published=day(31).after(36_000_000_000))
    assert post.index_row == "2024-02-01-01-00-00-my-first-post"
    assert ("PostsByCategory", "architecture") in set(post.listed_by)
    assert [table for table, _ in post.listed_by].count("PostsByTag") == 2


@pytest.mark.parametrize("name", ["user-profiles", "bank-transfers"])
def test_a_size_that_the_design_does_not_have_is_refused(name: str) -> None:
    """A user has one profile and a transfer two sides, whatever the profile says."""
    setting = Setting(partitions=4, rows=3, picker=Uniform(4), entities=EntityFactory(256, "run1"))
    with pytest.raises(SetupError, match=r"keys\.rows_per_partition has to be [12], .* not 3;"):
        SCENARIOS[name](setting)


def test_weights_that_are_all_0_are_refused() -> None:
    """A scenario that would send nothing is not made."""
    with pytest.raises(SetupError, match="every weight is 0"):
        made("saas", actions=dict.fromkeys(SCENARIOS["saas"].actions, 0.0))


def test_the_newest_is_the_last() -> None:
    """With a distribution over ages, the last day is what is touched most."""
    scenario = made("event-log", picker=Latest(4, 2.0))
    rng = random.Random(4)
    drawn = collections.Counter(scenario.pick(rng) for _ in range(2000))
    assert [number for number, _ in drawn.most_common()] == [3, 2, 1, 0]


def test_a_batch_is_no_larger_than_a_transaction_may_be() -> None:
    """Large entities are loaded by transactions of fewer than 100 and under 4 MiB."""
    scenario = made("saas", size_bytes=200_000)
    sizes = [len(operation.parts) for operation in scenario.loading()]
    assert sum(sizes) == scenario.loaded_entities
    assert 20 < max(sizes) < 100


@every_one_on_tables
def test_each_scenario_has_a_profile_that_loads_fast(name: str) -> None:
    """A profile, of its name as a rule, asks a question and loads at most 3,000 entities."""
    names = [one for one in without_trace() if shipped(one).scenario == name]
    assert name in names or name.startswith("log")
    profile = shipped(names[0])
    assert profile.question.endswith("?")
    rows = profile.keys.rows_per_partition
    assert isinstance(rows, int)
    values = [field.values for field in profile.fields.values()]
    partitions = values[0] if values else 1
    assert isinstance(partitions, int)
    setting = Setting(
        partitions=partitions,
        rows=rows,
        picker=Uniform(partitions),
        entities=EntityFactory(profile.entity.size_bytes, "run1"),
        actions=profile.actions,
    )
    assert 500 <= SCENARIOS[name](setting).loaded_entities <= 3000
