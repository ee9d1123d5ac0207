"""Operations of a trace under the keys of a scheme."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from harness.measure.record.origin import ReplayPart
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.head import RUN, TraceHead
from harness.trace.operations import TracedOperation, TracedParts, TracedQuery
from harness.trace.reader import Trace
from harness.trace.replay.preparation import Preparation
from harness.trace.replay.selection import Selection
from harness.trace.replay.source import ReplaySource
from harness.trace.whatif.scheme import Scheme, parse_scheme
from tests.support.memory_tables import MemoryTables
from tests.support.recorded import Application, executed, record
from tests.support.traced import traced


def scheme(partition_key: str, row_key: str = "{row_key}", match: str | None = None) -> Scheme:
    content: dict[str, object] = {"keys": {"partition_key": partition_key, "row_key": row_key}}
    if match is not None:
        content["match"] = {"partition_key": match}
    return parse_scheme("a scheme", content, "scheme.toml")


def row(
    kind: Kind,
    detail: TracedParts | TracedQuery | None = None,
    *,
    partition_key: str = "2026-11-20__s7",
    row_key: str = "",
) -> TracedOperation:
    of = traced(kind, partition_key, row_key, table="Orders", detail=detail)
    return of._replace(entities=8, returned=8, bytes_sent=800)


def sent(scheme: Scheme, row: TracedOperation) -> list[TracedOperation]:
    return list(Selection(TraceHead(started_ms=0, source=RUN), scheme).sent(row))


BY_BUCKET = scheme("{partition_key}-{row_key:bucket4}")
BY_SENSOR = scheme("{sensor}_{day:month}", "{day}_{row_key}", "(?P<day>[0-9-]+)__(?P<sensor>.+)")


def test_a_range_of_rows_stays_a_range() -> None:
    """Bounds get what the new RowKeys begin with; a whole partition becomes a range of its rows."""
    query = TracedQuery(row_from="08", row_before="12", compared=("Value",), top=5)
    (ranged,) = sent(BY_SENSOR, row(Kind.QUERY, query))
    assert ranged.partition_key == "s7_2026-11"
    assert ranged.detail == query._replace(row_from="2026-11-20_08", row_before="2026-11-20_12")
    (whole,) = sent(BY_SENSOR, row(Kind.QUERY, TracedQuery()))
    assert whole.detail == TracedQuery(row_from="2026-11-20_", row_before="2026-11-20`")


def test_a_transaction_over_partitions_becomes_several() -> None:
    """Every part stays, each in the transaction of its new partition, with its share of bytes."""
    detail = TracedParts(
        kinds=(Kind.INSERT,) * 8,
        row_keys=tuple(f"r{number}" for number in range(8)),
        sizes=(100,) * 8,
    )
    parts = sent(scheme("{row_key:bucket4}"), row(Kind.TRANSACTION, detail))
    assert len(parts) > 1
    assert sum(part.entities for part in parts) == 8
    assert sum(part.bytes_sent for part in parts) == 800
    found: set[str | None] = set()
    for part in parts:
        assert isinstance(part.detail, TracedParts)
        found.update(part.detail.row_keys)
    assert found == set(detail.row_keys)


def test_a_query_goes_to_every_partition_that_it_needs() -> None:
    """With buckets to each of them, and without a way to tell to the whole table."""
    query = row(Kind.QUERY, TracedQuery())
    to_each = sent(scheme("{row_key:bucket4}"), query)
    assert [one.partition_key for one in to_each] == ["0", "1", "2", "3"]
    assert sum(one.entities for one in to_each) == 8
    (scan,) = sent(scheme("{row_key}"), query)
    assert scan.partition_key == WHOLE_TABLE


def test_keys_that_do_not_match_stay() -> None:
    """An entity that the scheme does not know keeps its keys."""
    other = row(Kind.INSERT, partition_key="odd", row_key="x")
    assert sent(BY_SENSOR, other) == [other]


def test_what_a_scheme_does_not_match_or_merges_is_said(tmp_path: Path) -> None:
    """Operations that keep their keys, and entities that would be lost, are in the notes; a scheme
    for a table that the trace lacks is refused.
    """
    path = tmp_path / "app.parquet"
    record(path, Application(random.Random(3), ranges=False), 100)

    def prepared(other: Scheme) -> ReplayPart:
        trace = Trace(path)
        return Preparation(trace, path.name, "", entity_bytes=500, scheme=other).part

    one = prepared(scheme("{key}", match="(?P<key>p0)"))
    assert re.fullmatch(r"\d+ operations with the recorded keys, because .+", one.notes[-1])
    merged = prepared(scheme("all"))
    assert len(merged.notes) == 1
    assert re.fullmatch(r"\d+ entities not loaded, because .+", merged.notes[0])
    assert not prepared(BY_BUCKET).notes
    unknown = {"table": "carts", "keys": {"partition_key": "all"}}
    with pytest.raises(SetupError, match="the trace has no table 'carts'; it has 'Index', 'Ord"):
        prepared(parse_scheme("a scheme", unknown, "scheme.toml"))


def test_every_write_succeeds_under_new_keys(tmp_path: Path) -> None:
    """A scheme without collisions changes no outcome of single operations, and no entity of a
    write: the rows that were there are loaded under their new keys.
    """
    path = tmp_path / "app.parquet"
    record(path, Application(random.Random(3), ranges=False), 400)
    other = BY_BUCKET
    preparation = Preparation(Trace(path), path.name, "", entity_bytes=500, scheme=other)
    part: ReplayPart = preparation.part
    source = ReplaySource(path, part, "run", scheme=other, preparation=preparation)
    tables = MemoryTables()
    for operation in source.loading():
        assert tables.execute(operation).outcome.succeeded
    assert part.keys == "a scheme"
    assert part.operations > 400
    for due in source.due():
        result = executed(tables, source.operation(due.row))
        if result.operation.kind is not Kind.QUERY:
            assert result.outcome is due.row.shape.outcome
            assert result.entities == due.row.entities
    source.close()
