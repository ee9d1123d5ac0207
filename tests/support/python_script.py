"""Every kind of request that azure-data-tables sends: one script for its two sets of clients."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple

from azure.core import MatchConditions
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    UpdateMode,
)

TABLE = "differential"
SPECIAL_KEYS = (
    *("", " ", "a b", "%", "%25", "100%", "+", "a+b", "&", "=", "a=b&c=d", ",", ";", ":", "@", "!"),
    *("o'clock", "''", "(x)", "$", "*", "~", '"', "<>", "[]{}|^`", "ünïcödé", "日本語", "😀"),
    *("P", "p", "PartitionKey=", "RowKey='", "Tables", "$batch", "comp=acl", "a/b", "a\\b", "a#b"),
    *("a?b", "x" * 512, "ü" * 300, "\u200b", "a\tb"),
)
"""Some are forbidden, and have to be refused alike."""


class Step(NamedTuple):
    """One call of a client. ``partition`` is None for several partitions, or none."""

    label: str
    table: str
    partition: str | None
    call: Callable[[], Any]


def entity(key: str = "p", row: str = "r", **more: Any) -> dict[str, Any]:
    """An entity."""
    return {"PartitionKey": key, "RowKey": row, **more}


EVERY_TYPE: dict[str, Any] = {
    "Text": "ünïcödé \" \\ / 'x' \u2028 😀",
    "Empty": "",
    "Blob": bytes(range(256)),
    "Flag": True,
    "Number": 2**31 - 1,
    "Long": EntityProperty(2**63 - 1, EdmType.INT64),
    "Ratio": 0.1,
    "Whole": 3.0,
    "Endless": float("inf"),
    "No": float("nan"),
    "Id": uuid.UUID(int=7),
    "Then": dt.datetime(1987, 6, 5, 4, 3, 2, 100000, tzinfo=dt.UTC),
    "Url": "http://127.0.0.1:10002/devstoreaccount1",
}


def steps(service: Any, table: Any, missing: Any) -> Generator[Step, Any, None]:
    """Yield each step, and receive what its call returned or raised.

    Args:
        service: The client of the account.
        table: The client of the table `TABLE`.
        missing: The client of a table that there is not.
    """

    def step(label: str, partition: str | None, call: Callable[[], Any]) -> Step:
        return Step(label, TABLE, partition, call)

    yield step("create table", None, lambda: service.create_table(TABLE))
    yield step("create it again", None, lambda: service.create_table(TABLE))
    yield Step("invalid name", "", None, lambda: service.create_table("a-b"))
    yield Step("list tables", "", None, lambda: service.list_tables())
    yield Step("query tables", "", None, lambda: service.query_tables(f"TableName eq '{TABLE}'"))
    yield from _writes(step, table)
    yield from _special_keys(step, table)
    yield from _transactions(step, table)
    yield from _queries(step, table)
    yield from _refusals(step, table, missing)
    yield from _settings(step, service, table)
    yield step("list entities at the end", None, lambda: table.list_entities())
    yield step("delete table", None, lambda: service.delete_table(TABLE))
    yield step("query deleted table", None, lambda: table.list_entities())
    yield Step("list no tables", "", None, lambda: service.list_tables())


_Stepper = Callable[[str, str | None, Callable[[], Any]], Step]


def _writes(step: _Stepper, table: Any) -> Generator[Step, Any, None]:
    """Every kind of write, with and without conditions."""
    row = entity(**EVERY_TYPE)
    yield step("insert", "p", lambda: table.create_entity(row))
    yield step("insert again", "p", lambda: table.create_entity(row))
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        new = entity("p", f"upsert-{mode}", Number=1)
        for count in range(2):
            label = f"upsert {mode} {count}"
            yield step(label, "p", partial(table.upsert_entity, new, mode=mode))
        label = f"update {mode}"
        changed = entity("p", "r", Number=2)
        yield step(label, "p", partial(table.update_entity, changed, mode=mode))
        absent = entity("p", "absent", Number=2)
        yield step(f"{label} absent", "p", partial(table.update_entity, absent, mode=mode))
    kept = entity("types", "r", **EVERY_TYPE)
    yield step("every type", "types", lambda: table.upsert_entity(kept))
    yield step("get every type", "types", lambda: table.get_entity("types", "r"))
    row_now = yield step("get", "p", lambda: table.get_entity("p", "r"))
    etag = row_now.metadata["etag"]
    fresh: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    stale: dict[str, Any] = {**fresh, "etag": "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""}
    for name, condition in (("stale", stale), ("fresh", fresh), ("stale by now", fresh)):
        for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
            if name == "fresh" and mode is UpdateMode.REPLACE:
                continue
            yield step(
                f"update {mode} {name}",
                "p",
                partial(table.update_entity, entity("p", "r", Number=3), mode=mode, **condition),
            )
    yield step("delete stale", "p", lambda: table.delete_entity("p", "r", **stale))
    yield step("delete", "p", lambda: table.delete_entity("p", "r"))
    # The client hides this 404.
    yield step("delete again", "p", lambda: table.delete_entity("p", "r"))
    yield step("get deleted", "p", lambda: table.get_entity("p", "r"))
    large = entity("large", "r", **{f"Text{number}": "x" * 32_000 for number in range(15)})
    yield step("large entity", "large", lambda: table.upsert_entity(large))
    yield step("get large entity", "large", lambda: table.get_entity("large", "r"))
    too_large = {**large, **{f"More{number}": "x" * 32_000 for number in range(20)}}
    yield step("too large entity", "large", lambda: table.upsert_entity(too_large))
    blob = entity("large", "b", Blob=bytes(65_536))
    yield step("large property", "large", lambda: table.upsert_entity(blob))
    blob_over = entity("large", "b", Blob=bytes(65_537))
    yield step("too large property", "large", lambda: table.upsert_entity(blob_over))
    wide = entity("large", "w", **{f"P{number}": number for number in range(252)})
    yield step("252 properties", "large", lambda: table.upsert_entity(wide))
    wider = {**wide, "Last": 1}
    yield step("253 properties", "large", lambda: table.upsert_entity(wider))


def _special_keys(step: _Stepper, table: Any) -> Generator[Step, Any, None]:
    """Keys with characters that are special in a URL or a filter, in both places."""
    keys = "PartitionKey eq @key and RowKey eq @row"
    for number, special in enumerate(SPECIAL_KEYS):
        for key, row in ((special, f"r{number}"), ("q", special)):
            name = f"{key!a:.40} {row!a:.40}"
            for label, call in (
                ("insert", partial(table.create_entity, entity(key, row, N=1))),
                ("upsert", partial(table.upsert_entity, entity(key, row, N=2))),
                ("update", partial(table.update_entity, entity(key, row, N=3))),
                ("get", partial(table.get_entity, key, row)),
            ):
                yield step(f"{label} {name}", key, call)
            found = {"key": key, "row": row}
            yield step(
                f"query {name}",
                key,
                partial(
                    table.query_entities,
                    keys,
                    parameters=found,
                ),
            )
            if number % 2:
                yield step(f"delete {name}", key, partial(table.delete_entity, key, row))


def _transactions(step: _Stepper, table: Any) -> Generator[Step, Any, None]:
    """Transactions that succeed, and ones that fail in any part."""

    def submit(
        label: str, operations: list[Any], key: str | None = "t"
    ) -> Generator[Step, Any, None]:
        yield step(f"transaction {label}", key, lambda: table.submit_transaction(operations))

    rows = [entity("t", f"{number:03d}", Number=number) for number in range(100)]
    yield from submit("of a hundred inserts", [("create", row) for row in rows])
    yield from submit("that inserts again", [("create", row) for row in rows[:3]])
    new = entity("t", "new", Text="ü'%+")
    yield from submit(
        "of every kind",
        [
            ("create", new),
            ("upsert", rows[0], {"mode": "merge"}),
            ("upsert", rows[1], {"mode": "replace"}),
            ("update", rows[2], {"mode": "merge"}),
            ("update", rows[3], {"mode": "replace"}),
            ("delete", rows[4]),
        ],
    )
    yield from submit("that deletes again", [("upsert", rows[0]), ("delete", rows[4])])
    yield from submit("with an absent row", [("upsert", rows[5]), ("update", entity("t", "none"))])
    stale = {
        "etag": "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"",
        "match_condition": MatchConditions.IfNotModified,
    }
    yield from submit("with a stale row", [("upsert", rows[5]), ("update", rows[6], stale)])
    yield from submit("of one", [("upsert", rows[7])])
    yield from submit(
        "of special keys", [("upsert", entity("o'clock ü", "%+ '", Number=1))], "o'clock ü"
    )
    yield from submit("with a row twice", [("upsert", rows[8]), ("upsert", rows[8])])
    too_many = [("upsert", entity("t", f"m{number:03d}")) for number in range(101)]
    yield from submit("of a hundred and one", too_many)
    text = "x" * 30_000
    large = [("upsert", entity("t", f"l{number}", Text=text, More=text)) for number in range(50)]
    yield from submit("of 3 MB", large)
    yield step("entity after them", "t", lambda: table.get_entity("t", "005"))


def _queries(step: _Stepper, table: Any) -> Generator[Step, Any, None]:
    """Filters, columns, pages and continuations."""
    filters: Mapping[str, str | None] = {
        "PartitionKey eq 't'": "t",
        "PartitionKey eq 't' and RowKey ge '010' and RowKey lt '020'": "t",
        "PartitionKey eq 't' and Number gt 90": "t",
        "PartitionKey eq 'nobody'": "nobody",
        "PartitionKey eq 'o''clock'": "o'clock",
        "PartitionKey ge 'p' and PartitionKey lt 'u'": None,
        "Number ge 95 or Number lt 2": None,
        "not (Number ge 5) and Number ne 3": None,
        "Text eq 'ü''%+'": None,
        "Flag eq true": None,
        "Then eq datetime'1987-06-05T04:03:02.1Z'": None,
        "Long ge 5L and Ratio lt 0.5": None,
        "Id eq guid'00000000-0000-0000-0000-000000000007'": None,
        "Blob eq X'00ff'": None,
        "no filter at all": None,
        "PartitionKey eq": None,
        "PartitionKey eq 't' and (": None,
    }
    for text, key in filters.items():
        yield step(f"query {text}", key, partial(table.query_entities, text))
    some = "PartitionKey eq 't' and RowKey lt '030'"
    for size in (1, 7, 1000):
        yield step(
            f"pages of {size}",
            "t",
            partial(
                table.query_entities,
                some,
                results_per_page=size,
            ),
        )
    yield step("pages of all", None, lambda: table.list_entities(results_per_page=40))
    for select in (["RowKey"], ["PartitionKey", "RowKey", "Number"], ["Nothing"], ["Timestamp"]):
        yield step(
            f"select {select}",
            "t",
            partial(table.query_entities, "PartitionKey eq 't'", select=select),
        )
    yield step("get with select", "t", lambda: table.get_entity("t", "001", select=["Number"]))
    yield step("too large page", None, lambda: table.list_entities(results_per_page=1001))


def _refusals(step: _Stepper, table: Any, missing: Any) -> Generator[Step, Any, None]:
    """Requests that are refused."""
    for label, call in (
        ("insert", lambda: missing.create_entity(entity())),
        ("upsert", lambda: missing.upsert_entity(entity())),
        ("update", lambda: missing.update_entity(entity())),
        ("get", lambda: missing.get_entity("p", "r")),
        ("delete", lambda: missing.delete_entity("p", "r")),
        ("transaction", lambda: missing.submit_transaction([("upsert", entity())])),
    ):
        yield Step(f"{label} in no table", missing.table_name, "p", call)
    yield Step("query in no table", missing.table_name, None, lambda: missing.list_entities())
    yield Step("delete no table", missing.table_name, None, lambda: missing.delete_table())
    reserved = entity("p", "bad", **{"a b": 1})
    yield step("property with a blank", "p", lambda: table.upsert_entity(reserved))
    long_name = entity("p", "bad", **{"n" * 256: 1})
    yield step("property with a long name", "p", lambda: table.upsert_entity(long_name))


def _settings(step: _Stepper, service: Any, table: Any) -> Generator[Step, Any, None]:
    """Requests about the account and the table itself."""
    yield Step("properties", "", None, lambda: service.get_service_properties())
    retention = TableRetentionPolicy(enabled=True, days=5)
    metrics = TableMetrics(enabled=True, include_apis=True, retention_policy=retention)
    logging = TableAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention)
    cors = [
        TableCorsRule(
            ["http://page.example"],
            ["GET", "PUT"],
            allowed_headers=["x-ms-*"],
            exposed_headers=["x-ms-*"],
            max_age_in_seconds=60,
        )
    ]
    yield Step(
        "set properties",
        "",
        None,
        lambda: service.set_service_properties(
            analytics_logging=logging, hour_metrics=metrics, minute_metrics=metrics, cors=cors
        ),
    )
    yield Step("properties then", "", None, lambda: service.get_service_properties())
    yield Step("statistics", "", None, lambda: service.get_service_stats())
    yield Step("access policy", "", None, lambda: table.get_table_access_policy())
    start = dt.datetime(1999, 1, 1, tzinfo=dt.UTC)
    policy = TableAccessPolicy(permission="raud", start=start, expiry=start)
    yield Step(
        "set access policy",
        "",
        None,
        lambda: table.set_table_access_policy({"reader": policy, "nothing": None}),
    )
    yield Step("access policy then", "", None, lambda: table.get_table_access_policy())
