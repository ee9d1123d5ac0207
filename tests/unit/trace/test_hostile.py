"""A damaged or hostile file ends in a sentence, whatever reads it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import duckdb
import pytest

from harness.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
TRACE = EXAMPLES / "hot-tenant" / "hot-tenant.parquet"
KEYS = str(EXAMPLES / "hot-tenant" / "by-ten.toml")
ENTRY = (
    b'{"time":"TIME","operationName":"QueryEntity","statusCode":200,"statusText":"Success",'
    b"\"uri\":\"https://c.table.core.windows.net/Orders(PartitionKey='a',RowKey='b')\"NUMBER}"
)


def commands(path: Path) -> list[list[str]]:
    """All that reads a trace or a log."""
    return [
        ["trace", str(path)],
        ["whatif", str(path), "--keys", KEYS],
        ["advise", str(path)],
        ["trace", str(path), "--to", str(path.with_name("new.parquet"))],
        ["check", "replay", "--set", f"replay.trace={path}"],
    ]


def mutated(rng: random.Random, content: bytes) -> bytes:
    """A few bits, bytes of the metadata or a part of the file are others, or its end is missing."""
    changed = bytearray(content)
    way = rng.randrange(4)
    if way == 0:
        for _ in range(rng.choice((1, 3, 10))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif way == 1:
        metadata = int.from_bytes(content[-8:-4], "little")
        for _ in range(rng.choice((1, 2, 4))):
            changed[-8 - rng.randrange(1, metadata)] = rng.randrange(256)
    elif way == 2:
        del changed[rng.randrange(len(changed)) :]
    else:
        place, length = rng.randrange(len(changed)), rng.randrange(1, 200)
        changed[place : place + length] = rng.randbytes(length)
    return bytes(changed)


def require_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Run a command, which says in one sentence why it fails if it does."""
    code = main(arguments)
    said = capsys.readouterr().err
    assert code in (0, 1, 2), said
    assert "Traceback" not in said
    if code == 2:
        sentences = [line for line in said.splitlines() if line.startswith("harness")]
        assert len(sentences) == 1, said
        assert len(sentences[0]) < 700
    return code


@pytest.mark.parametrize(
    "count", [16, pytest.param(500, marks=(pytest.mark.long, pytest.mark.thorough))]
)
def test_damaged_traces_end_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    """However bits, metadata and ends of a trace are changed."""
    rng, content = random.Random(count), TRACE.read_bytes()
    for number in range(count):
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(mutated(rng, content))
        readers = commands(path)
        require_sentence(readers[number % len(readers)], capsys)
        (tmp_path / "new.parquet").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "change",
    [
        "CASE WHEN row_number() OVER () = 1 THEN TIMESTAMP '1970-01-01' "
        "ELSE TIMESTAMP '2099-12-31 23:59:59' END AS sent_at",
        "NULL::TIMESTAMP AS sent_at",
        "7 AS client, 7 AS table_name, 7 AS operation, 7 AS partition_key",
        "7 AS attempts, 7 AS query, 7 AS parts",
        "4000000000000 AS took_ms",
        "2000000000 AS entities, 9000000000000000 AS bytes_sent",
        "repeat('k', 20000000) AS client",
        "'transaction' AS kind, list_transform(range(20000), "
        "lambda n: {'kind': 'insert', 'row_key': 'r' || n, 'bytes': 5}) AS parts",
        "list_transform(range(60000), "
        "lambda n: {'status': 503, 'error_code': 'x', 'scope': ''}) AS attempts",
    ],
    ids=[
        *("years", "no instants", "numbers as texts", "numbers as lists", "years of waiting"),
        *("numbers", "a client", "parts", "attempts"),
    ],
)
def test_bombs_end_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """A small file whose values are not small, or far from each other."""
    path = tmp_path / "bomb.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * REPLACE ({change}) FROM (SELECT * FROM '{TRACE}' LIMIT 5)) "
            f"TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
        )
    for arguments in commands(path):
        require_sentence(arguments, capsys)


def test_sparse_files_end_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten gigabytes of nothing, with and without the marks of Parquet."""
    path = tmp_path / "sparse.parquet"
    for tail in (b"", b"\xff\xff\xff\x01PAR1", b"\x00\x00\xff\x01PAR1"):
        with path.open("wb") as file:
            file.write(b"PAR1")
            file.truncate(10 * 1024**3 - len(tail))
            file.seek(0, 2)
            file.write(tail)
        for arguments in commands(path):
            assert require_sentence(arguments, capsys) == 2


@pytest.mark.parametrize(
    "content",
    [
        b'{"records":' + bytes(120_000_000),
        b"[]," * 3_000_000,
        b'{"operationName":"' + b'"\\' * 1_000_000,
        b"1.0;2026-11-22T10:00:00Z;" + b'"x;' * 300_000,
        b"TimeGenerated,OperationName,Uri\n" + b'"a\n' * 100_000,
    ],
    ids=["nothing", "lists", "quotes", "fields", "rows"],
)
def test_packed_bombs_that_are_logs_end_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """Lines that take much time or memory count as unreadable."""
    path = tmp_path / "bomb.log.gz"
    path.write_bytes(gzip.compress(content, 1))
    assert require_sentence(["trace", str(path)], capsys) == 2


def test_a_packed_log_may_end_in_gigabytes_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is before them is read."""
    path = tmp_path / "PT1H.json.gz"
    path.write_bytes(
        gzip.compress(ENTRY.replace(b"TIME", b"2026-11-22T10:00:00Z").replace(b"NUMBER", b""))
    )
    with path.open("ab") as file:
        file.truncate(10 * 1024**3)
    assert require_sentence(["trace", str(path)], capsys) == 0


def test_numbers_and_years_that_no_request_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The entries with them do not hide the others."""
    times = (b"0000-01-01T00:00:00Z", b"9999-01-01T00:00:00Z", b"2026-11-22T10:00:00Z")
    numbers = (b"", b',"durationMs":"1e400"', b',"statusCode":"nan"', b',"operationCount":1e300')
    path = tmp_path / "PT1H.json"
    path.write_bytes(
        b"\n".join(
            ENTRY.replace(b"TIME", time).replace(b"NUMBER", number)
            for time in times
            for number in numbers
        )
    )
    assert main(["trace", str(path), "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"operations": 4' in shown or '"operations":4' in shown
    for arguments in commands(path):
        require_sentence(arguments, capsys)
