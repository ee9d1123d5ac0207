"""What a run says while it goes on: its four steps, its loading, and a line every few seconds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.report.terminal.live import (
    Live,
    live_line,
    progress_line,
    step,
    step_begins,
    step_taken,
)
from harness.report.terminal.page import FULL, PLAIN
from harness.workload.load.search import Limit, Step, StepOutcome, TakenStep

OPEN = Live(
    elapsed_s=75.4,
    step=None,
    achieved_per_s=1000.0,
    wanted_per_s=1500.0,
    hottest="p0",
    hottest_per_s=1000.0,
    target_per_s=2000.0,
    throttled_ratio=0.0125,
    service_p99_s=0.00404,
    response_p99_s=0.8,
    waiting=120,
    dropped=3,
    in_flight=18,
    users=20,
    workers=2,
    cpu_percent=45.2,
)
CLOSED = {"response_p99_s": None, "waiting": None, "dropped": 0}


def said(**parts: Any) -> str:
    """The line of an open load with other parts."""
    return live_line(dataclasses.replace(OPEN, **parts))


def test_live_line_of_an_open_load() -> None:
    """Time, achieved of wanted, of target, throttled, p99 of both latencies, backlog, workers."""
    assert said() == (
        " 1:15 | 1,000 of 1,500 entities/s | p0 50% of target | throttled 1.2% | "
        "p99 4.04, response 800 ms | 120 waiting, 3 dropped | 2 workers"
    )


def test_live_line_behind_a_gateway() -> None:
    """The hottest partition is held against the limit that refuses it, not against the target."""
    assert "| p0 400% of its limit of 250 |" in said(limit_per_s=250.0)


def test_live_line_in_request_units() -> None:
    """Against Cosmos DB the hottest partition is held against its RU/s."""
    line = said(ru_per_s=5200.0, hottest_per_s=4000.0, target_per_s=6000.0)
    assert "1,000 of 1,500 entities/s, 5,200 RU/s | p0 67% of target |" in line


def test_live_line_of_a_closed_loop() -> None:
    """Nothing is due, so that nothing waits and there is no response latency."""
    assert said(**CLOSED, throttled_ratio=0.0) == (
        " 1:15 | 1,000 of 1,500 entities/s | p0 50% of target | throttled 0% | p99 4.04 ms | "
        "18 in flight of 20 users | 2 workers"
    )


def test_live_line_is_silent_of_what_is_not_there() -> None:
    """An open load that is kept up with drops nothing and is not throttled."""
    line = said(throttled_ratio=0.0, waiting=0, dropped=0, response_p99_s=0.0159)
    assert line.endswith(" | throttled 0% | p99 4.04, response 15.9 ms | 0 waiting | 2 workers")
    assert len(line) <= 120


def test_live_line_of_a_search_names_its_step() -> None:
    """In a search the wanted rate is that of a step."""
    assert " | step 3: 1,000 of 1,500 entities/s | " in said(step=3)


def test_live_line_says_what_is_known() -> None:
    """Before anything was measured, and without a wanted rate, the line is short."""
    assert said(
        **CLOSED,
        wanted_per_s=None,
        hottest=None,
        throttled_ratio=0.0,
        service_p99_s=None,
        workers=1,
    ) == (" 1:15 | 1,000 entities/s | throttled 0% | 18 in flight of 20 users | 1 worker")


def test_live_line_without_a_target_shows_the_hottest_rate() -> None:
    """Where no target holds there is no share of one."""
    assert " | p0 1,000/s | " in said(target_per_s=None)


@pytest.mark.parametrize(("cpu_percent", "shown"), [(89.9, False), (97.0, True)])
def test_live_line_warns_of_a_busy_generator(cpu_percent: float, shown: bool) -> None:
    """CPU is worth a word where a worker has no time left."""
    assert said(cpu_percent=cpu_percent).endswith("2 workers, CPU 97%") is shown


@given(st.text(st.characters(codec=None), max_size=2000), st.booleans())
def test_live_line_is_one_line_whatever_the_key_is(key: str, ascii_only: bool) -> None:
    """A long or strange key keeps its line short, and sends nothing to the terminal."""
    line = live_line(dataclasses.replace(OPEN, hottest=key), ascii_only=ascii_only)
    assert line.isprintable()
    assert line.isascii() or not ascii_only
    assert cell_len(line) < 160


def taken(failed: Limit | None, *, confirming: bool = False, p99_ms: float | None = 12.5) -> str:
    """What is said of a step that came to this."""
    outcome = StepOutcome(
        wanted_per_s=450.0,
        achieved_per_s=312.4,
        throttled_ratio=0.301,
        p99_ms=p99_ms,
        client_limited=False,
        endpoint_limited=False,
        billable_transactions=1204,
        seconds=10.0,
    )
    made = Step(rate_per_s=450.0, settle_s=3.0, hold_s=10.0, confirming=confirming)
    return step_taken(4, TakenStep(step=made, outcome=outcome, failed=failed))


def test_a_step_of_a_search_is_announced() -> None:
    """Its number, its rate, and how long it takes; and what it is for."""
    first = Step(rate_per_s=200.0, settle_s=3.0, hold_s=10.0, confirming=False)
    assert step_begins(1, first) == (
        "step 1: 200 entities/s, 3 s to settle, then measured for 10 s"
    )
    confirming = dataclasses.replace(first, confirming=True)
    assert step_begins(9, confirming).endswith("to confirm the rate")


def test_what_came_of_a_step_is_said() -> None:
    """Whether it passed or why not, with its figures and its price."""
    assert taken(Limit.THROTTLED) == (
        "step 4: failed, throttled: 312 of 450 entities/s, 30% throttled, p99 12.5 ms, "
        "1,204 billable transactions"
    )
    assert taken(Limit.CLIENT).startswith("step 4: failed, generator: ")
    assert taken(None).startswith("step 4: passed: ")
    assert taken(None, confirming=True, p99_ms=None).startswith("step 4: confirmed: ")
    assert "p99 n/a" in taken(None, p99_ms=None)


@pytest.mark.parametrize(
    ("done", "elapsed_s", "expected"),
    [
        (0, 0.0, "0%  0 of 2,000  0/s"),
        (500, 0.5, "25%  500 of 2,000  1,000/s  0:02 left"),
        (2000, 62.0, "100%  2,000 of 2,000  32/s  done in 1:02"),
    ],
)
def test_progress_line(done: int, elapsed_s: float, expected: str) -> None:
    """Progress shows share, count, rate and time left; without glyphs there is no bar."""
    assert progress_line(done, 2000, elapsed_s).strip() == expected


@given(st.integers(0, 10**7), st.floats(0, 10**5), st.booleans())
def test_progress_lines_are_of_one_width(done: int, elapsed_s: float, ascii_only: bool) -> None:
    """A line covers the one it is written over, whatever it says."""
    line = progress_line(done, 10**7, elapsed_s, glyphs=PLAIN if ascii_only else FULL)
    assert len(line) == 79
    assert line.isascii() or not ascii_only


def test_nothing_to_load_is_done() -> None:
    """Loading of no entities is complete at once."""
    assert "100%" in progress_line(0, 0, 0.0)


def test_steps_are_those_of_the_documented_procedure() -> None:
    """The four steps are numbered and named, with what is special to the run."""
    assert step(1, "stress1") == "[1/4] Create a test table: stress1"
    assert [step(n)[:6] for n in (1, 2, 3, 4)] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]


def test_a_silent_endpoint_is_told_while_loading() -> None:
    """Where nothing was answered for some seconds, the line says so in place of the time left."""
    assert "left" in progress_line(500, 2000, 20.0, 4.0)
    assert "no answer for 0:07" in progress_line(500, 2000, 20.0, 7.0)
