"""The rows that a replay loads make its operations count what they counted in the recording."""

from __future__ import annotations

import collections
import dataclasses
import math
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.origin import ReplayPart
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.trace.reader import Trace
from harness.trace.replay.added_rows import Wanted, fill
from harness.trace.replay.preparation import Preparation
from harness.trace.replay.source import ReplaySource
from tests.support.examples import examples
from tests.support.memory_tables import MemoryTables
from tests.support.recorded import Application, executed, record
from tests.support.results import done
from tests.support.traced import STARTED_S, trace_of


def replayed(path: Path) -> tuple[ReplayPart, collections.Counter[str]]:
    """What was found in a trace, and the entities of its replay by partition."""
    preparation = Preparation(Trace(path), path.name, "", entity_bytes=500)
    source = ReplaySource(path, preparation.part, "run", preparation=preparation)
    tables = MemoryTables()
    loaded = 0
    for operation in source.loading():
        assert tables.execute(operation).outcome.succeeded
        loaded += len(operation.parts) or 1
    assert loaded == source.loaded_entities
    entities: collections.Counter[str] = collections.Counter()
    for due in source.due():
        result = executed(tables, source.operation(due.row))
        entities[result.operation.partition] += result.entities
    source.close()
    return preparation.part, entities


@examples(150)
@given(seed=st.integers(0, 10**9), operations=st.integers(1, 120), ranges=st.booleans())
def test_a_replay_without_inexact_queries_is_exact(
    seed: int, operations: int, ranges: bool
) -> None:
    """Also with ranges, tops and table scans; rows and whole partitions alone are never inexact."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.parquet"
        recorded = record(path, Application(random.Random(seed), ranges=ranges), operations)
        part, entities = replayed(path)
        assert ranges or part.inexact == 0
        if not part.inexact:
            assert +entities == +recorded
            assert part.entities == recorded.total()


@pytest.mark.parametrize(
    ("key", "filtered", "top", "estimated", "assumed"),
    [
        (WHOLE_TABLE, True, None, False, True),
        ("p", True, 4, False, True),
        ("p", True, None, True, True),
        ("p", True, None, False, False),
        (WHOLE_TABLE, False, None, False, False),
    ],
)
def test_counts_that_no_answer_shows_are_not_called_exact(
    tmp_path: Path, key: str, filtered: bool, top: int | None, estimated: bool, assumed: bool
) -> None:
    """A filter over several partitions or with a reached `$top`, or one estimated when recorded."""
    query = Operation(
        kind=Kind.QUERY, partition_key=key, top=top, filter="Total gt 5" if filtered else None
    )
    found = done(query, STARTED_S, entities=9 if filtered else 4, entities_returned=4)
    path = tmp_path / "app.parquet"
    trace = trace_of(path, [dataclasses.replace(found, estimated=estimated)])
    preparation = Preparation(trace, path.name, "", entity_bytes=500)
    part = preparation.part
    assert (part.assumed, part.assumed_entities) == ((1, 9) if assumed else (0, 0))
    source = ReplaySource(path, part, "run", preparation=preparation)
    [due] = source.due()
    assert source.operation(due.row).key_range.exact is not (assumed or estimated)
    source.close()


def test_an_upsert_of_which_nothing_is_known_makes_a_new_row(tmp_path: Path) -> None:
    """A query that finds no other row before or after it shows that none was there."""
    upsert = Operation(kind=Kind.UPSERT_MERGE, partition_key="p", row_key="r")
    query = Operation(kind=Kind.QUERY, partition_key="p")
    path = tmp_path / "app.parquet"
    trace_of(
        path,
        (
            done(upsert, STARTED_S),
            done(query, STARTED_S + 1, entities=1, entities_returned=1),
            done(dataclasses.replace(upsert, row_key="s"), STARTED_S + 2),
        ),
    )
    part, entities = replayed(path)
    assert part.loaded_entities == 0
    assert entities == {"p": 3}


def test_a_late_replay_asks_for_no_lower_rate(tmp_path: Path) -> None:
    """The time in which late operations are sent, behind the end of the schedule, does not lower
    the rate that was asked for; a window that ends with the schedule has all of it.
    """
    path = tmp_path / "app.parquet"
    record(path, Application(random.Random(1)), 600)
    preparation = Preparation(Trace(path), path.name, "", entity_bytes=500)
    part = preparation.part
    whole_s = math.ceil(part.seconds / 2 + 0.4)
    assert whole_s > 1
    asked = preparation.asked_per_s(-0.4, whole_s - 0.4, 2.0)
    assert asked == sum(preparation.entities_by_s) / whole_s
    assert preparation.asked_per_s(-0.4, 10 * whole_s - 0.4, 2.0) == asked
    assert preparation.asked_per_s(whole_s, whole_s + 1, 2.0) == 0


def test_many_ranges_beside_each_other_find_their_rows() -> None:
    """As those of an application that reads one order after the other."""
    wanted = [Wanted(2 * one + 1, 2 * one + 2, 3, exact=False) for one in range(500)]
    assert fill([0] * 1001, wanted) == [0, 3] * 500 + [0]
