"""A query under new keys finds the rows that it found, and is charged for all that it scans."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.protocol.requests import filter_of
from harness.gateway.contents import Contents
from harness.gateway.key_ranges import index_range
from harness.gateway.requests import RowWrite
from harness.model.operation import WHOLE_TABLE, Kind, new_operation
from harness.model.outcome import Outcome
from harness.trace.operations import Batch, TracedOperation, TracedParts, TracedQuery
from harness.trace.replay.operations import key_range
from harness.trace.whatif.queries import BETWEEN, NewRange, treated
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.rows_before import RowsBefore, rows_before
from harness.trace.whatif.scheme import Scheme, parse_scheme
from harness.trace.whatif.stored_rows import StoredRows
from tests.support.traced import shape, trace_of

Key = tuple[str, str]
SCHEMES: tuple[dict[str, Any], ...] = (
    {"keys": {"partition_key": "{partition_key}_{row_key:day}"}},
    {"keys": {"partition_key": "{partition_key}-{row_key:bucket4}"}},
    {"keys": {"partition_key": "{partition_key:hash1}-{partition_key}"}},
    {"keys": {"partition_key": "{row_key}", "row_key": "{partition_key}"}},
    {"keys": {"partition_key": "all", "row_key": "{partition_key}_{row_key}"}},
    {"keys": {"partition_key": "all", "row_key": "{row_key}_{partition_key}"}},
    {
        "keys": {
            "partition_key": "{partition_key:first1}",
            "row_key": "{row_key:hash2}-{row_key}_{partition_key}",
        }
    },
    {"keys": {"row_key": "{partition_key}{row_key:last1}{row_key}"}},
    {"keys": {"partition_key": "_{row_key}", "row_key": "{partition_key}"}},
    {"keys": {"partition_key": "all", "row_key": "{row_key:hash1}{partition_key}_{row_key}"}},
    {
        "match": {"partition_key": "(?P<tenant>[a-z])(?P<number>[0-9])"},
        "keys": {"partition_key": "{number}{row_key:bucket2}", "row_key": "{tenant}_{row_key}"},
    },
    {
        "match": {"row_key": "(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})T(?P<hour>.*)"},
        "keys": {"partition_key": "{partition_key}_{day:month}"},
    },
    {"keys": {"partition_key": "{row_key:month}", "row_key": "{partition_key}_{row_key}"}},
    {
        "match": {"partition_key": "(?P<device>[^_]+)_(?P<time>.+)"},
        "keys": {"partition_key": "{device}_{time:day}", "row_key": "{time}_{row_key}"},
    },
    {
        "match": {"partition_key": "(?P<device>[^_]+)_(?P<time>.+)"},
        "keys": {"partition_key": "{time:month}-{device}-{row_key:bucket2}"},
    },
)
BEGINNINGS: tuple[dict[str, Any], ...] = (
    {
        "match": {"row_key": "(?P<number>[0-9]+)_.*"},
        "keys": {"partition_key": "{partition_key}_{number}"},
    },
    {
        "match": {"row_key": "[a-z]+-(?P<day>[0-9]+)"},
        "keys": {"partition_key": "{partition_key}_{day:first1}"},
    },
    {
        "match": {"row_key": "(?P<year>[0-9]{4})-.*"},
        "keys": {"partition_key": "{partition_key}_{year}"},
    },
    {
        "match": {"row_key": "(?P<number>[0-9]+).*"},
        "keys": {"partition_key": "{partition_key}_{number}"},
    },
)
"""Of which not all rows match."""
TIMES = st.builds(
    "a1_2026-1{}-{:02}T{}".format, st.integers(0, 2), st.integers(1, 3), st.just("05")
)
PARTITIONS = st.sampled_from(["a1", "a2", "b1", "b", "", "a1_2026"]) | TIMES
ROWS = st.builds(
    "2026-1{}-{:02}T{}".format, st.integers(0, 2), st.integers(1, 3), st.sampled_from("059")
) | st.sampled_from(["x", "2026", "~", "1_x", "10_x", "a-2", "b-1"])
BOUNDS = st.none() | ROWS | st.sampled_from(["2026-11", "2026-11-02", "2026-11-03", "2026-12"])
TABLES = st.sets(st.tuples(PARTITIONS, ROWS), max_size=25)
QUERIES = st.tuples(BOUNDS, BOUNDS).map(lambda ends: TracedQuery(None, None, *ends)) | st.tuples(
    st.none() | PARTITIONS | PARTITIONS.map("{}\0".format),
    st.none() | PARTITIONS | PARTITIONS.map("{}\0".format) | st.just("a1_2026-12"),
).map(lambda ends: TracedQuery(*ends))


def scheme(content: dict[str, Any]) -> Scheme:
    return parse_scheme("mine", content, "mine.toml")


def found(rows: set[Key], partition_key: str, query: TracedQuery) -> set[Key]:
    """The rows that a query finds under the recorded keys."""
    return {
        (partition, row)
        for partition, row in rows
        if partition_key in (WHOLE_TABLE, partition)
        and (query.partition_from is None or partition >= query.partition_from)
        and (query.partition_before is None or partition < query.partition_before)
        and (query.row_from is None or row >= query.row_from)
        and (query.row_before is None or row < query.row_before)
    }


def holds(one: NewRange, key: Key) -> bool:
    """Whether a query of the range scans a row, by the bounds alone."""
    first, end = one.span
    row = BETWEEN.join(key)
    return row >= first and (end is None or row < end)


def rewritten(one: NewRange) -> str:
    """The filter that a replay sends."""
    row = TracedOperation(
        0, 1, shape(Kind.QUERY), one.partition_key, "", 0, 0, 0, 0, TracedQuery(*one[1:])
    )
    return filter_of(
        new_operation(kind=Kind.QUERY, partition_key=one.partition_key, key_range=key_range(row))
    )


@pytest.mark.parametrize(
    ("behind", "before"), [("-{row_key:bucket4}", "2026-11-10"), ("_{row_key:day}", "2026-11-1`")]
)
def test_a_range_of_partitions_ends_where_the_recorded_one_did(behind: str, before: str) -> None:
    """If what is behind a key sorts below it; else behind the keys that the bound begins with."""
    template = scheme({"keys": {"partition_key": "{partition_key}" + behind}})
    query = TracedQuery("2026-11-03", "2026-11-10")
    [one] = treated(template, "t", WHOLE_TABLE, query).ranges
    assert one == NewRange(WHOLE_TABLE, "2026-11-03", before)


@given(st.sampled_from((*SCHEMES, *BEGINNINGS)), TABLES, PARTITIONS, QUERIES)
def test_a_query_finds_under_new_keys_what_it_found(
    content: dict[str, Any], rows: set[Key], partition: str, query: TracedQuery
) -> None:
    """Every row that the scheme matches is in just one of its ranges, and if these are said to be
    exact no other row is, but of partitions whose keys begin with that of the query.
    """
    mine, over = scheme(content), query.row_from is None and query.row_before is None
    key = WHOLE_TABLE if over and query.bounds.count(None) < 4 else partition
    asked = treated(mine, "", key, query)
    kept = asked.kept
    wanted = found(rows, key, query)
    new = {row: row if kept else mine.keys(*row) for row in rows}
    for row, moved in new.items():
        ranges = [one for one in asked.ranges if moved is not None and holds(one, moved)]
        if row in wanted and moved is not None:
            assert len(ranges) == 1
        elif asked.exact and moved is not None and not row[0].startswith(key):
            assert not ranges


@given(st.sampled_from((*SCHEMES, *BEGINNINGS)), TABLES, PARTITIONS, BOUNDS)
def test_the_first_rows_of_an_ordered_range_are_the_first_ones(
    content: dict[str, Any], rows: set[Key], partition: str, first: str | None
) -> None:
    """So that a query may end after as many; where buckets mix the rows it has to read them all."""
    mine = scheme(content)
    asked = treated(mine, "", partition, query := TracedQuery(row_from=first, top=1))
    new = {row: moved for row in found(rows, partition, query) if (moved := mine.keys(*row))}
    for one in asked.ranges if asked.ordered and not asked.kept else ():
        inside = sorted(row for row, moved in new.items() if holds(one, moved))
        assert sorted(inside, key=new.__getitem__) == inside


@pytest.mark.parametrize(
    ("partition_key", "ordered"),
    [
        ("{partition_key}_{row_key:day}", True),
        ("{partition_key}_{row_key:day}-{row_key:bucket4}", False),
    ],
)
def test_buckets_behind_a_time_mix_the_newest_rows(partition_key: str, ordered: bool) -> None:
    """The newest row of a partition is in any of the buckets of a day."""
    mine = scheme({"keys": {"partition_key": partition_key}})
    asked = treated(mine, "", "a1", TracedQuery(top=1))
    assert (asked.ordered, asked.limited) == (ordered, ordered)


@given(st.sampled_from(SCHEMES), TABLES, PARTITIONS, QUERIES)
def test_the_gateway_scans_what_is_counted(
    content: dict[str, Any], rows: set[Key], partition: str, query: TracedQuery
) -> None:
    """For the filter that a replay sends, in all and by partition."""
    mine = scheme(content)
    key = WHOLE_TABLE if query.partition_from or query.partition_before else partition
    counts, contents = StoredRows(), Contents()
    for row in sorted(rows, key=hash):
        new = mine.new_keys("", *row)
        counts.note("", BETWEEN.join(new), stays=True)
        contents.wrote("t", [RowWrite(*new)])
    for one in treated(mine, "", key, query).ranges:
        number, shares = counts.in_range("", one)
        scanned = contents.scan("t", index_range(rewritten(one))).by_partition
        assert number == sum(scanned.values())
        assert {name: rows for name, rows in shares if rows} == scanned


@pytest.mark.parametrize(
    ("key", "query", "ranges"),
    [
        (
            {"partition_key": "{partition_key}_{row_key:month}"},
            TracedQuery(row_from="2026-11-20T", row_before="2026-11-20U"),
            [NewRange("p_2026-11", None, None, "2026-11-20T", "2026-11-20U")],
        ),
        (
            {"partition_key": "{partition_key}_{row_key:day}"},
            TracedQuery(row_from="2026-11-20T08", row_before="2026-11-22T00"),
            [
                NewRange(f"p_2026-11-{day}", None, None, "2026-11-20T08", "2026-11-22T00")
                for day in (20, 21)
            ],
        ),
        (
            {"partition_key": "{partition_key:hour}", "row_key": "{partition_key}_{row_key}"},
            TracedQuery("2026-11-20T0800", "2026-11-20T09"),
            [NewRange("2026-11-20T08", None, None, "2026-11-20T08", "2026-11-20T09")],
        ),
    ],
)
def test_a_range_of_a_time_is_a_partition_or_a_few(
    key: dict[str, str], query: TracedQuery, ranges: list[NewRange]
) -> None:
    """Those of the coarser times in it, whether rows or partitions have the time."""
    partition = WHOLE_TABLE if query.partition_from else "p"
    found = treated(scheme({"keys": key}), "", partition, query)
    assert list(found.ranges) == ranges
    assert not found.ranged


def batch_of(*operations: TracedOperation) -> Batch:
    columns: list[list[Any]] = [list(column) for column in zip(*operations, strict=True)]
    return Batch(*columns)


@dataclasses.dataclass
class Table:
    """The rows of a table under recorded keys."""

    rows: set[Key] = dataclasses.field(default_factory=set)

    def operation(self, rng: random.Random, at_ms: int) -> TracedOperation:
        """A random operation, which is done."""
        partition = rng.choice(["a1", "a2", "b1"])
        names = [f"2026-11-{day:02}T{hour}" for day in range(1, 5) for hour in range(4)]
        kind = rng.choice((Kind.INSERT, Kind.DELETE, Kind.TRANSACTION, Kind.QUERY))
        detail: TracedParts | TracedQuery | None = None
        row, entities = "", 1
        if kind is Kind.QUERY:
            ends = sorted(rng.choices(["2026-11-01", "2026-11-03", "2026-12", *names], k=2))
            detail = TracedQuery(row_from=ends[0], row_before=ends[1])
            entities = len(found(self.rows, partition, detail))
        elif kind is Kind.TRANSACTION:
            written = rng.sample(names, 3)
            detail = TracedParts((Kind.UPSERT_MERGE,) * 3, tuple(written), (0,) * 3)
            self.rows |= {(partition, name) for name in written}
            entities = 3
        else:
            row = rng.choice(names)
            change = self.rows.discard if kind is Kind.DELETE else self.rows.add
            change((partition, row))
        return TracedOperation(
            at_ms, at_ms + 1, shape(kind), partition, row, entities, entities, 0, 0, detail
        )


@given(st.sampled_from(SCHEMES), st.integers(0, 2**32))
def test_what_queries_scan_is_what_the_rewritten_ones_would(
    content: dict[str, Any], seed: int
) -> None:
    """Counted among the rows that are there at that time; where the rows of a table are not all
    known, it is a lower bound.
    """
    rng, mine, table = random.Random(seed), scheme(content), Table()
    operations, scanned = [], 0
    for at_ms in range(40):
        one = table.operation(rng, at_ms)
        operations.append(one)
        if one.shape.kind is Kind.QUERY:
            assert isinstance(one.detail, TracedQuery)
            ranges = treated(mine, "", one.partition_key, one.detail).ranges
            moved = {mine.new_keys("", *row) for row in table.rows}
            scanned += sum(holds(span, row) for span in ranges for row in moved)
    batch = batch_of(*operations)
    rekeying = Rekeying(mine, before=RowsBefore({}, frozenset({""}), {}))
    loads = rekeying.loads(batch)
    assert rekeying.price.scanned == scanned
    assert not rekeying.price.scanned_is_lower_bound
    written = sum(one.entities for one in operations if one.shape.kind is not Kind.QUERY)
    taken = sum(loads.amounts) + sum(count for _, _, count in loads.shares())
    assert taken == scanned + written


def test_rows_that_nobody_knows_make_a_lower_bound() -> None:
    """Those of a partition that is scanned in place of a range are more than the trace showed."""
    query = TracedOperation(
        0, 1, shape(Kind.QUERY), "p", "", 5, 5, 0, 0, TracedQuery(row_from="a", row_before="b")
    )
    batch = batch_of(query)
    for complete in (True, False):
        before = RowsBefore({}, frozenset({""} if complete else ()), {})
        rekeying = Rekeying(scheme(SCHEMES[6]), before=before)
        rekeying.loads(batch)
        assert rekeying.price.scanned == 5
        assert rekeying.price.scanned_is_lower_bound is not complete


PAGE = 1000


def page_of(
    at_ms: int, rows: list[Key], first: int, key: str = WHOLE_TABLE, **asked: Any
) -> TracedOperation:
    """A page of a query over all of these rows, as a watch records it."""
    found = len(rows[first : first + PAGE])
    query = TracedQuery(**asked, continued_at=rows[first] if first else None)
    return TracedOperation(at_ms, at_ms + 1, shape(Kind.QUERY), key, "", found, found, 0, 0, query)


@pytest.mark.parametrize("content", SCHEMES[:5])
def test_a_scan_in_pages_reads_each_row_once(content: dict[str, Any]) -> None:
    """By any keys, and each page what follows the rows of the page before."""
    rows = [(f"p{number // 500}", f"{number:06}") for number in range(2500)]
    of_rows: dict[str, list[str]] = {}
    for key, row in rows:
        of_rows.setdefault(key, []).append(row)
    mine = scheme(content)
    rekeying = Rekeying(mine, before=RowsBefore({"": of_rows}, frozenset(), {}))
    pages = [page_of(number, rows, number * PAGE) for number in range(3)]
    loads = rekeying.loads(batch_of(*pages))
    assert rekeying.price.scanned == len(rows)
    assert sum(loads.amounts) + sum(count for _, _, count in loads.shares()) == len(rows)
    if content is SCHEMES[2]:
        # Partitions of 500 rows are in one page, or in two that follow each other.
        seen: dict[str, list[int]] = {}
        for at_ms, name, _ in loads.shares():
            seen.setdefault(name, []).append(at_ms)
        assert len(seen) == 5
        assert all(max(places) - min(places) <= 1 for places in seen.values())


def test_rows_of_pages_are_known(tmp_path: Path) -> None:
    """All that a scan found in three pages were there, but where the trace does not show. A table
    of which nobody read the last page may have more."""
    rows = [("p", f"{number:06}") for number in range(2500)]
    for pages in (3, 2, 1):
        made = [page_of(number, rows, number * PAGE) for number in range(pages)]
        found = rows_before(trace_of(tmp_path / f"{pages}.parquet", made), {})
        assert sum(map(len, found.rows[""].values())) == min(2500, pages * PAGE)
        assert not found.complete
        assert (("", WHOLE_TABLE, TracedQuery().bounds) in found.read) is (pages == 3)


def written(kind: Kind, at_ms: int, row: str) -> TracedOperation:
    return TracedOperation(at_ms, at_ms + 1, shape(kind), "p", row, 1, 0, 0, 0, None)


@pytest.mark.parametrize(
    ("kind", "upserted_at", "said", "complete"),
    [
        (Kind.INSERT, 0, {}, True),
        (Kind.UPSERT_MERGE, 0, {}, False),
        (Kind.UPSERT_MERGE, 5, {}, True),
        (Kind.UPSERT_MERGE, 0, {"": 0}, True),
    ],
)
def test_the_rows_of_a_table_are_known_if_its_first_scan_shows_them(
    tmp_path: Path, kind: Kind, upserted_at: int, said: dict[str, int], complete: bool
) -> None:
    """An upsert before the first scan may have replaced a row, one after it made a new one."""
    rows = [written(Kind.INSERT, 1, "a"), written(kind, upserted_at, "b")]
    number = 2 if upserted_at < 3 else 1
    scans = [page_of(3, [("p", "a")] * number, 0), page_of(9, [("p", "a")] * 2, 0)]
    operations = sorted([*rows, *scans], key=lambda one: one.at_ms)
    found = rows_before(trace_of(tmp_path / "t.parquet", operations), said)
    assert found.complete == ({""} if complete else set())
    assert not found.rows[""]


def test_an_upsert_of_a_row_that_was_there_makes_none() -> None:
    """The number of rows stays; what is counted after an upsert of an unknown row is less than
    there may be."""
    for kind, more in ((Kind.UPSERT_MERGE, 0), (Kind.INSERT, 3)):
        before = RowsBefore({"": {"p": ["a"]}}, frozenset({""}), {"": 10})
        rekeying = Rekeying(scheme(SCHEMES[3]), before=before)
        rows = [written(kind, number, f"{number % 3}") for number in range(6)]
        rows = rows[: 3 if more else 6]
        rekeying.loads(batch_of(*rows, page_of(7, [("p", "a")], 0, "p", row_from="0")))
        assert rekeying.price.scanned == 10 + more
        assert rekeying.price.scanned_is_lower_bound is not bool(more)


def test_what_an_exact_query_found_is_all_there_is(tmp_path: Path) -> None:
    """However many rows the table is said to have."""
    query = page_of(1, [("p", "a")] * 4, 0, "p")
    before = rows_before(trace_of(tmp_path / "t.parquet", [query]), {"": 1000})
    rekeying = Rekeying(scheme(SCHEMES[0]), before=before)
    rekeying.loads(batch_of(query))
    assert rekeying.price.scanned == 4


def test_rows_whose_row_keys_nobody_knows_are_in_no_partition(tmp_path: Path) -> None:
    """Of which it is said how much load it has, unless keys spread them whatever their RowKeys."""
    query = page_of(1, [("p", "a")] * 100, 0, "p")
    before = rows_before(trace_of(tmp_path / "t.parquet", [query]), {})
    for content, told in ((SCHEMES[0], False), (SCHEMES[1], True)):
        rekeying = Rekeying(scheme(content), before=before)
        loads = rekeying.loads(batch_of(query))
        assert rekeying.price.scanned == 100
        assert rekeying.price.scanned_is_lower_bound is not told
        assert sum(loads.amounts) == 100
        assert not [*loads.shares()]


@pytest.mark.parametrize("key", ["pre\U0001f600", "pre\uff21", "pre\ufffd", "pre"])
def test_keys_are_in_the_order_of_their_utf_16_code_units(key: str) -> None:
    """A character beyond U+FFFF is before U+FFFF, with which prefixes end in JavaScript and C#."""
    counts, contents = StoredRows(), Contents()
    counts.note("", f"{key}{BETWEEN}r", stays=True)
    contents.wrote("t", [RowWrite(key, "r")])
    found = index_range("PartitionKey ge 'pre' and PartitionKey lt 'pre\uffff'")
    assert (key, "r") in found
    assert contents.scan("t", found).by_partition == {key: 1}
    assert contents.first_partition("t", found) == key
    number, shares = counts.in_range("", NewRange(WHOLE_TABLE, "pre", "pre\uffff"))
    assert (number, [*shares]) == (1, [(key, 1)])


