"""The HTML report in a real browser: it draws, asks nobody, and nothing in it acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from harness.report.web.document import document
from tests.support.records import kept, with_courses, with_heat, with_partitions
from tests.support.web_pages import PATIENCE_MS, Pages, drawn

pytestmark = pytest.mark.browser

KEYS = [
    "<script>document.title='acted'</script>",
    '"><img src=x onerror="document.title=\'acted\'">',
    "<b>bold</b> & %{x} %{y}",
    "\N{GRINNING FACE}" * 100,
    "x" * 1024,
]
CHARTS = [
    *("chart-rate", "chart-heat", "chart-throttling", "chart-refused", "chart-service"),
    *("chart-response", "chart-backlog", "chart-generator"),
]
RANGES = "[...document.querySelectorAll('.js-plotly-plot')].map(e => String(e.layout.xaxis.range))"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with all charts, of partitions with hostile keys."""
    record = with_heat(
        with_partitions(with_courses(kept("run-v1-search.json")), KEYS, folded=True),
        KEYS,
        lambda row, column: 20 * row + column % 7,
        lambda row, column: int(column % 5 == row),
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(document(record), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(pages: Pages, file: Path) -> Page:
    """The report, opened."""
    return pages(file.as_uri())


def test_every_chart_is_drawn(page: Page) -> None:
    """All charts are there, those of keys and latencies with a picture in them."""
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    for chart in ("chart-heat", "chart-refused", "chart-service", "chart-response"):
        drawn(page, chart)


def test_keys_are_text(page: Page) -> None:
    """Hostile keys are seen as they are, in the table and in the chart, and did nothing."""
    names = page.locator("#partitions bdi").all_inner_texts()
    assert "<b>bold</b> & %{x} %{y}" in names
    axis = page.locator("#chart-heat .yaxislayer-above").inner_html()
    assert "&lt;b&gt;" in axis
    assert "acted" not in page.title()
    assert page.locator("main img, main b:text('bold')").count() == 0


def test_a_chart_cannot_be_sent_anywhere(page: Page) -> None:
    """The library's buttons are those that were chosen: none of them leads to another host."""
    titles = page.locator("#chart-rate .modebar-btn").evaluate_all(
        "buttons => buttons.map(button => button.dataset.title)"
    )
    assert titles == ["Download plot as a PNG", "Zoom", "Pan", "Reset axes"]


def test_all_charts_show_the_same_time(page: Page) -> None:
    """What is zoomed to in one chart is shown in all; a double click shows all again."""
    whole = set(page.evaluate(RANGES))
    assert len(whole) == 1
    area = page.locator("#chart-rate .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 200, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, y, steps=5)
    page.mouse.up()
    same = f"(whole) => {{ const all = new Set({RANGES}); return all.size === 1"
    [before] = whole
    page.wait_for_function(f"{same} && !all.has(whole); }}", arg=before, timeout=PATIENCE_MS)
    page.mouse.dblclick(box["x"] + 300, y)
    page.wait_for_function(f"{same} && all.has(whole); }}", arg=before, timeout=PATIENCE_MS)


def test_in_the_dark_it_has_other_colours(pages: Pages, page: Page, file: Path) -> None:
    """Charts follow the reader's colour scheme."""
    dark = pages(file.as_uri(), scheme="dark")
    drawn(dark, "chart-heat")
    inks = [one.evaluate("document.querySelector('#chart-rate').layout.font.color") for one in (
        page, dark,
    )]  # fmt: skip
    assert len(set(inks)) == 2
    scales = [
        one.evaluate("JSON.stringify(document.querySelector('#chart-heat').data[0].colorscale)")
        for one in (page, dark)
    ]
    assert len(set(scales)) == 2


def test_it_is_read_without_scripts(browser: Browser, file: Path) -> None:
    """With scripts off the verdict and the tables are there."""
    context = browser.new_context(java_script_enabled=False)
    try:
        plain = context.new_page()
        plain.goto(file.as_uri())
        expect(plain.locator("#verdict .sentence")).to_be_visible(timeout=PATIENCE_MS)
        expect(plain.locator("#partitions table")).to_be_visible(timeout=PATIENCE_MS)
        expect(plain.locator("#chart-rate")).to_be_hidden(timeout=PATIENCE_MS)
    finally:
        context.close()


def test_nothing_was_asked_for(pages: Pages, page: Page, file: Path) -> None:
    """The file is all that was loaded, and its own policy stopped nothing."""
    assert page.url == file.as_uri()
    assert {url for url in pages.loaded if not url.startswith(("data:", "blob:"))} == {page.url}
    assert pages.wrong == []
