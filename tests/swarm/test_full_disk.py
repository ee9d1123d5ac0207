"""A disk that fills: what cannot be written is said, and everything else is as in any run.

The limit on the size of a file stands for the full disk: the system itself refuses to write on,
half-way through a file, and no privilege is needed to set it.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.measure.counts.ledger import Ledger
from harness.measure.record.record import RunRecord
from harness.report.export.run_folder import write_run, write_whole
from tests.support.locust_process import LOCUSTFILE, QUICK, LocustProcess, Stress
from tests.support.records import kept

LIMITED = """\
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
globals().update(runpy.run_path({path!r}, run_name=__name__))
"""
NO_REPORT, NO_RECORD = 75_000, 16_000
"""Bytes that a file may have: reports have 90,000 or more, the record of many partitions 54,000."""
_NO_REPORT_OF_FEW = 48_000
"""The same for the report of a record with few partitions."""
MANY = (
    *("--profile", "key-spread", *QUICK, "--set", "fields.key.values=50"),
    *("--set", "keys.rows_per_partition=10"),
)
SMALL = {"junit.xml", "summary.md"}


def ledger(failed: list[dict[str, Any]]) -> Ledger:
    """As much of a ledger as the files of a run need."""
    return cast(Ledger, SimpleNamespace(errors=lambda: (failed, 0), latencies=lambda: ()))


@contextmanager
def no_room(most: int) -> Iterator[None]:
    """No file can be longer than ``most`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def runs(
    stress: Stress, host: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, LocustProcess]:
    """A run that cannot write its report, and one that cannot write its record."""
    folder = tmp_path_factory.mktemp("limited")
    started = {}
    for name, most in (("no report", NO_REPORT), ("no record", NO_RECORD)):
        locustfile = folder / f"locustfile_{most}.py"
        locustfile.write_text(LIMITED.format(most=most, path=str(LOCUSTFILE)), encoding="utf-8")
        started[name] = stress(*MANY, "-H", host, locustfile=locustfile)
    for process in started.values():
        process.wait()
    return started


def complaints(process: LocustProcess) -> list[str]:
    """Which outputs the process said could not be written, in order."""
    assert "Traceback" not in process.said
    lines = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    found = [re.match(r"error: out/\S+/(\S+) cannot be written \(", line) for line in lines]
    return [match[1] for match in found if match is not None]


@pytest.mark.azurite
def test_an_output_that_does_not_fit_is_said_and_changes_nothing_else(
    runs: dict[str, LocustProcess],
) -> None:
    """The record and the other files stand, nothing half, and what would be exit code 0 is 3."""
    process = runs["no report"]
    record = process.record
    assert process.process.returncode == record.exit_code == 3, process.said
    assert process.stdout.endswith("Exit code: 3\n")
    assert complaints(process) == ["report.html"]
    left = {path.name for path in (process.folder / "out" / record.run_id).iterdir()}
    assert left == {*SMALL, "run.json", "latencies.hlog", "partitions.csv"}


@pytest.mark.azurite
def test_a_run_that_leaves_no_record_does_not_pass(runs: dict[str, LocustProcess]) -> None:
    """It is judged, said and cleaned up as any, and what would be exit code 0 is 3."""
    process = runs["no record"]
    assert complaints(process) == ["report.html", "run.json"]
    assert process.process.returncode == 3, process.said
    assert "VERDICT" in process.stdout
    assert "Record: none, because it could not be written" in process.stdout
    assert process.stdout.endswith("Exit code: 3\n")
    (folder,) = (process.folder / "out").iterdir()
    assert {path.name for path in folder.iterdir()} == {*SMALL, "latencies.hlog", "partitions.csv"}


def test_the_record_that_is_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """The disk fills between the two times that a record is written."""
    record = kept()
    said: list[str] = []
    with ExitStack() as stack:

        def clean_up() -> tuple[int, ...]:
            stack.enter_context(no_room(1000))
            return (99,)

        final, path = write_run(
            record,
            str(tmp_path),
            ledger=ledger([{"message": "x" * 2000}]),
            aliases=None,
            clean_up=clean_up,
            complain=said.append,
        )
    sentence = "run.json cannot be written (File too large): the existing record lacks"
    assert [sentence in one for one in said].count(True) == 1
    assert RunRecord.from_json(path.read_bytes()) == record
    assert (final.counts.billable_transactions, final.exit_code) == (99, record.exit_code or 3)


def test_a_file_that_cannot_be_written_keeps_no_other_from_it(tmp_path: Path) -> None:
    """The failed attempts are too many for the disk; what is left of them is no file."""
    record = kept()
    said: list[str] = []
    with no_room(_NO_REPORT_OF_FEW):
        final, path = write_run(
            record,
            str(tmp_path),
            ledger=ledger([{"message": "x" * _NO_REPORT_OF_FEW}]),
            aliases=None,
            clean_up=lambda: (0,),
            complain=said.append,
        )
    assert [sentence.split("/")[-1] for sentence in said if "/" in sentence] == [
        "errors.jsonl cannot be written (File too large)",
        "report.html cannot be written (File too large)",
    ]
    names = {file.name for file in path.parent.iterdir()}
    assert names == {*SMALL, "run.json", "latencies.hlog", "partitions.csv"}
    assert final.exit_code == RunRecord.from_json(path.read_bytes()).exit_code
    assert final.exit_code == (record.exit_code or 3)


def test_an_output_that_cannot_be_made_changes_no_verdict(tmp_path: Path) -> None:
    """A defect in one output is complained of, and the record and the others are as ever."""

    def broken() -> None:
        raise ZeroDivisionError

    record = kept()
    said: list[str] = []
    final, path = write_run(
        record,
        str(tmp_path),
        ledger=cast(Ledger, SimpleNamespace(errors=lambda: ((), 0), latencies=broken)),
        aliases=None,
        clean_up=lambda: (0,),
        complain=said.append,
    )
    (sentence,) = said
    assert sentence.endswith("latencies.hlog cannot be made (ZeroDivisionError())")
    assert final.exit_code == RunRecord.from_json(path.read_bytes()).exit_code == record.exit_code
    names = {file.name for file in path.parent.iterdir()}
    assert names == {*SMALL, "run.json", "partitions.csv", "report.html"}


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    """A report may go to a pipe or a device; a link to a file goes to that file."""
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "full", "x")
    assert Path("/dev/full").is_char_device()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"
