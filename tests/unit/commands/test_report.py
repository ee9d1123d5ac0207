"""``harness report``: which records it finds, what it writes, and what it says of bad input."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from tests.support.records import KEPT


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with the folders of two runs."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(KEPT, tmp_path / name / "run.json")
    return tmp_path


@pytest.mark.parametrize("named", ["one", "one/run.json"])
def test_a_report_stands_beside_its_record(
    runs: Path, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is named by its folder or its record."""
    assert main(["report", str(runs / named)]) == 0
    page = (runs / "one" / "report.html").read_text(encoding="utf-8")
    assert "Throttled: 3,840 of 44,263 attempts" in page
    assert not (runs / "two" / "report.html").exists()
    assert capsys.readouterr().out == f"Report: {runs / 'one' / 'report.html'}\n"


def test_each_of_several_runs_gets_its_own(runs: Path) -> None:
    """A folder of runs is done at once."""
    assert main(["report", str(runs)]) == 0
    assert (runs / "one" / "report.html").exists()
    assert (runs / "two" / "report.html").exists()


def test_a_report_as_text_writes_nothing(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure is printed, as a run does that is asked for all of them."""
    assert main(["report", "--text", str(runs / "one")]) == 0
    assert "entities/s over time" in capsys.readouterr().out
    assert not (runs / "one" / "report.html").exists()
    assert main(["report", "--text", str(runs / "one"), "--out", "x.html"]) == 2


def test_a_report_goes_where_it_is_told(runs: Path) -> None:
    """With --out it is that file, and nothing is written beside the record."""
    path = runs / "mine.html"
    assert main(["report", str(runs / "one"), "--out", str(path)]) == 0
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not (runs / "one" / "report.html").exists()
