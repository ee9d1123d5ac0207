"""Keys alone: lists and recorded operations are read, and the practices see what keys tell."""

from __future__ import annotations

import contextlib
import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SetupError
from harness.profile.checks.key_lists import read_keys
from harness.profile.checks.listed_keys import SAMPLE, ListedKeys
from harness.profile.practices.checklist import findings_of
from harness.trace.sources import convert

TRACE = Path(__file__).parents[4] / "examples" / "append-only-log" / "append-only-log.parquet"
HEAD = "PartitionKey,RowKey\n"
INVERTED = 3155378975999999999 - 638500000000000000
GUIDS = [f"{n * 2654435761 % 2**32:08x}-0000-4000-8000-{n:012x}" for n in range(60)]


def no_progress(done: int, total: int) -> None:
    """Progress is shown elsewhere."""


def listed(text: str | bytes) -> ListedKeys:
    """The keys of a list at standard input."""
    content = text.encode() if isinstance(text, str) else text
    return read_keys(None, io.BytesIO(content), no_progress)


def severities(keys: ListedKeys) -> dict[str, str]:
    return {one.practice.name: str(one.severity) for one in findings_of(keys.seen())}


def csv_of(*rows: tuple[str, str]) -> str:
    return HEAD + "".join(f"{key},{row}\n" for key, row in rows)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (HEAD + "a,1\nb,2\n", [("a", "b"), ("1", "2")]),
        ("row_key,x,partition_key\n1,-,a\n2,-,b\n", [("a", "b"), ("1", "2")]),
        ("PartitionKey;RowKey\r\na;1\r\n", [("a",), ("1",)]),
        ("PartitionKey\tRowKey\na\t1\n", [("a",), ("1",)]),
        ("\ufeffPartitionKey\na\n", [("a",), ()]),
        (HEAD + '"a,b","line\nbreak"\n', [("a,b",), ("line\nbreak",)]),
        ("a\nb\n\na\n", [("a", "b"), ()]),
        ((HEAD + "ä,1\n").encode("utf-16"), [("ä",), ("1",)]),
    ],
)
def test_lists_are_read(text: str | bytes, keys: list[tuple[str, ...]]) -> None:
    """CSV with a header in any order and with any usual delimiter, and lists of one key a line."""
    table = listed(text).tables[""]
    assert [tuple(table.partition_keys.keys), tuple(table.row_keys.keys)] == keys


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no keys"),
        (HEAD, "holds no keys"),
        (HEAD + "a\n", "line 2 has 1 of 2 columns"),
        ("a,b\n1,2\n", "none is named PartitionKey"),
        (b"a\0b", "is not a text file"),
        (b"\x1f\x8b\x08", "is damaged"),
        (b"PK\x03\x04", "is packed; unpack it, or pack it with gzip"),
        (b"\xff\xfea", "is damaged"),
        ("x" * 5_000_000, "line 1 has more than"),
        (HEAD + '"' + "x" * 2_000_000, "line 2 cannot be read"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_list_ends_in_a_sentence(text: str | bytes, said: str) -> None:
    """The reason is named, with the line where there is one."""
    with pytest.raises(SetupError, match=said):
        listed(text)


def test_bad_rows_are_named_by_line() -> None:
    """The first five, and how many more."""
    keys = listed(HEAD.encode() + b"ok,1\n\xff,1\n" + b"short\n" * 6)
    note = keys.notes[0]
    assert note.startswith("Left out: line 3 is not UTF-8; line 4 has 1 of 2 columns;")
    assert note.endswith("and 2 more.")


@given(st.binary(max_size=200))
def test_no_content_fails_otherwise(content: bytes) -> None:
    """Any bytes are keys, or end in a sentence."""
    with contextlib.suppress(SetupError):
        assert findings_of(listed(content).seen())


def test_many_keys_take_little_memory() -> None:
    """Memory does not grow with the keys, and their number is estimated."""
    tracemalloc.start()
    keys = listed("".join(f"customer-{n:07}\n" for n in range(12 * SAMPLE)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    column = keys.tables[""].partition_keys
    assert len(column.keys) <= 2 * SAMPLE
    assert column.distinct == pytest.approx(12 * SAMPLE, rel=0.06)
    assert held < 4_000_000


ALONE = {
    "dates": (csv_of(*((f"2024-05-{n % 28 + 1:02}", f"{n:04}") for n in range(60))), "append-only"),
    "hexadecimal": (csv_of(*((f"{n:08x}", "") for n in range(60))), "append-only"),
    "hours": (csv_of(*((f"2024-05-01T{n % 24:02}", f"{n}") for n in range(60))), "date-key"),
    "inverted": (csv_of(*((f"{INVERTED - n}", "") for n in range(60))), "append-only"),
    "sequence": (csv_of(*((f"order-{n:06}", "") for n in range(60))), "append-only"),
    "dd-MM": ("".join(f"{n % 28 + 1:02}-05-2024\n" for n in range(28)), "date-key"),
    "prefixed date": (csv_of(*((f"log{2002 + n}0501", "x") for n in range(30))), "date-key"),
    "one": (csv_of(*(("all", f"{n:04}") for n in range(1000))), "constant-partition-key"),
    "slash": (csv_of(("a/b", "1"), ("c", "2")), "valid-keys"),
    "long": (csv_of(("a" * 1025, "1"), ("c", "2")), "valid-keys"),
}


@pytest.mark.parametrize(("text", "practice"), ALONE.values(), ids=ALONE)
def test_keys_alone_violate(text: str, practice: str) -> None:
    """What is certain from keys alone is violated."""
    assert severities(listed(text))[practice] == "offends"


CONSIDERED = {
    "padding": (csv_of(*(("r", f"race{n}__Full") for n in range(60))), "zero-padding"),
    "guid rows": (csv_of(*(("r", guid) for guid in GUIDS)), "guid-row-key"),
    "guids": (csv_of(*((guid, "") for guid in GUIDS)), "guid-partition-key"),
    "guids in hex": (
        "".join(f"u{guid.replace('-', '')}\n" for guid in GUIDS),
        "guid-partition-key",
    ),
    "hot": (csv_of(*((f"p{max(0, n - 50):02}", f"{n}") for n in range(100))), "hot-partition"),
    "ten digits": (csv_of(*((f"{1714521600 + 9 * n}", "") for n in range(60))), "append-only"),
    "years": (csv_of(*((f"car-{1990 + n % 30}", f"{n}") for n in range(60))), "date-key"),
    "one of few": (csv_of(*(("all", f"{n:04}") for n in range(60))), "constant-partition-key"),
    "own": (csv_of(*((f"name{n:03}", "x") for n in range(150))), "tiny-partitions"),
}


@pytest.mark.parametrize(("text", "practice"), CONSIDERED.values(), ids=CONSIDERED)
def test_keys_alone_give_cause_to_consider(text: str, practice: str) -> None:
    """What depends on the queries, or on the rate, is to be considered."""
    assert severities(listed(text))[practice] == "consider"


FEW = {
    "rows": csv_of(*((f"2024-05-{n:02}", f"{n}") for n in range(1, 20))),
    "keys": csv_of(*((f"2024-05-{n % 4 + 1:02}", f"{n}") for n in range(60))),
    "shared": csv_of(*((f"p{n % 3}", f"{n}") for n in range(99))),
    "a number that repeats": csv_of(*((f"d{n % 40:03}-x{n}", "") for n in range(400))),
}


@pytest.mark.parametrize("text", FEW.values(), ids=FEW)
def test_little_evidence_gives_no_conclusion(text: str) -> None:
    """Neither about time, nor about shares, nor about sequences."""
    found = severities(listed(text))
    assert {"append-only", "date-key", "hot-partition", "constant-partition-key"}.isdisjoint(
        name for name, severity in found.items() if severity != "fine"
    )


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60),
    st.lists(st.integers(0, 40_000).map(str), max_size=20),
)
def test_layouts_weigh_as_their_rows(often: list[str], odd: list[str]) -> None:
    """The shares of layouts are those of the rows, whatever the number of different keys."""
    rows = [*(f"k-{letter}" for letter in often), *odd]
    shape = listed("".join(f"{key}\n" for key in rows)).tables[""].shapes[0]
    assert shape.share + sum(one.share for one in shape.others) <= 1 + 1e-9
    if len(odd) < 0.1 * len(rows):
        assert shape.share >= len(often) / len(rows) - 1e-9


def test_the_sample_keeps_exact_counts() -> None:
    """Of a few thousand of many keys; the most frequent are known besides."""
    keys = listed("".join(f"k{n % 9_000}\nhot\n" for n in range(18_000)))
    column = keys.tables[""].partition_keys
    assert set(column.sample.counts.values()) <= {2, 18_000}
    assert keys.tables[""].hottest[0] == "hot"


def test_many_tables_of_long_keys_take_little_memory() -> None:
    """Within 160 MB for samples, whatever their characters."""
    tables = ListedKeys(source="trace")
    tracemalloc.start()
    for number in range(2):
        table = tables.table(f"t{number}")
        assert table is not None
        for n in range(2_500):
            table.add(f"\U0001f600{n}".ljust(1_000, "x"), [f"é{n}".ljust(1_000, "y")])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2 * 10_000_000


def test_packed_lists_are_read(tmp_path: Path) -> None:
    """Those of gzip, by path and from standard input."""
    packed = tmp_path / "keys.csv.gz"
    packed.write_bytes(gzip.compress(csv_of(("a", "1"), ("b", "2")).encode()))
    assert read_keys(packed, io.BytesIO(), no_progress).tables[""].uses == 2
    assert listed(packed.read_bytes()).tables[""].uses == 2


def test_what_keys_do_not_tell_is_not_listed() -> None:
    """No practice about queries, retries or the generator, and nothing untold."""
    found = severities(listed(csv_of(("a", "1"), ("b", "2"))))
    assert "untold" not in found.values()
    assert {"partition-queries", "back-off", "key-change", "hot-row"}.isdisjoint(found)


def test_a_list_of_different_keys_has_no_hottest_one() -> None:
    """Five keys, each once, are no load of which one takes a fifth."""
    assert "hot-partition" not in severities(listed("a\nb\nc\nd\ne\n"))


def test_the_most_frequent_key_of_many() -> None:
    """Its share is exact among few keys, and a lower bound among many."""
    few = listed("".join(f"k{n % 10 if n % 2 else 0}\n" for n in range(200))).tables[""]
    assert few.hottest == ("k0", 0.5, True)
    many = listed("".join(f"k{n if n % 2 else 0}\n" for n in range(40_000))).tables[""]
    key, share, exact = many.hottest
    assert (key, exact) == ("k0", False)
    assert 0.45 < share <= 0.5


def test_a_row_with_a_partition_of_its_own() -> None:
    """It is told from rows that share one."""
    own = listed(csv_of(*((f"n{n}", "x") for n in range(40)))).tables[""]
    shared = listed(csv_of(*((f"n{n % 4}", f"{n}") for n in range(40)))).tables[""]
    assert own.own_partitions
    assert not shared.own_partitions


def test_recorded_operations_are_read(tmp_path: Path) -> None:
    """A trace has operations on its keys; one with aliases is refused."""
    keys = read_keys(TRACE, io.BytesIO(), no_progress)
    assert keys.unit == "operation"
    assert severities(keys)["append-only"] == "offends"
    aliased = tmp_path / "aliased.trace"
    convert(TRACE, aliased, alias=lambda key: "alias", keys="nothing")
    with pytest.raises(SetupError, match="aliases"):
        read_keys(aliased, io.BytesIO(), no_progress)


def test_files_are_told_apart(tmp_path: Path) -> None:
    """A list is read without a header too; other files say why they are not."""
    plain = tmp_path / "keys.txt"
    plain.write_text("2024-05-01\n2024-05-02\n", encoding="utf-8")
    assert read_keys(plain, io.BytesIO(), no_progress).tables[""].uses == 2
    record = tmp_path / "run.json"
    record.write_text('{"schema_version": 1}', encoding="utf-8")
    with pytest.raises(SetupError, match="is a record"):
        read_keys(record, io.BytesIO(), no_progress)
    with pytest.raises(SetupError, match="cannot be read"):
        read_keys(tmp_path / "none", io.BytesIO(), no_progress)
