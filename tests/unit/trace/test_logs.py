"""Logs of Azure Storage become traces: every operation, in every format, with what it lacks."""

from __future__ import annotations

import codecs
import csv
import gzip
import html
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.outcome import Outcome
from harness.trace.logs.entries import utc_seconds, without_port
from harness.trace.operations import TracedOperation, TracedQuery
from harness.trace.sources import SourceFormat, convert, format_of, holds_operations, opened

HOST = "https://contoso.table.core.windows.net:443"
ENTITY = "/Orders(PartitionKey='north',RowKey='o%27%271')"
FILTER = quote("PartitionKey eq 'north' and RowKey ge 'a' and RowKey lt 'c' and Total gt 5")

REQUESTS: list[dict[str, Any]] = [
    {"name": "InsertEntity", "path": "/Orders", "status": 201},
    {"name": "InsertOrMergeEntity", "path": ENTITY, "status": 204},
    {"name": "InsertOrReplaceEntity", "path": ENTITY, "status": 204},
    {"name": "MergeEntity", "path": ENTITY, "status": 412, "text": "UpdateConditionNotSatisfied"},
    {"name": "UpdateEntity", "path": ENTITY, "status": 204},
    {"name": "DeleteEntity", "path": ENTITY, "status": 404, "text": "ResourceNotFound"},
    {"name": "QueryEntity", "path": ENTITY, "status": 200},
    {"name": "QueryEntities", "path": f"/Orders()?$filter={FILTER}&$top=20&$select=Total"},
    {"name": "QueryEntities", "path": "/Orders"},
    {"name": "EntityGroupTransaction", "path": "/$batch", "status": 202},
    {"name": "CreateTable", "path": "/Tables", "status": 201},
    {"name": "QueryTables", "path": "/Tables"},
    {"name": "GetTableServiceProperties", "path": "/?restype=service&comp=properties"},
]
KINDS = [
    Kind.INSERT,
    Kind.UPSERT_MERGE,
    Kind.UPSERT_REPLACE,
    Kind.UPDATE_MERGE,
    Kind.UPDATE_REPLACE,
    Kind.DELETE,
    Kind.POINT_QUERY,
    Kind.QUERY,
    Kind.QUERY,
    Kind.TRANSACTION,
]

Writer = Callable[[list[dict[str, Any]]], str]


def entry(request: dict[str, Any], number: int) -> dict[str, Any]:
    """A request as a log entry, with the names of the JSON format."""
    return {
        "time": request.get("time", f"2026-11-22T10:00:{number:02}.1234567Z"),
        "operationName": request["name"],
        "statusCode": request.get("status", 200),
        "statusText": request.get("text", "Success"),
        "durationMs": 12,
        "callerIpAddress": "203.0.113.7:50123",
        "uri": HOST + request["path"],
        "correlationId": f"00000000-0000-0000-0000-{number:012}",
        "properties": {
            "accountName": "contoso",
            "clientRequestId": request.get("id", f"id-{number}"),
            "userAgentHeader": "app/1.0",
            "requestBodySize": 300,
            "responseBodySize": 40,
            "operationCount": request.get("part", 0),
        },
    }


def json_lines(requests: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(entry(one, place)) for place, one in enumerate(requests))


def json_records(requests: list[dict[str, Any]]) -> str:
    return json.dumps({"records": [entry(one, place) for place, one in enumerate(requests)]})


def json_records_in_lines(requests: list[dict[str, Any]]) -> str:
    return '{"records":[\n' + ",\n".join(json_lines(requests).splitlines()) + "\n]}"


def json_list(requests: list[dict[str, Any]]) -> str:
    """What Azure CLI prints for a query of Log Analytics."""
    return json.dumps([columns(one, place) for place, one in enumerate(requests)])


def answer_of_a_query(requests: list[dict[str, Any]]) -> str:
    """What the API of Log Analytics answers."""
    rows = [columns(one, place) for place, one in enumerate(requests)]
    names = [{"name": name, "type": "string"} for name in rows[0]]
    table = {
        "name": "PrimaryResult",
        "columns": names,
        "rows": [[*row.values()] for row in rows],
    }
    return json.dumps({"tables": [table]})


