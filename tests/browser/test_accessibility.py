"""Pages are read in light and dark, with the keyboard alone, and without telling colours apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from harness.measure.record.record import RunRecord
from harness.report.compare.comparison import compare
from harness.report.compare.differences import Subject
from harness.report.compare.repeats import trends_of
from harness.report.web.compare_page import compare_page, trend_page
from harness.report.web.document import document, update
from tests.support.records import (
    altered,
    enforcing,
    kept,
    move,
    with_courses,
    with_heat,
    with_partitions,
)
from tests.support.web_pages import Pages, drawn, open_live, violations

pytestmark = pytest.mark.browser

FAINT_TEXTS = """least => {
    const rgb = text => text.match(/[\\d.]+/g).map(Number)
    const light = ([r, g, b]) => [r, g, b].map(part => part / 255).map(part =>
        part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    ).reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0)
    const behind = element => {
        for (let one = element; one; one = one.parentElement) {
            const colour = rgb(getComputedStyle(one).backgroundColor)
            if (colour.length === 3 || colour[3] === 1) return colour
        }
        return [255, 255, 255]
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), faint = []
    let seen = 0
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement
        if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue
        if (element.closest("script, style, noscript")) continue
        const style = getComputedStyle(element)
        const ink = rgb(element.closest("svg") ? style.fill : style.color)
        const [low, high] = [light(ink), light(behind(element))].sort((a, b) => a - b)
        seen += 1
        if ((high + 0.05) / (low + 0.05) < least) faint.push(texts.currentNode.data)
    }
    return [seen, faint]
}"""
"""How many texts are seen, and those with a lower contrast to what is behind them."""
HEADLESS = """[...document.querySelectorAll('table')].flatMap(table =>
    [...table.tHead.rows].at(-1).cells.length && [...[...table.tHead.rows].at(-1).cells]
        .filter(cell => cell.tagName !== 'TH' || !cell.scope || !cell.textContent.trim())
        .map(cell => `${table.closest('[id]').id}: ${cell.outerHTML}`))"""
"""Cells that head no column, or do not say what they head."""


def whole() -> RunRecord:
    """A record with all parts of a report."""
    keys = [f"tenant-{place}" for place in range(30)]
    return altered(
        with_heat(
            with_partitions(with_courses(kept("run-v1-search.json")), keys, folded=True),
            keys,
            lambda row, column: 20 * row + column % 7,
            lambda row, column: int(column % 5 == row),
        ),
        enforced=enforcing(move(keys[0], 4.0)),
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of a report with all its parts, a comparison and a trend."""
    record = whole()
    runs = [with_courses(kept()), record]
    subjects = [Subject(source="run", records=(one,)) for one in runs]
    trends, single = trends_of([runs[0], altered(runs[0], run_id="later")])
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, text in {
        "report": document(record),
        "compare": compare_page(compare(subjects, [])),
        "trend": trend_page(trends, single),
    }.items():
        path = folder / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        made[name] = path.as_uri()
    return made


@pytest.fixture(scope="module")
def opened(browser: Browser, files: dict[str, str]) -> Iterator[dict[str, Page]]:
    """Those pages and a live one, with everything unfolded."""
    # The script that looks is none of the page's own, which its policy would refuse.
    context = browser.new_context(bypass_csp=True)
    shown = {name: context.new_page() for name in (*files, "live")}
    live = {"state": "running", "sentence": "on", "run_id": "a", **update(whole(), live=True)}
    open_live(shown["live"], live)
    for name, page in shown.items():
        page.bring_to_front()
        if name in files:
            page.goto(files[name])
        page.locator(".chart svg").first.wait_for()
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    yield shown
    context.close()


def looked_at(opened: dict[str, Page], width: int) -> Iterator[tuple[str, Page]]:
    """Each page in front, as wide as that."""
    for name, page in opened.items():
        page.bring_to_front()
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        yield name, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(opened: dict[str, Page], scheme: Literal["light", "dark"]) -> None:
    """A contrast of 4.5 : 1 to what is behind it (WCAG 2.2, 1.4.3), in charts too."""
    for page in opened.values():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for name, page in looked_at(opened, 1280):
        seen, faint = page.evaluate(FAINT_TEXTS, 4.5)
        assert seen > 50, name
        assert faint == [], name


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(opened: dict[str, Page], width: int) -> None:
    """No violation that it calls moderate or worse; contrast is looked at above."""
    for name, page in looked_at(opened, width):
        assert violations(page, contrast=False) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") == width, name


def test_every_column_has_a_heading(opened: dict[str, Page]) -> None:
    """Who hears a table hears what a figure is; a chart says its name; a page has a title."""
    for name, page in opened.items():
        assert page.evaluate(HEADLESS) == [], name
        labels = page.locator("[data-chart] .plot").evaluate_all("all => all.map(a => a.ariaLabel)")
        assert all(label.startswith("Chart: ") for label in labels)
        assert page.title()


def test_a_result_is_told_without_its_colour(opened: dict[str, Page]) -> None:
    """Runs of a trend have a sign for each result; a bar has its figure beside it."""
    signs = opened["trend"].locator(".sign")
    drawn_as = signs.evaluate_all("all => all.map(one => one.getAttribute('d'))")
    assert set(drawn_as) == {"M-4 -4L4 4M-4 4L4 -4"}
    bars = (
        opened["report"]
        .locator(".bar")
        .evaluate_all("all => all.map(bar => bar.nextElementSibling.textContent.trim())")
    )
    assert bars
    assert all(bars)


def test_the_keyboard_reaches_everything(pages: Pages, files: dict[str, str]) -> None:
    """Links, folds, search, columns and the table itself, in the order of the page."""
    page = pages(files["report"])
    drawn(page, "chart-service")
    reached = _tabbed(page)
    assert reached.index("Over time (UTC)") < reached.index("Resolved profile")
    for name in ("About this run", "Search partitions", "partition", "Table of partitions"):
        assert name in reached
    page.locator("summary", has_text="About this run").focus()
    page.keyboard.press("Enter")
    assert page.locator("#head dl").is_visible()


def _tabbed(page: Page) -> list[str]:
    """The names of what the key Tab stops at, from the top of the page to its end."""
    names: list[str] = []
    for _ in range(100):
        page.keyboard.press("Tab")
        name: Any = page.evaluate(
            "(one => one === document.body ? null : one.ariaLabel || one.textContent)"
            "(document.activeElement)"
        )
        if name is None:
            return names
        names.append(name)
    raise AssertionError(f"the keyboard does not leave {names[-1]!r}")
