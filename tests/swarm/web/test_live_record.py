"""What pages are shown of a run: one record a second for everybody, and then the run's own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import gevent
import orjson
import pytest

from harness.measure.record.record import RunRecord
from harness.model.services.storage import AZURITE
from harness.report.web.document import FRESH_FOR_S, State
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import Loaded, Phase
from harness.swarm.web.pages import Showing
from tests.support.records import kept

RECORD = kept()


class Plan:
    profile_name = "single-partition"
    run_id = RECORD.run_id
    kind = AZURITE


class OneRun:
    """As much of a run as pages read; it counts how often its record is made."""

    def __init__(self, phase: Phase, takes_s: float = 0.0) -> None:
        self.plan = Plan()
        self.phase = phase
        self.loaded = Loaded()
        if phase is Phase.LOADING:
            self.loaded = Loaded(entities=40, total=100, seconds=2.0)
        self.epoch_s = 1_000.0
        self.window: tuple[int, int] | None = (1_003, 1_033)
        self.ended_by = ""
        self.problem = ""
        self.takes_s = takes_s
        self.made = 0
        self.now_s = 1_012.0

    def clock(self) -> float:
        return self.now_s

    def so_far(self, now_s: float) -> RunRecord:
        self.made += 1
        gevent.sleep(self.takes_s)
        return RECORD


class Leader:
    """As much of a conductor."""

    def __init__(self, run: OneRun | None) -> None:
        self.run = run
        self.record: RunRecord | None = None

    def record_so_far(self, now_s: float) -> RunRecord:
        assert self.run is not None
        return self.run.so_far(now_s)


def showing(leader: Leader, out: Path | None = None) -> Showing:
    return Showing(cast(Conductor, leader), out or "nowhere")


def data(of: Showing) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(of.now().data)
    return content


def test_before_the_first_run_there_is_nothing() -> None:
    """Page and tab say so, in so many words."""
    nothing = showing(Leader(None))
    assert data(nothing) == {
        "state": "none",
        "sentence": "No run yet.",
        "run_id": None,
        "parts": {},
        "charts": {},
    }
    tabs = nothing.now().tabs
    assert tabs == {
        "verdict": [{"what": "Run", "said": "No run yet."}],
        "partitions": [{"partition": "No run yet."}],
    }


@pytest.mark.parametrize(
    ("phase", "state", "sentence"),
    [
        (Phase.PREPARED, State.PREPARING, "creating the table"),
        (Phase.LOADING, State.PREPARING, "loading the table, 40% 40 of 100"),
        (Phase.RAMPING, State.RUNNING, "under load for 0:12"),
        (Phase.MEASURING, State.RUNNING, "measured 9 of 30 s"),
        (Phase.ENDING, State.RUNNING, "ending after Stop, judging the results"),
    ],
)
def test_each_phase_has_its_state_and_sentence(phase: Phase, state: State, sentence: str) -> None:
    """A reader knows how far the run has come."""
    run = OneRun(phase)
    run.ended_by = "Stop"
    shown = showing(Leader(run)).now()
    assert shown.state is state
    assert sentence in shown.sentence
    assert shown.run_id == RECORD.run_id
    assert (shown.record is None) == (state is State.PREPARING)


def test_before_the_window_opens_nothing_is_measured() -> None:
    """While users come the sentence says that nothing counts yet."""
    run = OneRun(Phase.RAMPING)
    run.window = None
    assert "nothing is measured yet" in showing(Leader(run)).now().sentence


def test_many_browsers_at_once_are_one_record() -> None:
    """Thirty ask while a record is being made, which gives way to them: it is made once."""
    run = OneRun(Phase.MEASURING, takes_s=0.2)
    shared = showing(Leader(run))
    asking = [gevent.spawn(lambda: shared.now().data) for _ in range(30)]
    gevent.joinall(asking, timeout=30, raise_error=True)
    assert run.made == 1
    assert len({browser.value for browser in asking}) == 1


def test_page_and_tab_share_a_record() -> None:
    """Both are made of the same moment."""
    run = OneRun(Phase.MEASURING)
    shared = showing(Leader(run))
    tabs, content = shared.now().tabs, data(shared)
    assert run.made == 1
    assert content["sentence"] == tabs["verdict"][0]["said"]


def test_a_live_record_is_made_again_after_a_second() -> None:
    """A page that asks all the time sees the run go on, and makes no more than that of it."""
    run = OneRun(Phase.MEASURING)
    shared = showing(Leader(run))
    began_s = time.monotonic()
    while run.made < 3:
        assert time.monotonic() < began_s + 30
        shared.now()
        gevent.sleep(0.01)
    assert time.monotonic() - began_s >= 2 * FRESH_FOR_S


def test_a_record_that_takes_long_is_made_more_rarely() -> None:
    """The process may send load too: most of its time is left for that."""
    run = OneRun(Phase.MEASURING, takes_s=1.0)
    shared = showing(Leader(run))
    shared.now()
    gevent.sleep(FRESH_FOR_S + 0.2)
    shared.now()
    assert run.made == 1


def test_the_end_is_shown_at_once_and_kept() -> None:
    """The record is the run's own, and nothing is made any more."""
    run = OneRun(Phase.MEASURING)
    leader = Leader(run)
    shared = showing(leader)
    assert shared.now().state is State.RUNNING
    run.phase, leader.record = Phase.DONE, RECORD
    ended = shared.now()
    assert ended.record is RECORD
    assert ended.sentence == "single-partition: ended by run time at 08:54:15 UTC."
    gevent.sleep(FRESH_FOR_S + 0.2)
    assert shared.now() is ended
    assert run.made == 1


@pytest.mark.parametrize("problem", ["", "the table cannot be made"])
def test_a_run_that_never_began_says_why(problem: str) -> None:
    """Loading failed or was stopped: there is no record, and no page full of nothing."""
    run = OneRun(Phase.DONE)
    run.problem = problem
    shown = showing(Leader(run)).now()
    assert shown.state is State.ENDED
    assert shown.record is None
    assert (problem or "the terminal shows the reason") in shown.sentence


def test_another_run_is_shown_at_once() -> None:
    """What was kept of the first is gone as soon as a second is prepared."""
    leader = Leader(OneRun(Phase.DONE))
    leader.record = RECORD
    shared = showing(leader)
    assert shared.now().record is RECORD
    leader.run = OneRun(Phase.PREPARED)
    assert shared.now().record is None


def test_only_files_that_are_there_are_offered(tmp_path: Path) -> None:
    """Links are made for what the run left, and only once it has."""
    leader = Leader(OneRun(Phase.DONE))
    leader.record = RECORD
    folder = tmp_path / RECORD.run_id
    folder.mkdir()
    for name in ("run.json", "summary.md", "secret.txt"):
        (folder / name).write_text("x", encoding="utf-8")
    links = data(showing(leader, tmp_path))["parts"]["downloads"]
    assert f'href="runs/{RECORD.run_id}/run.json"' in links
    assert "summary.md" in links
    assert "report.html" not in links
    assert "secret" not in links