def laid_out(write: Writer) -> Writer:
    """The same JSON over many lines."""
    return lambda requests: json.dumps(json.loads(write(requests)), indent=2)


def columns(request: dict[str, Any], number: int) -> dict[str, Any]:
    """A request with the columns of Log Analytics."""
    made = entry(request, number)
    fields = {**made, **made.pop("properties"), "statusCode": str(made["statusCode"])}
    fields["timeGenerated"] = fields.pop("time")
    return {name[0].upper() + name[1:]: value for name, value in fields.items()}


def csv_of(time_name: str, time_of: Callable[[str], str]) -> Writer:
    """Makes the CSV of Log Analytics, which names its columns in its own case."""

    def write(requests: list[dict[str, Any]]) -> str:
        out = io.StringIO()
        rows = []
        for place, one in enumerate(requests):
            made = entry(one, place)
            inner = made.pop("properties")
            fields = {
                name[0].upper() + name[1:]: value for name, value in {**made, **inner}.items()
            }
            rows.append({time_name: time_of(fields.pop("Time")), **fields})
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        return "\ufeff" + out.getvalue()

    return write


def portal_time(text: str) -> str:
    return f"11/22/2026, 10:00:{text[17:23]} AM"


def classic(version: str) -> Writer:
    """Makes lines of Storage Analytics."""

    def write(requests: list[dict[str, Any]]) -> str:
        lines = []
        for place, one in enumerate(requests):
            made = entry(one, place)
            inner = made["properties"]

            def quoted(text: str) -> str:
                return f'"{html.escape(text)}"'

            fields = [
                version,
                made["time"],
                made["operationName"],
                made["statusText"],
                str(made["statusCode"]),
                "12",
                "9",
                "authenticated",
                "contoso",
                "contoso",
                "table",
                quoted(made["uri"]),
                quoted("/contoso/Orders"),
                made["correlationId"],
                str(inner["operationCount"]),
                made["callerIpAddress"],
                "2019-02-02",
                "500",
                "300",
                "200",
                "40",
                "300",
                "",
                "",
                quoted("W/\"datetime'2026'\""),
                "",
                quoted("If-Match=*;If-None-Match=x"),
                quoted("app/1.0"),
                "",
                quoted(inner["clientRequestId"]),
            ]
            if version == "2.0":
                fields += [""] * 8
            lines.append(";".join(fields))
        return "\n".join(lines)

    return write


FORMATS: dict[str, tuple[Writer, SourceFormat]] = {
    "json": (json_lines, SourceFormat.AZURE_JSON),
    "event hub": (json_records, SourceFormat.AZURE_JSON),
    "event hub, laid out": (laid_out(json_records), SourceFormat.AZURE_JSON),
    "records, an entry a line": (json_records_in_lines, SourceFormat.AZURE_JSON),
    "list": (json_list, SourceFormat.AZURE_JSON),
    "list, laid out": (laid_out(json_list), SourceFormat.AZURE_JSON),
    "answer of a query": (answer_of_a_query, SourceFormat.AZURE_JSON),
    "answer of a query, laid out": (laid_out(answer_of_a_query), SourceFormat.AZURE_JSON),
    "csv": (csv_of("TimeGenerated", str), SourceFormat.AZURE_CSV),
    "csv of the portal": (csv_of("TimeGenerated [UTC]", portal_time), SourceFormat.AZURE_CSV),
    "classic 1.0": (classic("1.0"), SourceFormat.CLASSIC),
    "classic 2.0": (classic("2.0"), SourceFormat.CLASSIC),
}


def read(path: Path) -> tuple[list[TracedOperation], list[str]]:
    with opened(path) as trace:
        return list(trace.rows()), trace.notes


