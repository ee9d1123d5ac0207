"""A trace file gives back what was recorded, in order, and what is left of it after damage."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Attempt, Result, Scope
from harness.trace.blocks import MOST_OPERATIONS
from harness.trace.members import BLOCK, TraceError, TraceHead, pack
from harness.trace.members import HEAD as HEAD_MEMBER
from harness.trace.operations import TracedOperation, TracedParts, TracedQuery
from harness.trace.reader import Trace
from harness.trace.recorder import KEPT_S, LATE_MS, Recorder, TraceWriter
from harness.trace.sources import SourceFormat, format_of
from tests.support.results import done

START = 1_700_000_000
HEAD = TraceHead(started_ms=START * 1000, source="run", name="test")
OK = Attempt(status=204, sent_s=0.0, latency_s=0.0)
_MEMBER = b"\x1f\x8b\x08\x04\0\0\0\0"
"""How each member of a trace begins."""
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
    path = tmp_path_factory.mktemp("trace") / "a.trace"
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

    read = [row.result(START) for row in rows]
    assert sorted(map(repr, map(seen, read))) == sorted(map(repr, map(seen, results)))


def test_a_query_names_compared_properties_and_no_values(tmp_path: Path) -> None:
    """Of a filter the names of its properties are recorded, and never a value."""
    query = Operation(
        kind=Kind.QUERY,
        partition_key="p",
        key_range=KeyRange(row_from="a", row_before="b"),
        filter="RowKey ge 'a' and Email eq 'anna@example.org' and (Age gt 18 or Due le datetime'')",
    )
    path = recorded([result(query, 1.0)], tmp_path / "a.trace")
    (row,) = Trace(path).rows()
    assert row.detail == TracedQuery(row_from="a", row_before="b", compared=("Email", "Age", "Due"))
    assert b"anna" not in gzip.decompress(path.read_bytes())


def test_a_transaction_keeps_its_parts(tmp_path: Path) -> None:
    """Each part has its kind, its RowKey and its share of the bytes."""
    parts = (insert("a"), Operation(kind=Kind.DELETE, partition_key="p", row_key="b"))
    (row,) = Trace(recorded([result(transaction(parts), 1.0)], tmp_path / "a.trace")).rows()
    assert row.detail == TracedParts((Kind.INSERT, Kind.DELETE), ("a", "b"), (200, 200))
    assert row.entities == 2


def test_operations_are_ordered_over_blocks_and_recorders(tmp_path: Path) -> None:
    """Several recorders, full blocks and late operations make one ordered trace."""
    chance = random.Random(1)
    recorders = [Recorder() for _ in range(3)]
    with TraceWriter(tmp_path / "a.trace", HEAD) as writer:
        for number in range(3 * MOST_OPERATIONS):
            one = recorders[chance.randrange(3)]
            late_s = chance.choice((0, 0, 0, 0, LATE_MS / 1000 + 60))
            one.add(result(insert(str(number)), max(0.0, number / 100 - late_s)), "w")
            writer.append(one.drain(START + number / 100))
        for one in recorders:
            writer.append(one.drain(0.0, final=True))
    trace = Trace(tmp_path / "a.trace")
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[TracedOperation]]:
    """The bytes and the operations of a trace of several blocks."""
    path = tmp_path_factory.mktemp("whole") / "a.trace"
    results = [result(insert(str(number)), number / 10) for number in range(300)]
    recorded(results, path)
    return path.read_bytes(), list(Trace(path).rows())


def test_a_file_cut_anywhere_gives_what_is_before(
    whole: tuple[bytes, list[TracedOperation]], tmp_path: Path
) -> None:
    """Whole blocks before the cut are read, and the cut is said."""
    data, rows = whole
    keys = [row.row_key for row in rows]
    for length in range(200, len(data), 37):
        path = tmp_path / "cut.trace"
        path.write_bytes(data[:length])
        trace = Trace(path)
        read = [row.row_key for row in trace.rows()]
        assert read == keys[: len(read)]
        assert trace.damage.sentences(), length
        assert not trace.damage.bytes
    assert len(read) > 200


def test_a_changed_byte_costs_one_block(
    whole: tuple[bytes, list[TracedOperation]], tmp_path: Path
) -> None:
    """A changed byte anywhere behind the head costs at most one block, which is said."""
    data, rows = whole
    keys = {row.row_key for row in rows}
    for place in range(250, len(data), 61):
        path = tmp_path / "changed.trace"
        path.write_bytes(data[:place] + bytes((data[place] ^ 0x55,)) + data[place + 1 :])
        trace = Trace(path)
        read = {row.row_key for row in trace.rows()}
        assert read <= keys
        assert len(keys - read) < 60
        if read != keys:
            assert trace.damage.sentences(), place


def test_traces_can_be_concatenated(tmp_path: Path) -> None:
    """A recording that was cut off and a later one in one file are one trace."""
    first = recorded([result(insert(str(n)), n) for n in range(20)], tmp_path / "a.trace")
    later = TraceHead(started_ms=(START + 100) * 1000, source="run")
    second = recorded([result(insert("z"), 105)], tmp_path / "b.trace", later)
    path = tmp_path / "c.trace"
    path.write_bytes(first.read_bytes()[:-10] + second.read_bytes())
    trace = Trace(path)
    rows = list(trace.rows())
    assert [row.at_ms for row in rows][-2:] == [19_000, 105_000]
    assert trace.head.started_ms == START * 1000
    assert trace.damage.bytes


def test_a_recording_that_broke_off_before_another_one_is_said(tmp_path: Path) -> None:
    """The regular end of the second recording does not hide that the first one has none."""
    first = recorded([result(insert("a"), 1.0)], tmp_path / "a.trace").read_bytes()
    second = recorded([result(insert("b"), 2.0)], tmp_path / "b.trace").read_bytes()
    path = tmp_path / "c.trace"
    path.write_bytes(first[: first.rindex(_MEMBER)] + second)
    assert Trace(path).damage.sentences() == ["The recording broke off: what followed is missing."]
    path.write_bytes(first + second)
    assert Trace(path).damage.sentences() == []


def test_a_trace_without_its_head_does_not_say_what_its_keys_are(
    whole: tuple[bytes, list[TracedOperation]], tmp_path: Path
) -> None:
    """Nobody knows then whether they are aliases; the operations are read."""
    data, rows = whole
    path = tmp_path / "a.trace"
    path.write_bytes(b"x" * 70_000 + data[data.index(_MEMBER, 1) :])
    assert format_of(path) is SourceFormat.TRACE
    trace = Trace(path)
    assert len(list(trace.rows())) == len(rows)
    assert trace.damage.sentences() == [
        "70,000 bytes of the file are damaged and were left out.",
        "The head of the file is missing: it said whether keys are aliases.",
    ]


def test_a_trace_cut_in_its_head_is_a_cut_trace(tmp_path: Path) -> None:
    """The reason is the cut, not that the file is something else."""
    path = recorded([result(insert("a"), 1.0)], tmp_path / "a.trace")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(TraceError, match="cut before its first operation"):
        Trace(path)


def test_later_heads_count_where_the_first_would_mislead(tmp_path: Path) -> None:
    """Aliases in one part of a file are not taken for plain keys; a later version is refused."""
    plain = recorded([result(insert("a"), 1.0)], tmp_path / "a.trace").read_bytes()
    aliases = TraceHead(started_ms=START * 1000, source="run", keys="nothing")
    path = tmp_path / "c.trace"
    path.write_bytes(plain + aliases.encode())
    assert Trace(path).head.keys == "nothing"
    newer = {"format": "harness trace", "version": 2, "started_ms": START * 1000}
    path.write_bytes(plain + pack(HEAD_MEMBER, newer))
    with pytest.raises(TraceError, match="version 2"):
        Trace(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", [0, -5]),
        ("took", [-1, 1]),
        ("entities", [10**18, 1]),
        ("entities", [-1, 1]),
        ("sent", ["a", 1]),
        ("key", [0, 3]),
        ("row", ["a"]),
        ("shapes", [["c", "insert", "", "insert", "success", False, []]]),
        ("shapes", [["c", "insert", "", "insert", "success", False, [[503, "", "planet"]]]]),
        ("shapes", [["c", "insert", "", "insert", "success", False, [["x", "", ""]]]]),
        ("shapes", [["c", "unheard-of", "", "insert", "success", False, [[204, "", ""]]]]),
        ("details", [[0, ["unheard-of", 1]]]),
    ],
)
def test_a_block_of_another_program_may_be_wrong(
    tmp_path: Path, column: str, value: object
) -> None:
    """What no operation can be is a damaged block, which is said; the others are read."""
    block: dict[str, object] = {
        "first_ms": START * 1000,
        "at": [0, 5],
        "took": [1, 2],
        "shapes": [["c", "insert", "", "insert", "success", False, [[204, "", ""]]]],
        "shape": [0, 0],
        "keys": ["p"],
        "key": [0, 0],
        "row": ["a", "b"],
        "entities": [1, 1],
        "returned": [0, 0],
        "sent": [9, 9],
        "received": [0, 0],
        "details": [],
    }
    at = START * 1000
    path = recorded([result(insert("z"), 7.0)], tmp_path / "a.trace")
    right = path.read_bytes() + pack(BLOCK, block, operations=2, first_ms=at, last_ms=at + 5)
    path.write_bytes(right)
    assert [row.row_key for row in Trace(path).rows()] == ["a", "b", "z"]
    wrong = {**block, column: value}
    path.write_bytes(right + pack(BLOCK, wrong, operations=2, first_ms=at, last_ms=at + 5))
    trace = Trace(path)
    assert [row.row_key for row in trace.rows()] == ["a", "b", "z"]
    assert trace.damage.sentences() == ["1 damaged block with 2 operations cannot be read."]


def test_any_tool_for_gzip_reads_a_trace(tmp_path: Path) -> None:
    """Unpacked, a trace is lines of JSON: the head, blocks, the end."""
    path = recorded([result(insert("a"), 1.0)], tmp_path / "a.trace")
    head, block, end = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    assert (head["format"], head["version"]) == ("harness trace", 1)
    assert block["row"] == ["a"]
    assert end == {"operations": 1, "lost": 0, "notes": []}


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
    with TraceWriter(tmp_path / "a.trace", HEAD, str.upper) as writer:
        writer.append(recorder.drain(0.0, final=True))
    text = gzip.decompress((tmp_path / "a.trace").read_bytes())
    assert b"row-" not in text
    assert b"part-" not in text
    rows = list(Trace(tmp_path / "a.trace").rows())
    assert [row.partition_key for row in rows] == ["PART-1", "PART-2", "PART-1", WHOLE_TABLE]
    assert isinstance(rows[1].detail, TracedParts)
    assert rows[1].detail.row_keys == ("ROW-2", "ROW-3")
    assert isinstance(rows[2].detail, TracedQuery)
    assert rows[2].detail.row_from == "ROW-1"


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    """The message says what to do."""
    path = recorded([], tmp_path / "a.trace")
    with pytest.raises(SetupError, match="name another one"):
        TraceWriter(path, HEAD)


def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path: Path) -> None:
    """A failure to write raises nothing, is told, and leaves what was written readable."""
    recorder = Recorder()
    writer = TraceWriter(tmp_path / "a.trace", HEAD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for second in range(20):
            for number in range(50):
                recorder.add(result(insert(f"{second}-{number}"), second), "w")
            if second == 10:
                # In the middle of the next block.
                resource.setrlimit(resource.RLIMIT_FSIZE, (writer.bytes + 100, hard))
            writer.append(recorder.drain(0.0, final=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.close()
    assert writer.problem == "File too large"
    trace = Trace(tmp_path / "a.trace")
    assert len(list(trace.rows())) == writer.operations == 500
    assert trace.damage.sentences() == ["The recording broke off: what followed is missing."]
    assert writer.sentence == f"The trace {writer.path} ends after 500 operations: File too large."


def test_other_files_are_no_traces(tmp_path: Path) -> None:
    """Other files, and later versions, are refused with a reason."""
    path = tmp_path / "a.trace"
    path.write_bytes(gzip.compress(b"text"))
    with pytest.raises(TraceError, match="not a trace"):
        Trace(path)
    path.write_bytes(b"")
    with pytest.raises(TraceError, match="not a trace"):
        Trace(path)


def test_an_invalid_text_is_recorded_readably(tmp_path: Path) -> None:
    """Half of a surrogate pair, which is no text, is written as an escape."""
    (row,) = Trace(recorded([result(insert("a\ud800"), 1.0)], tmp_path / "a.trace")).rows()
    assert row.row_key == "a\\ud800"
