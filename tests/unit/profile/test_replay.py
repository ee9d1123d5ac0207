"""The settings of a replay, and what its trace makes of a profile."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from harness.model.errors import SetupError
from harness.model.services.storage import STORAGE
from harness.profile.build.plan import plan_of
from harness.profile.build.workload import read_trace, require_same_trace, source_of
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import NamedProfile, parse, resolve
from harness.trace.reader import files_of
from harness.trace.replay.source import ReplaySource
from harness.trace.sources import convert, opened, ordered_aliases
from harness.workload.pacing import RecordedOrder
from tests.support.recorded import Application, record
from tests.unit.trace.test_logs import KINDS, REQUESTS, classic

OPERATIONS = 500
LENGTH_S = 4.99
"""Of so many operations, one each 10 ms."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "app.parquet"
    record(made, Application(random.Random(4), ranges=False), OPERATIONS)
    return made


def replay(path: Path, *overrides: str) -> NamedProfile:
    return resolve("replay", [f"replay.trace={path}", *overrides])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["mix.insert=1"], "leave mix out"),
        (["keys.rows_per_partition=3"], "leave keys out"),
        (["fields.key.values=3"], "leave fields out"),
        (["replay.speed=2", "load.operations_per_s=5"], "in the recorded order at that rate"),
        (["load.arrivals=poisson"], "the recording says when operations arrive"),
        (["stage=[{for_s=5, to_users=3}]"], "needs stages of rates"),
        (["replay.speed=0"], "must be 0.01 or more"),
        (["replay.share=row"], "'key' or 'client'"),
    ],
)
def test_what_does_not_go_together_is_said(path: Path, overrides: list[str], said: str) -> None:
    """A replay has no mix and no keys of its own, and one thing sets when operations are due."""
    with pytest.raises(SetupError) as caught:
        replay(path, *overrides)
    assert said in str(caught.value)


@pytest.mark.parametrize("content", [None, b"hello", b""])
def test_a_trace_that_cannot_be_read_is_a_sentence(tmp_path: Path, content: bytes | None) -> None:
    """A missing file, or another one, is named, with what to do."""
    path = tmp_path / "no.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SetupError) as caught:
        read_trace(replay(path))
    assert "no.parquet" in str(caught.value)


def test_the_recorded_instants_are_scaled(path: Path) -> None:
    """The schedule begins with the first operation, however late it is in the trace; the window is
    open until late operations would be dropped.
    """
    named, _ = read_trace(replay(path, "replay.speed=2"))
    profile = named.profile
    load = profile.load_model
    pacer = load.pacer(STORAGE, random.Random(1))
    assert isinstance(pacer, RecordedOrder)
    due = list(source_of(profile, run_id="r", worker=0).due())  # type: ignore[attr-defined]
    assert len(due) == OPERATIONS
    assert [pacer.next(0.0, one.place) for one in due[:3]] == pytest.approx([0.0, 0.005, 0.01])
    assert load.expected_window_s == pytest.approx(LENGTH_S / 2, abs=0.01)
    assert load.window_s == 3 + profile.load.give_up_after_s
    assert load.starts_with_window
    shorter, _ = read_trace(replay(path, "load.run_time_s=2"))
    assert shorter.profile.load_model.window_s == 2


@pytest.mark.parametrize("unit", ["operations", "entities"])
def test_the_recorded_order_has_a_rate(path: Path, unit: str) -> None:
    """Each operation is due when as much is due as comes before it."""
    named, preparation = read_trace(replay(path, f"load.{unit}_per_s=100.0"))
    profile = named.profile
    schedule = profile.load_model.schedule
    pacer = profile.load_model.pacer(STORAGE, random.Random(1))
    source = source_of(profile, run_id="r", worker=0, preparation=preparation)
    before = 0
    for due in source.due():  # type: ignore[attr-defined]
        assert due.place == before
        assert schedule is not None
        assert pacer.next(0.0, due.place) == schedule.at(before)
        before += 1 if unit == "operations" else source.operation(due.row).entities_asked  # type: ignore[attr-defined]
    assert pacer.behind(1e9, 0) == before


def test_the_plan_is_exact(path: Path) -> None:
    """Operations, requests and rows are counted, not estimated."""
    named, preparation = read_trace(replay(path))
    plan = plan_of(named.profile, STORAGE, observe(named.profile, preparation=preparation))
    assert preparation is not None
    assert plan.operations == OPERATIONS
    assert sum(kind.share * OPERATIONS for kind in plan.kinds) == pytest.approx(OPERATIONS)
    assert plan.loaded_entities == preparation.part.loaded_entities > 0
    assert sorted(plan.tables) == ["Index", "Orders"]
    source = source_of(named.profile, run_id="r", worker=0, preparation=preparation)
    assert sum(1 for _ in source.loading()) == plan.loading_requests