@pytest.mark.parametrize("name", FORMATS)
def test_every_operation_of_every_format(name: str, tmp_path: Path) -> None:
    """Kind, keys, instant, bytes and status of each operation are those of the log."""
    write, source = FORMATS[name]
    path = tmp_path / "log"
    path.write_text(write(REQUESTS) + "\n", encoding="utf-8")
    assert format_of(path) is source
    with opened(path) as trace:
        rows, notes, head = list(trace.rows()), trace.notes, trace.head
    assert (head.source, head.account) == (source.value, "contoso")
    assert [row.shape.kind for row in rows] == KINDS
    assert [row.at_ms for row in rows] == [123 + 1000 * place for place in range(len(rows))]
    statuses = [row.shape.attempts[-1].status for row in rows]
    assert statuses == [201, 204, 204, 412, 204, 404, 200, 200, 200, 202]
    assert {(row.bytes_sent, row.bytes_received) for row in rows} == {(300, 40)}
    assert {row.shape.client for row in rows} == {"203.0.113.7 app/1.0"}
    assert {row.shape.table for row in rows} == {"Orders", ""}
    insert, *singles = rows[:7]
    assert (insert.partition_key, insert.row_key) == (None, None)
    assert {(row.partition_key, row.row_key) for row in singles} == {("north", "o'1")}
    query, scan, batch = rows[7:]
    assert query.partition_key == "north"
    assert query.detail == TracedQuery(
        row_from="a", row_before="c", compared=("Total",), selected=("Total",), top=20
    )
    assert (scan.partition_key, scan.shape.estimated) == (WHOLE_TABLE, True)
    assert (batch.partition_key, batch.row_key, batch.detail) == (None, "", None)
    assert batch.shape.estimated
    assert [row.shape.outcome for row in rows[3:6]] == [
        Outcome.PRECONDITION,
        Outcome.SUCCESS,
        Outcome.NOT_FOUND,
    ]
    assert notes == ["Left out: 3 requests not about entities."]


@pytest.mark.parametrize("name", FORMATS)
def test_attempts_of_one_operation_are_joined(name: str, tmp_path: Path) -> None:
    """An SDK repeats its request id, so that throttled attempts and a success are one operation."""
    times = [f"2026-11-22T10:00:0{second}.0000000Z" for second in range(4)]
    throttled = {"status": 503, "text": "ThrottlingError", "id": "one"}
    requests = [
        {"name": "UpdateEntity", "path": ENTITY, "time": times[0], **throttled},
        {"name": "UpdateEntity", "path": ENTITY, "time": times[1], "status": 204, "id": "other"},
        {
            "name": "UpdateEntity",
            "path": ENTITY,
            "time": times[2],
            **throttled,
            "text": "ServerBusy",
        },
        {"name": "UpdateEntity", "path": ENTITY, "time": times[3], "status": 204, "id": "one"},
    ]
    path = tmp_path / "log"
    path.write_text(FORMATS[name][0](requests), encoding="utf-8")
    rows, _ = read(path)
    assert [(row.at_ms, row.done_ms) for row in rows] == [(0, 3012), (1000, 1012)]
    assert [answer[:2] for answer in rows[0].shape.attempts] == [
        (503, "ServerBusy"),
        (503, "ServerBusy"),
        (204, ""),
    ]


def test_a_status_message_gives_the_error_code(tmp_path: Path) -> None:
    """Time-outs and interrupted requests have the outcomes of the answers that the client saw."""
    requests: list[dict[str, Any]] = [
        {"name": "QueryEntity", "path": ENTITY, "status": 500, "text": "SASServerTimeoutError"},
        {"name": "QueryEntity", "path": ENTITY, "status": "Unknown", "text": "NetworkError"},
        {"name": "QueryEntity", "path": ENTITY, "status": 403, "text": "AuthorizationError"},
        {"name": "QueryEntity", "path": ENTITY, "status": 200, "text": "SASSuccess"},
    ]
    path = tmp_path / "log"
    path.write_text(json_lines(requests), encoding="utf-8")
    rows, _ = read(path)
    assert [row.shape.outcome for row in rows] == [
        Outcome.THROTTLED,
        Outcome.CONNECTION,
        Outcome.FORBIDDEN,
        Outcome.SUCCESS,
    ]
    assert rows[0].shape.attempts[0][:2] == (500, "OperationTimedOut")


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    """A cut line, another text, and requests that name no table do not end the reading."""
    lines = classic("1.0")(REQUESTS[:2]).splitlines()
    path = tmp_path / "log"
    odd = lines[1].replace("InsertOrMergeEntity", "UpdateEntity").replace("Orders(", "x(")
    path.write_text("\n".join([lines[0], "text", lines[1][:80], odd, lines[1]]))
    rows, notes = read(path)
    assert [row.shape.kind for row in rows] == KINDS[:2]
    assert notes == [
        "Left out: 2 unreadable lines.",
        "Left out: 1 request without a target.",
    ]


