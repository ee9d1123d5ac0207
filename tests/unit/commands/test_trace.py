"""``harness trace`` shows what is in a trace, and converts it."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len

from harness.cli import main
from harness.model.operation import KeyRange, Kind, Operation, transaction
from harness.model.outcome import Attempt, Result, Scope
from harness.trace.head import TraceHead
from harness.trace.reader import Trace
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from tests.support.command import Command
from tests.support.results import done
from tests.support.traced import content_of, trace_of

START = 1_700_000_000
OK = Attempt(status=204, sent_s=START, latency_s=0.01)
BUSY = Attempt(
    status=503,
    sent_s=START,
    latency_s=0.01,
    error_code="ServerBusy",
    scope=Scope.PARTITION,
)


def result(
    operation: Operation, at_s: float, attempts: tuple[Attempt, ...] = (OK,), entities: int = 1
) -> Result:
    return done(operation, START + at_s, attempts=attempts, entities=entities, bytes_sent=400)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute and a half of a hot partition among 300 others."""
    path = tmp_path_factory.mktemp("trace") / "app.parquet"
    recorder = Recorder()
    head = TraceHead(started_ms=START * 1000, source="watch", name="shop", account="contoso")
    for second in range(90):
        for number in range(20 if second == 45 else 2):
            hot = Operation(kind=Kind.UPSERT_MERGE, partition_key="hot", row_key=f"r{number % 2}")
            recorder.add(result(hot, second, (BUSY, OK) if second == 45 else (OK,)), "app/1.0")
    for number in range(300):
        recorder.add(
            result(Operation(kind=Kind.INSERT, partition_key=f"p{number:03}", row_key="x"), 5),
            "app/1.0",
        )
    parts = tuple(
        Operation(kind=Kind.INSERT, partition_key="batch", row_key=f"b{number}")
        for number in range(10)
    )
    recorder.add(result(transaction(parts), 60, entities=10), "job/2.0")
    query = Operation(kind=Kind.QUERY, partition_key="hot", key_range=KeyRange(row_from="r0"))
    recorder.add(result(query, 61, entities=7), "job/2.0")
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))
    return path


def test_what_is_in_a_trace(recorded: Path, command: Command) -> None:
    """Operations, peaks, hottest partitions and entities, the heat map, and clients."""
    lines = command("trace", recorded).splitlines()
    rows = {line.split("  ")[0].strip(): line.split() for line in lines}
    assert rows["upsert_merge"][1:3] == ["198", "40%"]
    assert rows["hot"][1:5] == ["205", "40%", "20.0", "3.8"]
    assert rows["hot"][-1] == "20"
    assert any("second at 22:13:25" in line and "302" in line for line in lines)
    assert "520 attempts, throttled 3.8% (503: 20)" in lines
    assert any(line.startswith("hot | r0") and line.endswith("99") for line in lines)
    assert any("302 partitions" in line for line in lines)
    assert any(line.startswith("p") and ".." in line for line in lines), "heat map"
    assert any("100%" not in line and "app/1.0" in line for line in lines)
    assert not any("unknown" in line for line in lines)


def test_times_have_a_day_and_names_a_width(tmp_path: Path, command: Command) -> None:
    """Two days need more than a time of the day; wide letters take two columns."""
    path = tmp_path / "app.parquet"
    recorder = Recorder()
    for second in (0, 86_400):
        for key in ("ab", "日本"):
            recorder.add(
                result(Operation(kind=Kind.INSERT, partition_key=key, row_key="x"), second), "app"
            )
    with TraceWriter(path, TraceHead(started_ms=START * 1000, source="watch")) as writer:
        writer.append(recorder.drain(0.0, final=True))
    lines = command("trace", path).splitlines()
    assert any(line.startswith("second at 11-14 22:13:20 ") for line in lines)
    assert any(line.startswith("11-14 ") and " to 11-15 " in line for line in lines)
    start = next(at for at, line in enumerate(lines) if line.startswith("heat map"))
    narrow, wide = (line.rstrip() for line in lines[start + 1 : start + 3])
    assert cell_len(narrow) == cell_len(wide)
    assert len(narrow) == len(wide) + 2


