"""A trace file gives back what was recorded, in order, and what is left of it after damage."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import random
import resource
import signal
import threading
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Attempt, Result, Scope
from harness.trace.blocks import MOST_OPERATIONS
from harness.trace.engine import Engine
from harness.trace.head import TraceError, TraceHead
from harness.trace.operations import TracedParts, TracedQuery
from harness.trace.reader import Trace, files_of
from harness.trace.recorder import KEPT_S, Recorder
from harness.trace.sources import format_of, opened
from harness.trace.writer import EVERY_S, LATE_MS, TraceWriter
from tests.support.results import done
from tests.support.traced import content_of, result_of

START = 1_700_000_000
HEAD = TraceHead(started_ms=START * 1000, source="run", name="test")
OK = Attempt(status=204, sent_s=0.0, latency_s=0.0)
BUSY = Attempt(
    status=503, sent_s=0.0, latency_s=0.0, error_code="ServerBusy", scope=Scope.PARTITION
)


def result(
    operation: Operation, at_s: float, took_s: float = 0.004, attempts: tuple[Attempt, ...] = (OK,)
) -> Result:
    return done(
        operation,
        START + at_s,
        took_s,
        attempts=attempts,
        entities=operation.entities_asked,
        bytes_sent=400,
        bytes_received=70,
    )


def insert(row_key: str, partition_key: str = "p") -> Operation:
    return Operation(kind=Kind.INSERT, partition_key=partition_key, row_key=row_key)


def recorded(results: list[Result], path: Path, head: TraceHead = HEAD) -> Path:
    recorder = Recorder()
    with TraceWriter(path, head) as writer:
        for one in results:
            recorder.add(one, "worker-1")
            writer.append(recorder.drain(one.done_s))
        writer.append(recorder.drain(0.0, final=True))
    return path


KEYS = st.text(st.characters(codec="utf-8"), max_size=12)
SINGLE = st.builds(
    Operation,
    kind=st.sampled_from([Kind.POINT_QUERY, Kind.INSERT, Kind.UPSERT_MERGE, Kind.DELETE]),
    partition_key=KEYS,
    row_key=KEYS,
    table=st.sampled_from(["", "orders"]),
    name=st.sampled_from(["", "look up"]),
)
RANGES = st.builds(
    KeyRange,
    partition_from=st.none() | KEYS,
    partition_before=st.none() | KEYS,
    row_from=st.none() | KEYS,
    row_before=st.none() | KEYS,
)
QUERIES = st.builds(
    Operation,
    kind=st.just(Kind.QUERY),
    partition_key=st.just(WHOLE_TABLE) | KEYS,
    key_range=RANGES,
    select=st.lists(st.sampled_from(["Name", "Total"]), max_size=2).map(tuple),
    top=st.none() | st.integers(1, 1000),
)
TRANSACTIONS = st.builds(
    lambda key, rows: transaction(
        tuple(Operation(kind=kind, partition_key=key, row_key=row) for row, kind in rows.items())
    ),
    KEYS,
    st.dictionaries(KEYS, st.sampled_from([Kind.INSERT, Kind.DELETE]), min_size=1, max_size=5),
)
ATTEMPTS = st.lists(st.just(BUSY), max_size=2).map(lambda before: (*before, OK))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 300_000),
            st.integers(0, 200_000),
            SINGLE | QUERIES | TRANSACTIONS,
            ATTEMPTS,
        ),
        max_size=30,
    )
)
def test_what_was_recorded_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    done: list[tuple[int, int, Operation, tuple[Attempt, ...]]],
) -> None:
    """Every operation comes back with its keys, instants and attempts, in order of its instant."""
    path = tmp_path_factory.mktemp("trace") / "a.parquet"
    results = [
        result(operation, at / 1000, took / 1000, attempts)
        for at, took, operation, attempts in done
    ]
    results.sort(key=lambda one: one.done_s)
    trace = Trace(recorded(results, path))
    rows = list(trace.rows())
    assert trace.operations == len(rows) == len(results)
    assert [row.at_ms for row in rows] == sorted(row.at_ms for row in rows)
    assert trace.damage.sentences() == []

    def seen(one: Result) -> tuple[object, ...]:
        operation = one.operation
        return (
            int(one.sent_s * 1000),
            int(one.done_s * 1000),
            operation.kind,
            operation.table,
            operation.label,
            operation.partition_key,
            operation.row_key,
            operation.key_range,
            operation.select,
            operation.top,
            [(part.kind, part.row_key) for part in operation.parts],
            [(made.status, made.error_code, made.scope) for made in one.attempts],
            (one.entities, one.bytes_sent, one.bytes_received, one.outcome),
        )

    read = [result_of(row, START) for row in rows]
    assert sorted(map(repr, map(seen, read))) == sorted(map(repr, map(seen, results)))


def test_a_query_names_compared_properties_and_no_values(tmp_path: Path) -> None:
    """Of a filter the names of its properties are recorded, and never a value."""
    keys = "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'"
    query = Operation(
        kind=Kind.QUERY,
        partition_key="p",
        key_range=KeyRange(row_from="a", row_before="b"),
        filter=f"{keys} and Email eq 'anna@example.org' and (Age gt 18 or Due le datetime'')",
    )
    path = recorded([result(query, 1.0)], tmp_path / "a.parquet")
    (row,) = Trace(path).rows()
    assert row.detail == TracedQuery(row_from="a", row_before="b", compared=("Email", "Age", "Due"))
    assert b"anna" not in content_of(path)


def test_a_transaction_keeps_its_parts(tmp_path: Path) -> None:
    """Each part has its kind, its RowKey and its share of the bytes."""
    parts = (insert("a"), Operation(kind=Kind.DELETE, partition_key="p", row_key="b"))
    (row,) = Trace(recorded([result(transaction(parts), 1.0)], tmp_path / "a.parquet")).rows()
    assert row.detail == TracedParts((Kind.INSERT, Kind.DELETE), ("a", "b"), (200, 200))
    assert row.entities == 2


def test_operations_are_ordered_over_blocks_and_recorders(tmp_path: Path) -> None:
    """Several recorders, full blocks and late operations make one ordered trace."""
    chance = random.Random(1)
    recorders = [Recorder() for _ in range(3)]
    with TraceWriter(tmp_path / "a.parquet", HEAD) as writer:
        for number in range(3 * MOST_OPERATIONS):
            one = recorders[chance.randrange(3)]
            late_s = chance.choice((0, 0, 0, 0, LATE_MS / 1000 + 60))
            one.add(result(insert(str(number)), max(0.0, number / 100 - late_s)), "w")
            writer.append(one.drain(START + number / 100))
        for one in recorders:
            writer.append(one.drain(0.0, final=True))
    trace = Trace(tmp_path / "a.parquet")
    batches = list(trace.batches())
    at = list(itertools.chain.from_iterable(batch.at_ms for batch in batches))
    assert at == sorted(at)
    assert len(at) == 3 * MOST_OPERATIONS == trace.operations == writer.operations
    keys = {key for batch in batches for key in batch.row_keys}
    assert len(keys) == len(at)
    shapes = {id(shape) for batch in batches for shape in batch.shapes}
    assert len(shapes) == 1, "equal shapes are one object"


def test_a_block_is_kept_back_for_some_seconds_only() -> None:
    """A crash loses the operations of the last seconds, and no more."""
    recorder = Recorder()
    recorder.drain(100.0)
    recorder.add(result(insert("a"), 1.0), "w")
    assert recorder.drain(100.0 + KEPT_S - 0.1) == []
    assert len(recorder.drain(100.0 + KEPT_S)) == 1


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A trace of 300 operations in three files, besides those for its beginning and end."""
    path, seconds = tmp_path / "whole.parquet", itertools.count(0, EVERY_S)
    recorder = Recorder()
    with TraceWriter(path, HEAD, clock=lambda: next(seconds)) as writer:
        for number in range(300):
            recorder.add(result(insert(str(number)), number / 10), "w")
            if number % 100 == 99:
                writer.append(recorder.drain(0.0, final=True))
    assert [file.name for file in files_of(path)] == [f"part-{n:06}.parquet" for n in range(5)]
    return path