def test_an_entry_that_was_cut_does_not_swallow_others(tmp_path: Path) -> None:
    """A file cut at both ends, with a cut entry in it, gives all whole entries."""
    lines = json_lines(REQUESTS[:10]).splitlines()
    path = tmp_path / "log"
    path.write_text(
        "\n".join([lines[0][40:], *lines[1:4], lines[4][:90], *lines[5:9], lines[9][:50]])
    )
    rows, notes = read(path)
    assert [row.shape.kind for row in rows] == [*KINDS[1:4], *KINDS[5:9]]
    assert notes == ["Left out: 3 unreadable lines."]
    whole = laid_out(json_list)(REQUESTS[:10])
    path.write_text(whole[: whole.rindex("Uri")])
    rows, notes = read(path)
    assert [row.shape.kind for row in rows] == KINDS[:9]
    assert notes == ["Left out: 1 unreadable line."]


def test_a_field_of_csv_may_have_line_breaks(tmp_path: Path) -> None:
    """In quotes; a row that is cut within quotes takes no whole row with it."""
    header, *rows = csv_of("TimeGenerated", str)(REQUESTS[:10]).splitlines()
    broken = [row.replace("app/1.0", '"app\n""1\r\n.0,"') for row in rows]
    path = tmp_path / "log"
    path.write_text("\n".join([header, *broken]), encoding="utf-8")
    found, notes = read(path)
    assert [row.shape.kind for row in found] == KINDS
    assert {row.shape.client for row in found} == {'203.0.113.7 app\n"1\r\n.0,'}
    assert notes == []
    cut = broken[3][: broken[3].index("1\r\n")]
    path.write_text("\n".join([header, *broken[:3], cut, *broken[4:9], rows[9], cut]))
    found, notes = read(path)
    assert [row.shape.kind for row in found] == [*KINDS[:3], *KINDS[4:]]
    assert notes == ["Left out: 2 unreadable lines."]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "byte order mark": lambda data: codecs.BOM_UTF8 + data.removeprefix(codecs.BOM_UTF8),
    "gzip with byte order mark": lambda data: gzip.compress(
        codecs.BOM_UTF8 + data.removeprefix(codecs.BOM_UTF8)
    ),
    "UTF-16": lambda data: data.decode("utf-8-sig").encode("utf-16"),
    "line ends of Windows": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
}


READERS = ("json", "list", "csv", "classic 1.0")
"""A format of each reader."""


@pytest.mark.parametrize(
    ("name", "packed"),
    dict.fromkeys((*itertools.product(READERS, PACKED), *zip(FORMATS, itertools.cycle(PACKED)))),
)
def test_a_log_is_read_however_it_is_packed(name: str, packed: str, tmp_path: Path) -> None:
    """Each entry is read, the first one too."""
    write, source = FORMATS[name]
    path = tmp_path / "log"
    path.write_bytes(PACKED[packed](write(REQUESTS).encode()))
    assert format_of(path) is source
    rows, notes = read(path)
    assert [row.shape.kind for row in rows] == KINDS
    assert notes == ["Left out: 3 requests not about entities."]