def test_a_trace_for_programs(recorded: Path, command: Command) -> None:
    """The JSON holds the same figures."""
    content = json.loads(command("trace", "--json", recorded))
    entities = {part["kind"]: part["entities"] for part in content["operations"]}
    assert sum(part["count"] for part in content["operations"]) == 500
    assert entities["transaction"] == 10
    assert content["throttled"] == {"503": 20, "500": 0, "504": 0, "429": 0}
    assert content["peaks"][0] == {
        "seconds": 1,
        "at": "2023-11-14T22:13:25+00:00",
        "entities_per_s": 302.0,
    }
    (hot,) = [one for one in content["hottest_partitions"] if one["key"] == "hot"]
    assert hot["attempts_by_status"] == {"204": 199, "503 ServerBusy partition": 20}
    assert content["hottest_entities"][0]["accesses"] == 99
    assert content["clients"] == {"app/1.0": 498, "job/2.0": 2}


def test_a_damaged_trace_is_read_as_far_as_possible(
    recorded: Path, tmp_path: Path, command: Command
) -> None:
    """What is missing is said, and --to makes a whole file of what is left."""
    damaged = tmp_path / "damaged.parquet"
    shutil.copytree(recorded, damaged)
    (damaged / "part-000002.parquet").write_bytes(b"PAR1")
    assert "1 damaged file cannot be read" in command("trace", damaged)
    assert "500 operations" in command("trace", damaged, "--to", tmp_path / "new.parquet")
    made = Trace(tmp_path / "new.parquet")
    assert made.damage.sentences() == []
    assert any("1 damaged file" in note for note in made.notes)


def test_other_tools_get_the_operations_as_text(recorded: Path, tmp_path: Path) -> None:
    """As CSV, with JSON in a field for what is nested, and as a JSON object a line."""
    assert main(["trace", str(recorded), "--to", str(tmp_path / "new.csv")]) == 0
    with (tmp_path / "new.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert main(["trace", str(recorded), "--to", str(tmp_path / "new.jsonl")]) == 0
    lines = (tmp_path / "new.jsonl").read_text(encoding="utf-8").splitlines()
    objects = list(map(json.loads, lines))
    assert len(table) == len(objects) == 500
    for row, one in zip(table, objects, strict=True):
        assert row["sent_at"] == one["sent_at"]
        assert json.loads(row["attempts"]) == one["attempts"]
        assert (row["row_key"], row["entities"]) == (one["row_key"] or "", str(one["entities"]))


@pytest.mark.parametrize(
    ("options", "kept"),
    [([], "nothing"), (["--keep-prefixes"], "prefixes"), (["--keep-order"], "order")],
)
def test_keys_become_aliases(
    recorded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    kept: str,
) -> None:
    """No key is left in the file, neither is the account; equal keys stay equal."""
    new = tmp_path / "new.parquet"
    assert main(["trace", str(recorded), "--to", str(new), "--redact-keys", *options]) == 0
    text = content_of(new).decode()
    assert not any(f'"{key}"' in text for key in ("hot", "batch", "p001", "r0", "b7", "contoso"))
    before, after = list(Trace(recorded).rows()), list(Trace(new).rows())
    assert Trace(new).head.keys == kept
    aliases: dict[str, set[str]] = {}
    for old, made in zip(before, after, strict=True):
        assert (old.at_ms, old.entities) == (made.at_ms, made.entities)
        aliases.setdefault(old.partition_key or "", set()).add(made.partition_key or "")
    assert {len(names) for names in aliases.values()} == {1}
    assert len(set.union(*aliases.values())) == len(aliases)
    if kept == "order":
        assert [min(aliases[key]) for key in sorted(aliases)] == sorted(
            min(names) for names in aliases.values()
        )


def test_a_log_is_shown_with_its_unknowns(tmp_path: Path, command: Command) -> None:
    """Of a log, the share of operations without keys is shown; addresses become aliases."""
    entry = {
        "time": "2026-11-22T10:00:00Z",
        "operationName": "InsertEntity",
        "statusCode": 201,
        "statusText": "Success",
        "durationMs": 3,
        "callerIpAddress": "203.0.113.7:555",
        "uri": "https://contoso.table.core.windows.net/Orders",
    }
    read = {
        **entry,
        "operationName": "QueryEntity",
        "uri": "https://contoso.table.core.windows.net/Orders(PartitionKey='a',RowKey='b')",
    }
    log = tmp_path / "PT1H.json"
    log.write_text("\n".join(map(json.dumps, (entry, entry, read, read))))
    shown = command("trace", log)
    assert "PartitionKey  2 operations, 50%" in shown
    assert "RowKey        2 operations, 50%" in shown
    assert "203.0.113.7" in shown
    new = tmp_path / "new.parquet"
    command("trace", log, "--to", new, "--redact-keys")
    assert b"203.0.113" not in content_of(new)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--redact-keys"], "needs --to"),
        (["--to", "new", "--keep-order"], "need --redact-keys"),
        (["--to", "new", "--redact-keys", "--keep-order", "--keep-prefixes"], "not both"),
    ],
)
def test_options_that_do_not_go_together(
    recorded: Path, command: Command, options: list[str], reason: str
) -> None:
    """The message says what to change."""
    assert reason in command.refused("trace", recorded, *options)


