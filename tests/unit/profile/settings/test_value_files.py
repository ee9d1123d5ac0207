"""Files with the values of a field: weights, lists, and rows that cannot be used."""

from __future__ import annotations

import collections
import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.model.entity import key_problem
from harness.model.errors import SetupError, cut
from harness.profile.settings.value_files import FoundValues, read_values
from tests.support.examples import examples

values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(
    lambda value: key_problem(value) is None and not value.startswith("\ufeff")
)
weights = st.floats(0, 1e9) | st.integers(0, 10**6)
OF_FILES = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "customers.csv"


def read(
    file: Path, text: str, column: str | None = None, weights: str | None = None
) -> FoundValues:
    file.write_bytes(text.encode())
    return read_values(str(file), column, weights)


def refused(file: Path, text: str, column: str | None = None, weights: str | None = None) -> str:
    with pytest.raises(SetupError) as caught:
        read(file, text, column, weights)
    return str(caught.value).replace(cut(str(file)), "customers.csv")


def table(*rows: tuple[object, ...], end: str = "\n") -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator=end).writerows(rows)
    return written.getvalue()


@OF_FILES
@given(
    rows=st.dictionaries(values, weights, min_size=1).filter(lambda rows: sum(rows.values()) > 0),
    end=st.sampled_from(["\n", "\r\n"]),
    start=st.sampled_from(["", "\ufeff"]),
)
def test_each_value_has_its_weight(
    file: Path, rows: dict[str, float], end: str, start: str
) -> None:
    """Values and weights of two columns are read as written, with any line ends and a BOM."""
    text = start + table(("customer", "writes"), *rows.items(), end=end)
    found = read(file, text)
    assert list(found.values) == list(rows)
    assert list(found.weights) == [float(weight) for weight in rows.values()]


@OF_FILES
@given(
    used=st.lists(values.filter(lambda value: not {*",;"} & {*value}), min_size=1, max_size=30),
    start=st.sampled_from(["", "\ufeff"]),
)
def test_a_value_of_a_list_weighs_as_often_as_it_occurs(
    file: Path, used: list[str], start: str
) -> None:
    """A list without a header has a value in each line, the first one too."""
    found = read(file, start + table(*((value,) for value in used)))
    weighed = dict(zip(found.values, found.weights, strict=True))
    assert weighed == collections.Counter(used)


def test_columns_are_found_by_their_names(file: Path) -> None:
    """Of several columns those count that are named; the first has the values otherwise."""
    text = table(("id", "name", "writes"), (1, "ada", 30), (2, "bob", 10), (3, "ada", 5))
    found = read(file, text, "name", "writes")
    assert (list(found.values), list(found.weights)) == (["ada", "bob"], [35, 10])
    found = read(file, text)
    assert (list(found.values), list(found.weights)) == (["1", "2", "3"], [1, 1, 1])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_are_divided_by_any_usual_delimiter(file: Path, delimiter: str) -> None:
    """The same as in lists of keys; a list whose first value has a semicolon stays one."""
    found = read(file, delimiter.join(("name", "writes\nada", "30\nbob", "10\n")))
    assert (list(found.values), list(found.weights)) == (["ada", "bob"], [30, 10])
    assert list(read(file, "a;b\nc\n").values) == ["a;b", "c"]


def test_a_file_that_changed_is_read_again(file: Path) -> None:
    """What is known of a file holds as long as the file stays as it was."""
    assert list(read(file, "a\nb\n").values) == ["a", "b"]
    assert list(read(file, "a\nb\nc\n").values) == ["a", "b", "c"]


def test_empty_lines_are_no_values(file: Path) -> None:
    """Also at the end, and between values."""
    assert list(read(file, "a\n\nb\n\n").values) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no values in it"),
        ("customer,writes\n", "there are no values in it"),
        ("customer,writes\na,0\nb,0\n", "the sum of the weights has to be above 0"),
        ("customer,writes\na,1\nb,many\n", "line 3: the weight 'many' is not a number from 0 on"),
        ("customer,writes\na,1_000\n", "line 2: the weight '1_000' is not a number from 0 on"),
        ("\ncustomer,writes\na,x\n", "line 3: the weight"),
        ("customer,writes\na,-1\n", "line 2: the weight '-1' is not a number"),
        ("customer,writes\na,nan\n", "line 2: the weight 'nan' is not a number"),
        ("customer,writes\na,inf\n", "line 2: the weight 'inf' is not a number"),
        ("customer,writes\na\n", "line 2: it has 1 column, and the header has 2"),
        ("customer,writes\na,1,2\n", "line 2: it has 3 columns, and the header has 2"),
        ("customer,writes\na,1\n\nb/c,1\n", "line 4: 'b/c' contains /; forbidden in a key are"),
        ("a\nb\nc#\n", "line 3: 'c#' contains #"),
        (f"a\n{'k' * 1025}\n", "1,025 characters; a key has at most 1,024"),
    ],
)
def test_a_bad_row_is_named_by_its_line(file: Path, text: str, said: str) -> None:
    """The sentence has the file, the line and what is wrong there."""
    sentence = refused(file, text)
    assert sentence.startswith("values customers.csv:\n  ")
    assert said in sentence


def test_bad_rows_are_listed_up_to_ten(file: Path) -> None:
    """One mistake hides no other, and a file that is wrong throughout does not fill the screen."""
    sentence = refused(file, "customer,writes\n" + "a,x\n" * 50)
    assert [line.split(":")[0].strip() for line in sentence.splitlines()[1:]] == [
        f"line {number}" for number in range(2, 12)
    ]


@pytest.mark.parametrize("setting", ["column", "weights"])
def test_an_unknown_column_is_named(file: Path, setting: str) -> None:
    """With those that there are, and the nearest."""
    sentence = refused(file, "customer,writes\na,1\n", **{setting: "custmer"})
    assert "there is no column 'custmer'; it has customer, writes" in sentence
    assert "did you mean customer?" in sentence


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    """A missing file, a folder, and bytes that are no text are sentences."""
    for path, said in ((file, "No such file"), (file.parent, "cannot be read")):
        with pytest.raises(SetupError, match=said):
            read_values(str(path))
    file.write_bytes(b"M\xfcller\n")
    with pytest.raises(SetupError, match="the file is not UTF-8 text"):
        read_values(str(file))