def test_a_cut_packed_log_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """What follows is left out, which is said; another file of the folder is read."""
    at = "2026-11-22T10:00:01Z"
    requests = [{**REQUESTS[6], "id": str(number), "time": at} for number in range(6000)]
    data = gzip.compress(json_lines(requests).encode())
    (tmp_path / "a.json.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "b.json").write_text(json_lines(requests[:5]))
    rows, notes = read(tmp_path)
    assert 1000 < len(rows) < 5000
    assert "a.json.gz is cut or damaged: the rest of it was left out." in notes


def test_parts_of_a_request_count_once(tmp_path: Path) -> None:
    """Further entries of one request are no operations of their own."""
    first = {"name": "EntityGroupTransaction", "path": "/$batch", "status": 202, "id": "b"}
    path = tmp_path / "log"
    path.write_text(json_lines([first, {**first, "name": "InsertEntity", "part": 1}]))
    rows, notes = read(path)
    assert len(rows) == 1
    assert notes == ["Left out: 1 further entry of a request."]


@pytest.mark.parametrize("write", [json_lines, classic("1.0")])
def test_lines_that_a_log_has_again_count_once(write: Writer, tmp_path: Path) -> None:
    """Storage writes lines of an hour twice at times; the service's own id tells them."""
    for name, requests in (("a", REQUESTS[:10]), ("b", REQUESTS[:3])):
        (tmp_path / name).write_text(write(requests))
    rows, notes = read(tmp_path)
    assert [row.shape.kind for row in rows] == KINDS
    assert notes == ["Left out: 3 lines that the log has again."]


def test_a_folder_of_logs_is_one_trace(tmp_path: Path) -> None:
    """Azure writes a file an hour: all files of a folder are read, in order of time."""
    for hour, name in ((11, "a"), (10, "b")):
        folder = tmp_path / "y=2026" / name
        folder.mkdir(parents=True)
        request = {**REQUESTS[6], "time": f"2026-11-22T{hour}:00:00Z"}
        (folder / "PT1H.json").write_text(json_lines([request]))
    rows, _ = read(tmp_path)
    assert [row.at_ms for row in rows] == [0, 3_600_000]


def test_other_files_are_refused(tmp_path: Path) -> None:
    """The message names the formats."""
    path = tmp_path / "log"
    for text in ("some text\n", "a,b,c\n1,2,3\n"):
        path.write_text(text)
        with pytest.raises(SetupError, match="neither a trace"):
            format_of(path)
    path.write_bytes(b"")
    with pytest.raises(SetupError, match="is empty"):
        format_of(path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "junit.xml").write_text("<testsuites/>")
    (tmp_path / "results" / "run.json").write_text('{\n "schema_version": 1,\n "run_id": "r"\n}')
    with pytest.raises(SetupError, match=r"run.json is a record, which holds no single oper"):
        convert(tmp_path / "results", tmp_path / "out")
    assert not holds_operations(tmp_path / "results")
    path.write_text('{"records": ["text"]}')
    with pytest.raises(SetupError, match=r"no operation on entities. Left out: 1 unreadable line$"):
        convert(path, tmp_path / "out")
    with pytest.raises(SetupError, match="No such file"):
        format_of(tmp_path / "missing")


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2026-11-22T10:00:01.5000000Z", 1.5),
        ("2026/11/22 10:00:01.5000000", 1.5),
        ("2026-11-22T10:00:01+00:00", 1.0),
        ("2026-11-22T12:00:01.5+02:00", 1.5),
        ("2026-11-22 04:30:01-0530", 1.0),
        ("11/22/2026, 10:00:01.500 AM", 1.5),
        ("11/22/2026 10:00:01", 1.0),
        ("11/22/2026, 10:00:01 PM", 43_201.0),
    ],
)
def test_times(text: str, second: float) -> None:
    """Times of all exports are UTC, unless they name their offset."""
    assert utc_seconds(text) == 1_795_341_600 + second


def test_an_export_in_another_time_zone_is_refused(tmp_path: Path) -> None:
    """Its lines would be of another hour."""
    path = tmp_path / "log.csv"
    path.write_text(csv_of("TimeGenerated [Local Time]", portal_time)(REQUESTS), encoding="utf-8")
    with pytest.raises(SetupError, match="the times of the log are in Local Time: export it in"):
        convert(path, tmp_path / "out")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-22", "2026-13-40T10:00:00Z"])
def test_what_is_not_a_time(text: str) -> None:
    """Anything else is none."""
    assert utc_seconds(text) is None


def test_addresses_lose_their_port() -> None:
    """A port differs from connection to connection."""
    assert without_port("203.0.113.7:50123") == "203.0.113.7"
    assert without_port("[2001:db8::1]:443") == "[2001:db8::1]"
    assert without_port("2001:db8::1") == "2001:db8::1"
    assert without_port("") == ""
