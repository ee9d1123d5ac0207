"""What a run says and leaves: lines while it goes on, files for CI, the page of a GitHub job."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from harness.commands.schema import schema_of
from tests.support.locust_process import QUICK, LocustProcess, Stress

pytestmark = pytest.mark.azurite

OPEN = (
    *(*QUICK, "--set", "load.max_entities_per_s=100"),
    *("--set", "load.entities_per_s=100", "--set", "load.run_time_s=7"),
)
FILES = ["junit.xml", "latencies.hlog", "partitions.csv", "report.html", "run.json", "summary.md"]
FULL = ("--summary", "full")
BEFORE = "what another step wrote\n"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a GitHub job's page; a step has written to it."""
    path = tmp_path_factory.mktemp("page") / "step_summary.md"
    path.write_text(BEFORE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(stress: Stress, host: str, page: Path) -> dict[str, LocustProcess]:
    """An open load in a GitHub job, and one whose page cannot be written to."""
    started = {
        "open": stress(*OPEN, *FULL, "-H", host, environ={"GITHUB_STEP_SUMMARY": str(page)}),
        "json": stress(*QUICK, "--summary", "json", "--stream", "s.jsonl", "-H", host),
        "no page": stress(*QUICK, "-H", host, environ={"GITHUB_STEP_SUMMARY": str(page.parent)}),
    }
    for process in started.values():
        process.wait()
    return started


@pytest.fixture(scope="module")
def folder(runs: dict[str, LocustProcess]) -> Path:
    """What the open load left."""
    process = runs["open"]
    return process.folder / "out" / process.record.run_id


def test_a_run_leaves_its_files_and_names_them(
    runs: dict[str, LocustProcess], folder: Path
) -> None:
    """The folder of a run holds its record and what other programs read; stdout names it."""
    assert sorted(path.name for path in folder.iterdir()) == FILES
    stdout = runs["open"].stdout
    assert f"Record: out/{folder.name}/run.json" in stdout
    assert f"Report: out/{folder.name}/report.html" in stdout
    assert "Other files: junit.xml, latencies.hlog, partitions.csv, summary.md" in stdout


def test_the_page_of_the_job_has_the_summary(
    runs: dict[str, LocustProcess], folder: Path, page: Path
) -> None:
    """The summary is appended to what other steps wrote; it has the final price."""
    text = page.read_text(encoding="utf-8")
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert text == f"{BEFORE}{summary}\n"
    billed = runs["open"].record.counts.billable_transactions
    assert f"{billed:,} transactions" in summary


def test_a_page_that_cannot_be_written_to_fails_no_run(runs: dict[str, LocustProcess]) -> None:
    """It is complained about; files and exit code are those of any run."""
    process = runs["no page"]
    assert "error: GITHUB_STEP_SUMMARY cannot be written to" in process.stderr
    assert process.process.returncode == 0, process.said
    left = process.folder / "out" / process.record.run_id
    assert sorted(path.name for path in left.iterdir()) == FILES
    assert "Traceback" not in process.said


def test_an_open_load_says_how_it_goes(runs: dict[str, LocustProcess]) -> None:
    """Every few seconds a line: achieved of wanted, of target, both latencies, the backlog."""
    lines = re.findall(
        r"^ 0:\d\d \| [\d,.]+ of [\d,.]+ entities/s \| p0 [\d.]+% of target \| throttled 0% \| "
        r"p99 [\d,.]+, response [\d,.]+ ms \| [\d,]+ waiting(?:, [\d,]+ dropped)? \| 1 worker.*$",
        runs["open"].stdout,
        re.MULTILINE,
    )
    assert lines, runs["open"].stdout


def test_a_closed_loop_says_how_it_goes(runs: dict[str, LocustProcess]) -> None:
    """Nothing waits where nothing is due: the line has the users that wait for an answer."""
    lines = re.findall(
        r"^ 0:\d\d \| [\d,.]+ of 60\.0 entities/s \| p0 [\d.]+% of target \| throttled 0% \| "
        r"p99 [\d,.]+ ms \| \d in flight of 4 users \| 1 worker.*$",
        runs["no page"].stdout,
        re.MULTILINE,
    )
    assert lines, runs["no page"].stdout


def test_a_result_for_scripts_is_alone_on_standard_output(runs: dict[str, LocustProcess]) -> None:
    """One object says the verdict, the conditions, and where the record is."""
    process = runs["json"]
    result = json.loads(process.stdout)
    jsonschema.validate(result, schema_of("run"))
    assert result["verdict"] == process.record.verdict.result
    assert result["hottest"]["partition"] == "p0"
    assert result["exit_code"] == process.wait()
    assert (process.folder / result["record"]).is_file()
    assert "[4/4]" in process.stderr


def test_reasons_stand_below_the_verdict(runs: dict[str, LocustProcess]) -> None:
    """The report ends with what was seen, in the words of the record."""
    process = runs["open"]
    flowing = " ".join(process.stdout.split())
    below = flowing[flowing.index("VERDICT: ") :]
    assert process.record.verdict.evidence
    for sentence in process.record.verdict.evidence:
        assert sentence in below


def test_a_run_prints_one_screen(runs: dict[str, LocustProcess]) -> None:
    """Without tables of Locust's, with the command that prints every figure."""
    process = runs["no page"]
    assert len(process.stdout.splitlines()) <= 40
    assert "Aggregated" not in process.stdout
    folder = process.folder / "out" / process.record.run_id
    assert f"harness report --text out/{folder.name}\n" in process.stdout
    flowing = " ".join(re.sub("[│╭╮╰╯─]", " ", process.stdout).split())
    assert process.record.verdict.sentence in flowing


def test_the_stream_has_the_seconds_of_the_record(runs: dict[str, LocustProcess]) -> None:
    """A line for each, as the series of the record has it; it began while the run went on."""
    process = runs["json"]
    lines = (process.folder / "s.jsonl").read_text(encoding="ascii").splitlines()
    seconds = {second["t"]: second for second in map(json.loads, lines)}
    for second in seconds.values():
        jsonschema.validate(second, schema_of("stream"))
    series = [part.model_dump(mode="json") for part in process.record.series]
    assert [seconds[part["t"]] for part in series] == series
