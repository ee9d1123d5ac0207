"""``harness compare``: its page, and the trend over many runs."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

from harness.cli import main
from harness.commands.records import recorded_traffic
from harness.measure.record.origin import ReplayPart
from harness.model.partition import EXACT_PARTITIONS
from tests.support.command import Command
from tests.support.golden import GOLDEN
from tests.support.recorded import Application, record
from tests.support.records import altered, kept, with_courses, with_heat
from tests.unit.trace.test_logs import REQUESTS, json_lines


def run(folder: Path, place: int, rate: float, **profile: Any) -> Path:
    """The folder of a run of the kept profile, a day after the one before."""
    record = with_heat(with_courses(kept()), ["p0"], lambda row, column: 9)
    rates = altered(record.account.entities_per_s, mean=rate)
    record = altered(
        record,
        run_id=f"run-{place}",
        started_at=f"2026-11-{place:02d}T05:00:00.000Z",
        profile={**record.profile, **profile},
        account={"entities_per_s": rates},
    )
    path = folder / record.run_id
    path.mkdir()
    (path / "run.json").write_text(record.to_json(), encoding="utf-8")
    return path


def charts(page: Path) -> dict[str, Any]:
    found = re.search(r'id="charts">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert found is not None
    figures: dict[str, Any] = json.loads(found[1])
    return figures


def test_a_page_has_the_runs_over_each_other(tmp_path: Path, command: Command) -> None:
    """A line for each run from the start of its load, and a map of keys for each below it."""
    one, two = run(tmp_path, 1, 900.0), run(tmp_path, 2, 600.0)
    page = tmp_path / "page.html"
    assert f"Page: {page}" in command("compare", one, two, "--html", page)
    made = charts(page)
    assert [line["name"][0] for line in made["chart-entities"]["lines"]] == ["A", "B"]
    assert made["chart-entities"]["lines"][0]["xs"][0] == 0.5
    assert {"chart-throttled", "chart-p99", "chart-heat-0", "chart-heat-1"} <= made.keys()
    assert len({str(chart["span"]) for chart in made.values()}) == 1
    assert "Entities/s: A (900) is better" in page.read_text(encoding="utf-8")
    assert "before serves 50% more than after" in command(
        "compare", one, two, "--name", "before", "--name", "after"
    )


def test_a_comparison_for_programs_stays_one(tmp_path: Path, command: Command) -> None:
    """With --json the standard output is JSON, page or not."""
    folders = [str(run(tmp_path, place, 900.0)) for place in (1, 2)]
    page = str(tmp_path / "page.html")
    assert json.loads(command("compare", *folders, "--json", "--html", page))["exit_code"] == 0


def test_a_trend_goes_by_profile_and_time(tmp_path: Path, command: Command) -> None:
    """Runs in any order, and other files among them, become a table and charts per profile."""
    paths = [run(tmp_path, place, rate) for place, rate in ((3, 800.0), (1, 1000.0), (2, 900.0))]
    paths.append(run(tmp_path, 4, 700.0, name="another"))
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    page = tmp_path / "trend.html"
    said = command("compare", "--trend", *tmp_path.iterdir(), "--html", page)
    assert re.findall(r"^run-\d", said, re.M) == ["run-1", "run-2", "run-3"]
    assert "Entities/s: 1,000 in the first run, 800 in the last (20% less)." in said
    assert "1 profile with a single run, which shows no trend: another." in said
    chart = charts(page)["chart-0-0"]
    [first] = chart["lines"]
    assert first["ys"] == [1000.0, 900.0, 800.0]
    assert chart["names"][0] == "11-01 05:00"
    assert set(first["signs"]) == {"bad"}, "every run failed a condition"


def test_a_trend_says_where_settings_changed(tmp_path: Path, command: Command) -> None:
    """A figure that follows from another setting is no trend."""
    folders = [
        str(run(tmp_path, 1, 900.0)),
        str(run(tmp_path, 2, 600.0, seed=1, session="wire", hosts=["b"])),
    ]
    said = command.words("compare", "--trend", *folders)
    assert re.search(r"run-2 differs from the run before it in hosts: .+; session: .+ wire", said)


def replayed(trace: Path, folder: Path, **found: Any) -> Path:
    """The folder of a replay that counted what is in a trace."""
    record, recording = recorded_traffic(trace)
    part = ReplayPart(trace=trace.name, fingerprint=recording.fingerprint, run_id=record.run_id)
    fields = {"run_id": "again", "watched": None, "session": "wire", "redacted": False}
    replay = altered(record, **fields, replay=part.model_copy(update=found))
    folder.mkdir()
    (folder / "run.json").write_text(replay.to_json(), encoding="utf-8")
    return folder


def test_a_replay_is_held_against_its_trace(tmp_path: Path, command: Command) -> None:
    """No record of the original is needed; another trace is said to be another one."""
    traces = [tmp_path / "app.parquet", tmp_path / "other.parquet"]
    for seed, trace in enumerate(traces):
        entities = +record(trace, Application(random.Random(seed)), 300)
        folder = replayed(trace, tmp_path / f"run-{seed}")
        said = command.words("compare", trace, folder)
        same = f"the same entities in each of {len(entities)} partitions ({entities.total():,})"
        assert f"B replays A: {same}, exactly." in said
        assert "trace: watch (app) on an endpoint that the trace does not name" in said
        assert "300 operations, 0:03; record watched" in said
        assert "B counts whole requests and answers, A their bodies" in said
    folder = replayed(traces[0], tmp_path / "third", run_id="third")
    said = command.words("compare", traces[1], folder)
    assert "B replays third, which is not A:" in said
    assert "partitions have other entities: " in said, said


def test_a_trace_knows_more_partitions_than_a_record(tmp_path: Path, command: Command) -> None:
    """Each partition that a replay counts one by one is found, also if the record folds it."""
    trace = tmp_path / "app.parquet"
    recorded = record(trace, Application(random.Random(3), partitions=2 * EXACT_PARTITIONS), 1500)
    folder = replayed(trace, tmp_path / "run")
    path = folder / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    whole = content["partitions_folded"]
    assert whole is not None
    first = content["partitions"][0]
    rare = sorted(key for key in +recorded if key.startswith("Orders/p"))
    content["partitions"] = [
        {**first, "key": key, "exact": True, "entities": recorded[key]}
        for key in rare[:EXACT_PARTITIONS]
    ]
    path.write_text(json.dumps(content), encoding="utf-8")
    said = command.words("compare", trace, folder)
    same = f"the same entities in each of {EXACT_PARTITIONS} partitions"
    assert f"{same} that both count one by one" in said
    total = f"{recorded.total():,}"
    assert f"All partitions together have {total} entities in A, {total} in B." in said


def test_a_log_is_an_original_too(tmp_path: Path, command: Command) -> None:
    """What a log does not say of its entities is a reason, and unknown keys are left out."""
    path = tmp_path / "PT1H.json"
    path.write_text(json_lines(REQUESTS), encoding="utf-8")
    folder = replayed(path, tmp_path / "replay")
    counted = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    parts = [part for part in counted["partitions"] if "unknown" not in part["key"]]
    parts[0]["entities"] += 5
    counted["partitions"] = parts
    (folder / "run.json").write_text(json.dumps(counted), encoding="utf-8")
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(path, logs)
    for original in (path, logs):
        said = command.words("compare", original, folder, "--name", "log", "--name", "replay")
        assert "replay replays log: 1 of 2 partitions has other entities" in said
        assert "are a lower bound, because how many a query scanned is not known." in said
        assert "2 of these partitions have the same number of operations." in said
        assert "(unknown)" not in said
        assert "on Azure Table storage" in said


def test_old_records_have_a_page_too(tmp_path: Path) -> None:
    """A record without maps and courses has lines and measures."""
    page = tmp_path / "page.html"
    records = [str(GOLDEN / name) for name in ("run-v1.json", "run-v1-search.json")]
    assert main(["compare", *records, "--html", str(page)]) == 0
    assert {"chart-entities", "chart-throttled"} <= charts(page).keys()
