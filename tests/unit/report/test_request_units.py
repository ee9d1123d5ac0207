"""Request units in every output of a run against Cosmos DB, and in none of another run."""

from __future__ import annotations

import csv
import io
import re

import pytest

from harness.report.compare.comparison import compare
from harness.report.compare.outputs import comparison_json, side_by_side
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.export.run_folder import partitions_csv
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.charts import charts
from harness.report.web.document import document
from harness.report.web.key_figures import key_figures
from harness.report.web.tabs import rows_of
from tests.support.records import altered, kept, subjects

COSMOS = kept("run-v1-cosmos.json")
STORAGE = kept()
WORDS = re.compile(r"\bRU\b|RU/s|request.units|provisioned", re.IGNORECASE)


def page(width: int = 120) -> Page:
    return Page(width=width, colour=False, ascii_only=False)


def test_files_have_columns_of_request_units_on_the_right() -> None:
    """Programs find them by name, behind the columns that every run has."""
    first, *rows = csv.reader(io.StringIO(partitions_csv(COSMOS)))
    known, *_ = csv.reader(io.StringIO(partitions_csv(STORAGE)))
    assert first[: len(known)] == known
    assert first[len(known) :] == [
        "request_units_per_s_mean",
        "request_units_per_s_best_1s",
        "request_units_per_s_best_10s",
        "ratio_to_request_unit_target",
        "request_units",
    ]
    total = sum(float(row[-1]) for row in rows)
    assert COSMOS.request_units is not None
    assert round(total * 100) == round(COSMOS.request_units.total * 100)


def test_pages_show_request_units() -> None:
    """The report and the web UI's tab hold rates against the RU/s."""
    assert "of 600" in document(COSMOS)
    tab = {row["partition"]: str(row["of_target"]) for row in rows_of(COSMOS)}
    assert tab["p0"].endswith("75%\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}600\N{NO-BREAK SPACE}RU/s")
    assert "of\N{NO-BREAK SPACE}1,800" in tab["The whole account"]


def test_the_chart_draws_request_units_with_their_limits() -> None:
    """Everything that was used and the hottest partition, with the limit of each."""
    shown = charts(COSMOS)["chart-main"]
    assert [line.name for line in shown.lines][:2] == ["RU/s used", "hottest partition p0"]
    whole, hottest = ([y or 0.0 for y in line.ys] for line in shown.lines[:2])
    assert COSMOS.request_units is not None
    assert sum(whole) == pytest.approx(COSMOS.request_units.total, abs=0.01)
    assert all(mine <= everything for mine, everything in zip(hottest, whole, strict=True))
    limits = {level.value: level.text for level in shown.levels}
    assert limits[600.0] == "limit in force 600 (each partition)"
    assert limits[1800.0] == "limit in force 1,800 (account)"


def test_the_figures_of_a_page_are_in_request_units() -> None:
    """The hottest partition and the account, also where the run used one key."""
    for record in (COSMOS, altered(COSMOS, partitions=COSMOS.partitions[:1])):
        hottest, account, *_ = key_figures(record)
        assert (hottest.value, hottest.unit, hottest.note) == (
            "449",
            "RU/s",
            "75% of the limit, 600",
        )
        assert (account.value, account.note) == ("1,143", "64% of the limit, 1,800")


def test_runs_are_compared_in_request_units() -> None:
    """Rates, the cost of an operation and shares of the limits stand side by side."""
    comparison = compare(subjects(COSMOS, COSMOS), [])
    text = side_by_side(comparison, page())
    for row in (r"RU/s +1,143", r"RU/operation +11\.\d", r"hottest, of its RU/s +75%"):
        assert re.search(row, text)
    assert '"ru_per_operation"' in comparison_json(comparison)


def test_a_run_against_storage_shows_nothing_of_it() -> None:
    """No output of a run without request units has a word about them."""
    comparison = compare(subjects(STORAGE, STORAGE), [])
    texts = {
        "terminal": summary(STORAGE, page()),
        "markdown": markdown(STORAGE),
        "csv": partitions_csv(STORAGE),
        "junit": junit(STORAGE),
        "record": STORAGE.to_json(),
        "tab": str(rows_of(STORAGE)),
        "compare": side_by_side(comparison, page()),
        "compare in JSON": comparison_json(comparison),
        # Scripts and styles are the same for every run.
        "page": re.sub(r"<(script|style).*?</\1>", "", document(STORAGE), flags=re.DOTALL),
    }
    assert {name: WORDS.findall(text) for name, text in texts.items() if WORDS.search(text)} == {}