@pytest.mark.parametrize("tables", [("Orders",), ("Orders", "Index")])
def test_one_recorded_table_can_go_into_an_existing_one(
    tmp_path: Path, tables: tuple[str, ...]
) -> None:
    """Rows and operations name no table then; with several tables the sentence says what to do."""
    path = tmp_path / "app.parquet"
    entities = record(path, Application(random.Random(4), tables=tables), OPERATIONS)
    scheme = tmp_path / "all.toml"
    scheme.write_text('table = "Orders"\n[keys]\npartition_key = "all"\n', encoding="utf-8")
    if len(tables) > 1:
        with pytest.raises(SetupError, match=r"2 tables .* leave --table out"):
            read_trace(replay(path), into_one_table=True)
        return
    for overrides, keys in (((), {name.partition("/")[2] for name in entities}), ((), {"all"})):
        found = (f"replay.keys={scheme}",) if keys == {"all"} else overrides
        named, preparation = read_trace(replay(path, *found), into_one_table=True)
        source = source_of(named.profile, run_id="r", worker=0, preparation=preparation)
        assert source.tables == ("",)
        assert isinstance(source, ReplaySource)
        operations = [*source.loading(), *(source.next_task(random.Random(1)) for _ in range(50))]
        assert {operation.table for operation in operations} == {""}
        assert {operation.partition_key for operation in operations} <= {*keys, "/"}
        assert set(source.partitions()) <= {*keys, "/"}


def test_a_worker_compares_the_trace(path: Path) -> None:
    """The profile goes to a worker as plain values; another file there is refused."""
    named, _ = read_trace(replay(path))
    sent = named.profile.model_dump(mode="json", exclude_unset=True)
    arrived = parse(sent, source="the master's")
    assert arrived == named.profile
    require_same_trace(arrived)
    with files_of(path)[-1].open("ab") as file:
        file.write(b"more")
    with pytest.raises(SetupError, match="differs from the master's"):
        require_same_trace(arrived)


@pytest.mark.parametrize("kept", ["order", "nothing"])
def test_aliases_without_order_leave_ranges_out(tmp_path: Path, kept: str) -> None:
    """Ranks replay as keys do; of other aliases, queries of ranges are counted and left out."""
    path, redacted = tmp_path / "app.parquet", tmp_path / "redacted.parquet"
    record(path, Application(random.Random(4)), OPERATIONS)
    if kept == "order":
        with opened(path) as trace:
            convert(path, redacted, ordered_aliases(trace), "order")
    else:
        convert(path, redacted, lambda key: f"key-{hash(key) & 0xFFFF}", "nothing")
    _, preparation = read_trace(replay(redacted))
    assert preparation is not None
    left_out = preparation.part.left_out
    if kept == "order":
        assert left_out == ()
    else:
        assert "do not keep the order" in left_out[0].reason
        assert preparation.part.operations + left_out[0].operations == OPERATIONS


def test_operations_without_keys_are_left_out(tmp_path: Path) -> None:
    """A log lacks the keys of inserts and transactions: they are counted, with the reason."""
    path = tmp_path / "log.txt"
    path.write_text(classic("2.0")(REQUESTS), encoding="utf-8")
    _, preparation = read_trace(replay(path))
    assert preparation is not None
    (left_out,) = preparation.part.left_out
    assert (left_out.operations, preparation.part.operations) == (2, len(KINDS) - 2)
    said = preparation.part.sentences()[0]
    assert said == ("2 operations of the trace left out: the trace does not hold their keys.")


def test_a_look_that_is_stopped_leaves_no_temporary_trace(tmp_path: Path) -> None:
    """A log is read as a trace, which is deleted when the look at a pause is ended."""
    path = tmp_path / "log.txt"
    path.write_text(classic("2.0")(REQUESTS), encoding="utf-8")
    named, preparation = read_trace(replay(path))

    def traces() -> set[Path]:
        return set(Path(tempfile.gettempdir()).glob("table-trace-*"))

    before = traces()
    during: set[Path] = set()

    def stop() -> None:
        during.update(traces() - before)
        raise InterruptedError

    # What is caught keeps all that the look left open. Other processes make such folders too.
    with pytest.raises(InterruptedError) as caught:
        observe(named.profile, preparation=preparation, pause=stop)
    assert during - traces(), caught.traceback


def test_a_look_that_fails_before_its_first_operation_leaves_none_either(tmp_path: Path) -> None:
    """What is wrong with the partitions is found when the trace is open."""
    path = tmp_path / "log.txt"
    path.write_text(classic("2.0")(REQUESTS), encoding="utf-8")
    named, _ = read_trace(replay(path))
    with pytest.raises(SetupError) as caught:
        observe(named.profile, preparation=None)
    sources = (entry.frame.f_locals.get("source") for entry in caught.traceback)
    [opened, *_] = [source for source in sources if isinstance(source, ReplaySource)]
    assert not opened._trace.path.exists()