@pytest.mark.parametrize("found", [0, 3])
def test_stated_rows_of_which_none_is_known_may_be_anywhere(tmp_path: Path, found: int) -> None:
    """What queries scan of them is a lower bound."""
    row = page_of(0, [("p", "r")] * found, 0, "p", row_from="a", row_before="b")
    before = rows_before(trace_of(tmp_path / "t.parquet", [row]), {"": 1000})
    assert before.complete == ({""} if found else set())


def test_a_failed_query_scans_what_the_same_query_found() -> None:
    """It is a lower bound only if none found its rows."""
    failed = dataclasses.replace(page_of(0, [("p", "r")], 0, "p").shape, outcome=Outcome.THROTTLED)
    query = page_of(0, [("p", "r")], 0, "p")._replace(shape=failed, entities=0, returned=0)
    for read in (True, False):
        keys = frozenset([("", "p", TracedQuery().bounds)]) if read else frozenset()
        before = RowsBefore({"": {"p": ["1", "2"]}}, frozenset(), {}, keys)
        rekeying = Rekeying(scheme({"keys": {}}), before=before)
        rekeying.loads(batch_of(query))
        assert rekeying.price.scanned == 2
        assert rekeying.price.scanned_is_lower_bound is not read


def test_a_filter_has_to_find_as_many_in_each_range() -> None:
    """The first ten of a filter that were found in 50 rows take about 50 of every bucket."""
    rows = [f"{number:04}" for number in range(400)]
    query = page_of(0, [("p", "r")], 0, "p", top=10, compared=("Name",))
    rekeying = Rekeying(scheme(SCHEMES[1]), before=RowsBefore({"": {"p": rows}}, frozenset(), {}))
    rekeying.loads(batch_of(query._replace(entities=50, returned=10)))
    assert rekeying.price.scanned == 4 * 50


