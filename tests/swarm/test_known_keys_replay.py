"""What `harness advise` calculates of known applications is what real replays of them meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.commands.advise import verify
from harness.trace.advise.advise import Question, advise
from harness.trace.sources import opened
from tests.support.known_keys import KNOWN, LIMITS, record_known

pytestmark = [pytest.mark.azurite, pytest.mark.long, pytest.mark.serial, pytest.mark.apart]

FASTER = 2.0
"""Time passes so much faster in a replay, and limits are as much higher."""
POINTS, RELATIVE = 0.02, 0.1
TRIES = 3
NAMES = ("hot row", "monthly report", "social feed")
"""No key helps; keys in buckets; keys of queries."""
MORE = (
    *("log by day", "readings by device", "tied by transactions"),
    *("even load", "one of three", "a property"),
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.thorough) for name in MORE)]
)
def test_a_replay_meets_what_was_calculated(name: str, tmp_path: Path) -> None:
    """Of today's keys and of the recommended ones: the share of throttled requests.

    Bounds: two replays of 15 s. What is sent late, because others need the processor, comes in
    bursts, and is replayed again.
    """
    application = next(one for one in KNOWN if one.name == name)
    path, rate = tmp_path / "app.parquet", application.rate
    record_known(application, path)
    with opened(path, rows=True) as trace:
        found = advise(trace, Question(limits=LIMITS, limits_name="", rate=rate), tmp_path, name="")
        schemes: list[Path | None] = [None]
        for proposal in found.tables[0].proposals[:1]:
            schemes.append(tmp_path / "keys.toml")
            (tmp_path / "keys.toml").write_text(proposal.scheme)
        for number in range(TRIES):
            folder = tmp_path / str(number)
            folder.mkdir()
            met = verify(trace, path, schemes, LIMITS, rate, FASTER * rate, folder)
            figures = [one.throttled for one in met]
            print(name, figures)
            if all(
                measured == pytest.approx(calculated, abs=POINTS, rel=RELATIVE)
                for calculated, measured in figures
            ):
                return
    raise AssertionError(figures)