def keys_of(trace: Trace) -> list[str | None]:
    return [row.row_key for row in trace.rows()]


def rewritten(path: Path, into: Path, select: str) -> Path:
    """A file that another program made of a trace."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select.format(path)}) TO '{into}' (FORMAT parquet)")
    return into


def test_a_damaged_file_costs_its_operations_only(whole: Path) -> None:
    """However a file is cut, the operations of the others are read, and the damage is said."""
    file = whole / "part-000002.parquet"
    data = file.read_bytes()
    for length in range(0, len(data), 389):
        file.write_bytes(data[:length])
        trace = Trace(whole)
        assert keys_of(trace) == [str(n) for n in range(300) if not 100 <= n < 200]
        (sentence,) = trace.damage.sentences()
        assert sentence.startswith("1 damaged file cannot be read (")


def test_a_recording_that_broke_off_is_said(whole: Path, tmp_path: Path) -> None:
    """Also where another one in the folder ended regularly."""
    broke_off = ["The recording broke off: what followed is missing."]
    (whole / "part-000004.parquet").unlink()
    trace = Trace(whole)
    assert (len(keys_of(trace)), trace.damage.sentences()) == (300, broke_off)
    later = TraceHead(started_ms=(START + 100) * 1000, source="run")
    other = recorded([result(insert("z"), 105)], tmp_path / "b.parquet", later)
    for file in files_of(other):
        file.rename(whole / f"later-{file.name}")
    trace = Trace(whole)
    assert [row.at_ms for row in trace.rows()][-2:] == [29_900, 105_000]
    assert trace.head.started_ms == START * 1000
    assert trace.damage.sentences() == broke_off


def test_what_another_program_wrote_is_read(whole: Path, tmp_path: Path) -> None:
    """In any order of its rows; nobody knows whether keys are aliases."""
    select = "SELECT * FROM '{}/*.parquet' ORDER BY hash(row_key)"
    path = rewritten(whole, tmp_path / "shuffled.parquet", select)
    trace = Trace(path)
    assert keys_of(trace) == list(map(str, range(300)))
    assert trace.head.source == "unknown"
    assert trace.damage.sentences() == [
        "The file does not say what it is of, nor whether keys are aliases."
    ]


def test_rows_in_no_order_are_sorted_first(whole: Path, tmp_path: Path) -> None:
    """So that memory stays flat where any row may be the first; equal instants keep their order."""
    rows = 510_000
    select = (
        "SELECT one.* REPLACE ("
        "one.sent_at + to_seconds(hash(number) % 1000) AS sent_at, number::VARCHAR AS row_key"
        f") FROM (SELECT * FROM '{{}}/*.parquet' LIMIT 1) AS one, range({rows}) AS t(number)"
    )
    path = rewritten(whole, tmp_path / "shuffled.parquet", select)
    assert Trace(path).crowded
    with opened(path) as trace:
        assert not trace.crowded
        seen = [
            (at_ms, int(key or ""))
            for batch in trace.batches()
            for at_ms, key in zip(batch.at_ms, batch.row_keys, strict=True)
        ]
        assert len(trace.damage.sentences()) == 1
    assert seen == sorted(seen)
    assert len(seen) == rows


def test_later_heads_count_where_the_first_would_mislead(whole: Path, tmp_path: Path) -> None:
    """Aliases in one file of a folder are not taken for plain keys; a later version is refused."""
    aliases = TraceHead(started_ms=START * 1000, source="run", keys="nothing")
    other = recorded([], tmp_path / "b.parquet", aliases)
    (other / "part-000000.parquet").rename(whole / "other.parquet")
    assert Trace(whole).head.keys == "nothing"
    newer = whole / "newer.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM '{whole}/other.parquet') TO '{newer}' "
            "(FORMAT parquet, KV_METADATA {format: 'harness trace', version: '3'})"
        )
    with pytest.raises(TraceError, match="version 3"):
        Trace(whole)


@pytest.mark.parametrize(
    "wrong",
    [
        "sent_at: NULL::TIMESTAMP",
        "sent_at: 'yesterday'",
        "sent_at: TIMESTAMP '290000-01-01'",
        "sent_at: TIMESTAMP '0001-01-01'",
        "took_ms: -1",
        "took_ms: 10::UHUGEINT ** 20",
        "entities: -1",
        "entities: NULL::BIGINT",
        "bytes_sent: 'many'",
        "kind: 'unheard-of'",
        "outcome: 7",
        "row_key: repeat('x', 10000)",
        "attempts: []",
        "attempts: 5",
        "attempts: [{{status: 503, error_code: '', scope: 'planet'}}]",
        "attempts: [{{status: 'x', error_code: '', scope: ''}}]",
    ],
)
def test_a_file_of_another_program_may_be_wrong(whole: Path, tmp_path: Path, wrong: str) -> None:
    """What no operation can be is damage, which is said; the operations of other files are read."""
    column, _, value = wrong.partition(": ")
    select = f"SELECT * REPLACE ({value} AS {column}) FROM '{{}}/*.parquet' LIMIT 5"
    rewritten(whole, whole / "wrong.parquet", select)
    trace = Trace(whole)
    with contextlib.suppress(TraceError):
        keys = keys_of(trace)
        assert len(keys) in (0, 300)
        assert any("cannot be read" in sentence for sentence in trace.damage.sentences())


def test_a_table_that_is_no_trace_is_refused(whole: Path, tmp_path: Path) -> None:
    """The reason names the first column that is missing."""
    select = "SELECT * EXCLUDE (outcome) FROM '{}/*.parquet'"
    path = rewritten(whole, tmp_path / "a.parquet", select)
    with pytest.raises(TraceError, match="no column outcome"):
        Trace(path)


def test_a_trace_of_the_first_format_says_who_reads_it(tmp_path: Path) -> None:
    """It was members of gzip with a field of their own."""
    path = tmp_path / "old.parquet"
    path.write_bytes(b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x27\0TH" + bytes(100))
    with pytest.raises(SetupError, match="format 1, which only development versions"):
        format_of(path)


def test_any_tool_for_parquet_reads_a_trace(tmp_path: Path) -> None:
    """The columns are typed, and the metadata say what was recorded."""
    path = recorded([result(insert("a"), 1.0, attempts=(BUSY, OK))], tmp_path / "a.parquet")
    with duckdb.connect() as connection:
        (row,) = connection.execute(
            "SELECT sent_at, row_key, len(attempts), attempts[1].scope FROM read_parquet($files)",
            {"files": [f"{path}/*.parquet"]},
        ).fetchall()
        metadata = dict(
            connection.execute(
                "SELECT key, value FROM parquet_kv_metadata($file)",
                {"file": str(files_of(path)[-1])},
            ).fetchall()
        )
    assert row == (dt.datetime(2023, 11, 14, 22, 13, 21), "a", 2, "partition")
    assert metadata[b"source"] == b"run"
    assert (metadata[b"ended"], metadata[b"lost"], metadata[b"notes"]) == (b"true", b"0", b"[]")


def test_keys_are_replaced_by_aliases(tmp_path: Path) -> None:
    """With aliases no key is in the file, not even in queries and transactions."""
    operations = [
        insert("row-1", "part-1"),
        transaction((insert("row-2", "part-2"), insert("row-3", "part-2"))),
        Operation(kind=Kind.QUERY, partition_key="part-1", key_range=KeyRange(row_from="row-1")),
        Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE),
    ]
    recorder = Recorder()
    for number, operation in enumerate(operations):
        recorder.add(result(operation, number), "w")
    with TraceWriter(tmp_path / "a.parquet", HEAD, str.upper) as writer:
        writer.append(recorder.drain(0.0, final=True))
    text = content_of(tmp_path / "a.parquet")
    assert b"row-" not in text
    assert b"part-" not in text
    rows = list(Trace(tmp_path / "a.parquet").rows())
    assert [row.partition_key for row in rows] == ["PART-1", "PART-2", "PART-1", WHOLE_TABLE]
    assert isinstance(rows[1].detail, TracedParts)
    assert rows[1].detail.row_keys == ("ROW-2", "ROW-3")
    assert isinstance(rows[2].detail, TracedQuery)
    assert rows[2].detail.row_from == "ROW-1"


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    """The message says what to do."""
    path = recorded([], tmp_path / "a.parquet")
    with pytest.raises(SetupError, match="name another one"):
        TraceWriter(path, HEAD)


def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path: Path) -> None:
    """A failure to write raises nothing, is told, and leaves what was written readable."""
    recorder, seconds = Recorder(), itertools.count(0, EVERY_S)
    writer = TraceWriter(tmp_path / "a.parquet", HEAD, clock=lambda: next(seconds))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for second in range(20):
            for number in range(50):
                recorder.add(result(insert(f"{second}-{number}"), second), "w")
            if second == 10:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
            writer.append(recorder.drain(0.0, final=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.close()
    assert writer.problem == "File too large"
    trace = Trace(tmp_path / "a.parquet")
    assert len(list(trace.rows())) == writer.operations == 500
    assert trace.damage.sentences() == ["The recording broke off: what followed is missing."]
    assert writer.sentence == f"The trace {writer.path} ends after 500 operations: File too large."
    assert {file.suffix for file in writer.path.iterdir()} == {".parquet"}


def test_other_files_are_no_traces(tmp_path: Path) -> None:
    """Other files are refused with a reason."""
    path = tmp_path / "a.parquet"
    for content in (b"", b"text", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"):
        path.write_bytes(content)
        with pytest.raises(TraceError, match="no trace in Parquet"):
            Trace(path)


def test_an_invalid_text_is_recorded_readably(tmp_path: Path) -> None:
    """Half of a surrogate pair, which is no text, is written as an escape."""
    (row,) = Trace(recorded([result(insert("a\ud800"), 1.0)], tmp_path / "a.parquet")).rows()
    assert row.row_key == "a\\ud800"


def test_a_ctrl_c_interrupts_a_query() -> None:
    """It ends a command as everywhere else, though DuckDB makes another error of it."""
    engine = Engine()
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with contextlib.closing(engine), pytest.raises(KeyboardInterrupt):
        engine.rows("SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b")
    timer.join()