def test_the_largest_partitions_are_those_of_the_range() -> None:
    """Of more than 64, whatever is in others."""
    counts = StoredRows()
    for tenant, rows in (("a", 2), ("b", 9)):
        for day in range(100):
            for row in range(rows):
                counts.note("", f"{tenant}{day:02}{BETWEEN}{row}", stays=True)
    number, shares = counts.in_range("", NewRange(WHOLE_TABLE, "a", "b"))
    assert number == 200
    assert 64 <= len(shares) <= 65
    assert {(name[0], rows) for name, rows in shares} == {("a", 2)}


def test_stated_rows_are_where_the_known_ones_are() -> None:
    """Ten rows are known, of a thousand: a table has all of them, a partition its share."""
    counts = StoredRows({"t": 1000})
    for number in range(10):
        counts.note("t", f"p{number // 4}{BETWEEN}{number}", stays=True)
    counts.began()
    assert counts.in_range("t", NewRange(WHOLE_TABLE))[0] == 1000
    assert counts.in_range("t", NewRange("p0"))[0] == 400
    assert dict(counts.in_range("t", NewRange(WHOLE_TABLE))[1]) == {"p0": 400, "p1": 400, "p2": 200}
    counts.note("t", f"new{BETWEEN}1", stays=True)
    assert counts.in_range("t", NewRange("new"))[0] > 0
    assert StoredRows({"t": 7}).in_range("t", NewRange(WHOLE_TABLE)) == (7, ())


def test_a_sample_of_many_rows_is_scaled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a tenth, in memory that does not grow."""
    monkeypatch.setattr("harness.trace.whatif.stored_rows._MOST_ROWS", 2000)
    counts = StoredRows()
    for number in range(20_000):
        counts.note("", f"p{number % 10}{BETWEEN}{number:06}", stays=True)
    assert counts._bits
    assert counts.in_range("", NewRange("p3"))[0] == pytest.approx(2000, rel=0.1)
    for number in range(0, 20_000, 2):
        counts.note("", f"p{number % 10}{BETWEEN}{number:06}", stays=False)
    number, shares = counts.in_range("", NewRange(WHOLE_TABLE))
    assert number == pytest.approx(10_000, rel=0.1)
    assert [name for name, _ in shares] == ["p1", "p3", "p5", "p7", "p9"]


def test_a_group_of_any_length_mixes_the_rows() -> None:
    """`10_x` is before `1_x`, and in the partition after it; so is a group in the midst of keys."""
    asked = [treated(scheme(content), "", "a1", TracedQuery(top=1)) for content in BEGINNINGS]
    assert [one.ordered for one in asked] == [False, False, True, False]