ACT = "\x1b]0;title\x07\x1b[31m"
"""A terminal would act upon it."""


@pytest.mark.parametrize("to", [False, True], ids=["shown", "converted"])
def test_what_a_trace_says_does_not_act_upon_the_terminal(
    tmp_path: Path, command: Command, *, to: bool
) -> None:
    """Notes, head and clients of a foreign trace are printed as text, whole."""
    path, recorder = tmp_path / "foreign.parquet", Recorder()
    recorder.add(result(Operation(kind=Kind.INSERT, partition_key="p", row_key="r"), 0), ACT)
    head = TraceHead(started_ms=START * 1000, source=ACT, name=ACT, account=ACT, endpoint=ACT)
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))
        writer.close(notes=[f"noted {ACT}"])
    printed = command("trace", path, *(["--to", tmp_path / "new.parquet"] * to))
    assert "noted \\u001b]0;title\\u0007\\u001b[31m" in printed
    assert "\x1b" not in printed + command.err


def test_what_an_error_repeats_does_not_act_upon_the_terminal(
    command: Command,
) -> None:
    """The lines of a message stay, and every other control character is written out."""
    assert "\x1b" not in command.refused("trace", f"/nowhere/{ACT}")


@pytest.mark.parametrize("estimated", [True, False])
def test_a_lower_bound_is_marked_wherever_it_stands(
    estimated: bool, tmp_path: Path, command: Command
) -> None:
    """Rows, sums, peaks and partitions of queries whose scanned entities are not known."""
    query = Operation(kind=Kind.QUERY, partition_key="p", row_key="")
    write = Operation(kind=Kind.UPSERT_MERGE, partition_key="q", row_key="r")
    scans = [
        done(query, START + at, attempts=(OK,), entities=7, estimated=estimated) for at in range(3)
    ]
    path = tmp_path / "app.parquet"
    trace_of(path, [*scans, done(write, START + 1.0, attempts=(OK,), entities=1)]).close()
    said = command.words("trace", path)
    assert ("at least 21" in said) is estimated
    assert ("at least 22" in said) is estimated
    assert ("second at 22:13:21 ≥8.0 entities/s" in said) is estimated
    assert ("p ≥21 95% ≥7.0" in said) is estimated
    assert "q 1 " in said
