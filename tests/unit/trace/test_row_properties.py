"""Values of properties in a trace, and what it shows of those of the rows of its operations."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from harness.gateway.limits import limits_path, load_limits
from harness.measure.counts.redaction import Aliases
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.trace.blocks import Alias
from harness.trace.head import TraceHead
from harness.trace.operations import TracedParts, TracedQuery
from harness.trace.reader import Trace
from harness.trace.recorder import Recorder
from harness.trace.replay.preparation import Preparation
from harness.trace.row_properties import moves
from harness.trace.sources import convert, opened
from harness.trace.whatif.scheme import parse_scheme
from harness.trace.whatif.screening import screen
from harness.trace.whatif.whatif import what_if
from harness.trace.writer import TraceWriter
from tests.support.recorded import STARTED_S
from tests.support.results import done
from tests.support.traced import content_of

BY_CUSTOMER = parse_scheme(
    "mine", {"properties": ["Customer"], "keys": {"partition_key": "{Customer}"}}, "mine.toml"
)
WRITES = (
    (Kind.POINT_QUERY, "a", None),
    (Kind.INSERT, "a", {"Customer": "c1", "Secret": "anna"}),
    (Kind.UPSERT_MERGE, "a", {"Value": 1}),
    (Kind.UPDATE_MERGE, "a", {"Customer": 2.0}),
    (Kind.DELETE, "a", None),
    (Kind.POINT_QUERY, "never written", None),
)


def write(kind: Kind, row_key: str, properties: Any = None) -> Operation:
    return Operation(kind=kind, partition_key="p", row_key=row_key, properties=properties)


OPERATIONS = (
    *(write(*one) for one in WRITES),
    transaction((write(Kind.INSERT, "b", {"Customer": "c3"}), write(Kind.DELETE, "a"))),
    Operation(kind=Kind.QUERY, partition_key="p", filter="Customer eq 'c3' and Secret ne 'anna'"),
)


def recorded(path: Path, alias: Alias | None = None, failed: int | None = None) -> Path:
    """Record the operations, of which one is refused."""
    recorder = Recorder(("Customer", "Region"))
    for number, operation in enumerate(OPERATIONS):
        outcome = Outcome.PRECONDITION if number == failed else Outcome.SUCCESS
        query = operation.kind is Kind.QUERY
        recorder.add(
            done(
                operation,
                STARTED_S + number / 100,
                0.004,
                outcome=outcome,
                entities=7 if query else 1,
                entities_returned=2 if query else 0,
            ),
            "app",
        )
    head = TraceHead(
        started_ms=STARTED_S * 1000, source="watch", properties="Customer,Region", keys="nothing"
    )
    with TraceWriter(path, head, alias) as writer:
        writer.append(recorder.drain(0.0, final=True))
    assert not writer.problem
    return path


def test_values_are_recorded_and_nothing_else_of_an_entity(tmp_path: Path) -> None:
    """Of single writes, parts of transactions and filters, also in a converted trace."""
    convert(recorded(tmp_path / "a"), tmp_path / "b.parquet")
    trace = Trace(tmp_path / "b.parquet")
    assert trace.properties == ("Customer", "Region") == trace.head.property_names
    rows = list(trace.rows())
    assert [query[2] for query, _ in trace.queries()] == [rows[-1].detail]
    assert [row.properties for row in rows[:5]] == [
        None,
        {"Customer": "c1"},
        None,
        {"Customer": "2"},
        None,
    ]
    parts, query = rows[6].detail, rows[7].detail
    assert isinstance(parts, TracedParts)
    assert isinstance(query, TracedQuery)
    assert [part.properties for part in parts.each()] == [{"Customer": "c3"}, {}]
    assert query.equal == (("Customer", "c3"),)
    assert b"anna" not in content_of(tmp_path / "b.parquet")


def test_aliases_of_values_are_equal_where_values_are(tmp_path: Path) -> None:
    """In writes, parts and filters; and the value itself is nowhere."""
    aliases = Aliases(b"secret")
    path = recorded(tmp_path / "a", aliases.key)
    trace = Trace(path)
    rows = list(trace.rows())
    assert rows[1].properties == {"Customer": aliases.key("c1")}
    parts, query = rows[6].detail, rows[7].detail
    assert isinstance(parts, TracedParts)
    assert isinstance(query, TracedQuery)
    assert query.equal == tuple((parts.properties[0] or {}).items())
    assert b'"c1"' not in content_of(path)


@pytest.mark.parametrize(
    ("failed", "known", "moved"),
    [
        (None, ["c1", "c1", "c1", "2", "2", None, ["c3", "2"]], 1),
        (3, ["c1", "c1", "c1", "2", "c1", None, ["c3", "c1"]], 0),
    ],
    ids=["all succeed", "the update fails"],
)
def test_an_operation_has_the_values_of_its_row(
    tmp_path: Path, failed: int | None, known: list[Any], moved: int
) -> None:
    """Those that it was last written with, or is written with first; and moves are counted."""
    with opened(recorded(tmp_path / "a", failed=failed), rows=True) as trace:
        found: list[Any] = []
        for row in list(trace.rows())[:7]:
            if isinstance(row.detail, TracedParts):
                found.append([(one.properties or {})["Customer"] for one in row.detail.each()])
            else:
                found.append((row.properties or {}).get("Customer"))
        assert found == known
        assert moves(trace, BY_CUSTOMER) == moved


def test_a_what_if_a_screening_and_a_replay_map_operations_by_properties(tmp_path: Path) -> None:
    """Each operation goes to the partition of its row, and a query by equality to one of them; an
    operation on a row that was never written keeps its keys, which is counted.
    """
    limits = load_limits(limits_path("published"))
    with opened(recorded(tmp_path / "a"), rows=True) as trace:
        found = what_if(trace, [BY_CUSTOMER], limits, name="a", limits_name="published")
        (screened,) = screen(trace, [BY_CUSTOMER], partition_per_s=9.0, account_per_s=9.0)
        preparation = Preparation(trace, "a", "", entity_bytes=100, scheme=BY_CUSTOMER)
        part = found.schemes[1]
        price = part.price
        assert (price.unvalued, price.moved, price.split, price.scans) == (1, 1, 1, 0)
        assert (screened.price.unvalued, screened.price.split, screened.price.scans) == (1, 1, 0)
        assert part.partitions == screened.partitions == 4, "c1, 2, c3, and p"
        # Of the seven entities that the query scanned, the two that it returned have the value.
        assert price.scanned == 2
        said = " ".join(preparation.part.notes)
        assert "1 operation with the recorded keys: on rows of unknown Customer." in said
        assert "1 write of a row with another Customer" in said
    with contextlib.closing(Trace(tmp_path / "a")) as bare:
        assert not moves(bare, BY_CUSTOMER)
