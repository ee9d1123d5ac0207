"""The HTML report in a real browser: it draws, asks nobody, and nothing in it acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from harness.report.compare.comparison import compare
from harness.report.compare.differences import Subject
from harness.report.compare.repeats import trends_of
from harness.report.web.compare_page import compare_page, trend_page
from harness.report.web.document import document
from tests.support.records import altered, kept, with_courses, with_heat, with_partitions
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
    *("chart-main", "chart-heat", "chart-throttling", "chart-refused", "chart-service"),
    *("chart-response", "chart-backlog", "chart-generator"),
]
PLOTS = """[...document.querySelectorAll('.chart clipPath rect')].map(rect => {
    const { left } = rect.ownerSVGElement.getBoundingClientRect(), x = left + rect.x.baseVal.value
    return [x, x + rect.width.baseVal.value]
})"""
"""The left and the right edge of every plot."""
TIMES = """[...document.querySelectorAll('.chart svg')].map(svg =>
    [...svg.querySelectorAll('.time')].map(text => text.textContent).join())"""
"""The time axis of every chart."""


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
def opened(pages: Pages, file: Path) -> Page:
    """The report, opened."""
    return pages(file.as_uri())


@pytest.fixture
def page(opened: Page) -> Page:
    """The report, in front of the other pages."""
    opened.bring_to_front()
    return opened


def test_every_chart_is_drawn(page: Page) -> None:
    """All charts are there, those of keys and latencies with a picture in them."""
    for chart in CHARTS:
        expect(page.locator(f"#{chart} svg")).to_be_visible(timeout=PATIENCE_MS)
    for chart in ("chart-heat", "chart-refused", "chart-service", "chart-response"):
        drawn(page, chart)


def test_plots_above_each_other_have_one_time_axis(pages: Pages, file: Path) -> None:
    """Every plot begins and ends at the same pixel, on a desk and on a phone, where all fits."""
    for width in (1400, 390):
        shown = pages(file.as_uri(), width=width, height=900)
        drawn(shown, "chart-response")
        edges = shown.evaluate(PLOTS)
        assert len(edges) == len(CHARTS)
        assert len({tuple(edge) for edge in edges}) == 1, edges
        assert shown.evaluate("document.documentElement.scrollWidth") == width


def test_the_first_screen_answers(pages: Pages, tmp_path: Path) -> None:
    """Whether it passed, the verdict in a short sentence, and the chart that shows it."""
    record = with_courses(kept())
    for name, shown in {
        "plain": record,
        "search": with_courses(kept("run-v1-search.json")),
    }.items():
        path = tmp_path / f"{name}.html"
        path.write_text(document(shown), encoding="utf-8")
        page = pages(path.as_uri(), width=1400, height=900)
        for part in ("#verdict .badge", "#verdict .sentence", "#figures", "#chart-main svg"):
            box = page.locator(part).first.bounding_box()
            assert box is not None, part
            assert box["y"] + box["height"] <= 900, part
        assert len(page.inner_text("#verdict .sentence")) < 100
        assert not page.locator("#head dl").is_visible()


def test_pages_of_several_runs_are_drawn(pages: Pages, tmp_path: Path) -> None:
    """Runs over each other have one axis; a trend has its points, and neither is too wide."""
    records = [with_courses(kept("run-v1.json")), with_courses(kept("run-v1-search.json"))]
    subjects = [Subject(source="run", records=(one,)) for one in records]
    later = altered(records[0], run_id="later")
    trends, single = trends_of([*records, later])
    for name, text in {
        "compare": compare_page(compare(subjects, [])),
        "trend": trend_page(trends, single),
    }.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        for width in (1400, 390):
            page = pages(path.as_uri(), width=width)
            expect(page.locator(".plot svg").first).to_be_visible(timeout=PATIENCE_MS)
            edges = page.evaluate(PLOTS)
            assert len(edges) > 2
            assert len({tuple(edge) for edge in edges}) == 1
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_partitions_are_searched_and_sorted(pages: Pages, tmp_path: Path) -> None:
    """By name and by any column; sums of other rows stay at the end and are no partition."""
    keys = [f"tenant-{place}" for place in range(12)]
    record = with_partitions(kept(), keys, folded=True)
    parts = tuple(
        altered(part, entities_per_s={"mean": 9.0 * place})
        for place, part in enumerate(record.partitions)
    )
    path = tmp_path / "many.html"
    path.write_text(document(altered(record, partitions=parts)), encoding="utf-8")
    page = pages(path.as_uri())
    table = page.locator("#partitions table")
    names = table.locator("tbody tr:visible td:first-child")
    said = page.locator("#partitions [role=status]")
    expect(said).to_have_text("12 partitions")
    table.get_by_role("button", name="partition").click()
    assert names.all_inner_texts()[:3] == ["tenant-0", "tenant-1", "tenant-2"]
    assert names.all_inner_texts()[-1] == "all others"
    table.get_by_role("button", name="mean", exact=True).click()
    means = [float(text.replace(",", "")) for text in table.locator(
        "tbody tr:not(.sum) td:nth-child(2)"
    ).all_inner_texts()]  # fmt: skip
    assert means == sorted(means, reverse=True)
    assert len(set(means)) > 1
    page.get_by_role("searchbox").fill("ANT-1")
    assert sorted(names.all_inner_texts()) == ["tenant-1", "tenant-10", "tenant-11"]
    expect(said).to_have_text("3 of 12 partitions")


def test_keys_are_text(page: Page) -> None:
    """Hostile keys are seen as they are, in the table and in the chart, and did nothing."""
    names = page.locator("#partitions bdi").all_inner_texts()
    assert "<b>bold</b> & %{x} %{y}" in names
    assert "&lt;b&gt;" in page.locator("#chart-heat svg").inner_html()
    assert "acted" not in page.title()
    assert page.locator("main img, main b:text('bold')").count() == 0


def test_names_of_keys_beside_a_heat_map_are_whole(pages: Pages, tmp_path: Path) -> None:
    """Wide digits and a range of long keys fit into the room left of the plots."""
    keys = [f"{place}0000000000000-{place}80-0000" for place in range(4, 9)]
    record = with_heat(kept(), keys, lambda row, column: row + 1)
    assert record.heat is not None
    ranges = tuple(altered(one, last=f"{one.last}-9-88-8888") for one in record.heat.ranges)
    heat = altered(record.heat, ranges=ranges)
    path = tmp_path / "wide.html"
    path.write_text(document(altered(record, heat=heat)), encoding="utf-8")
    shown = pages(path.as_uri())
    drawn(shown, "chart-heat")
    left = shown.evaluate("document.querySelector('#chart-heat').getBoundingClientRect().left")
    names = shown.evaluate(
        "[...document.querySelectorAll('#chart-heat .row')]"
        ".map(one => one.getBoundingClientRect().left)"
    )
    assert len(names) == len(keys)
    assert min(names) >= left


def test_all_charts_show_the_same_time(page: Page) -> None:
    """What is zoomed to in one chart is shown in all; a double click shows all again."""
    [before] = set(page.evaluate(TIMES))
    area = page.locator("#chart-main svg")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 200, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, y, steps=5)
    page.mouse.up()
    [zoomed] = set(page.evaluate(TIMES))
    assert zoomed != before
    page.mouse.dblclick(box["x"] + 300, y)
    assert set(page.evaluate(TIMES)) == {before}
    page.mouse.move(box["x"] + 300, y + 1)
    assert "entities/s served" in page.locator("#chart-main .tip").inner_text()
    assert page.locator("#chart-heat .cross").get_attribute("d")


def test_the_reader_chooses_what_is_drawn(page: Page) -> None:
    """A click hides a line, a layer replaces the heat map, and both stay when the page is drawn."""
    line = page.locator("#chart-main .legend .key").first
    before = page.locator("#chart-main .line").count()
    line.click()
    assert page.locator("#chart-main .line").count() == before - 1
    assert line.get_attribute("aria-pressed") == "false"
    line.click()
    assert page.locator("#chart-main .line").count() == before
    layers = page.locator("#chart-heat .layer")
    assert layers.all_inner_texts() == ["all", "reads", "writes", "bytes", "latency"]
    layers.last.click()
    assert "ms on average" in page.locator("#chart-heat .ramp").inner_text()
    assert "; latency" in (page.locator("#chart-heat .plot").get_attribute("aria-label") or "")
    layers.first.click()


def test_a_zoomed_time_can_be_moved(page: Page) -> None:
    """Shift and drag moves it in all charts, not beyond the run."""
    page.locator("#chart-main svg").scroll_into_view_if_needed()
    box = page.locator("#chart-main svg").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2

    def drag(begin: int, end: int) -> str:
        page.mouse.move(box["x"] + begin, y)
        page.mouse.down()
        page.mouse.move(box["x"] + end, y, steps=5)
        page.mouse.up()
        [times] = set(page.evaluate(TIMES))
        return str(times)

    zoomed = drag(400, 700)
    page.keyboard.down("Shift")
    later = drag(600, 500)
    first = [drag(300, 900) for _ in range(5)][-1]
    page.keyboard.up("Shift")
    page.mouse.dblclick(box["x"] + 300, y)
    [whole] = set(page.evaluate(TIMES))
    assert zoomed != later
    assert first != later
    assert whole != first


def test_a_chart_is_saved_as_a_picture(page: Page, tmp_path: Path) -> None:
    """PNG of what is seen, with lines and heat map, although the page may load nothing."""
    for chart in ("chart-main", "chart-heat"):
        with page.expect_download() as download:
            page.locator(f".chart:has(#{chart}) .save").click()
        saved = tmp_path / "chart.png"
        download.value.save_as(saved)
        assert download.value.suggested_filename == f"{chart}.png"
        assert saved.read_bytes().startswith(b"\x89PNG")
        assert saved.stat().st_size > 5000


def test_in_the_dark_it_has_other_colours(pages: Pages, page: Page, file: Path) -> None:
    """Charts follow the reader's colour scheme."""
    dark = pages(file.as_uri(), scheme="dark")
    drawn(dark, "chart-heat")
    for script in (
        "getComputedStyle(document.querySelector('#chart-main text')).fill",
        "document.querySelector('#chart-heat canvas').toDataURL()",
    ):
        assert dark.evaluate(script) != page.evaluate(script)


def test_a_far_limit_is_named_at_the_edge(pages: Pages, tmp_path: Path) -> None:
    """A limit that the load comes near is a line; a burst does not flatten the rest."""
    path = tmp_path / "limits.html"
    usual = tuple(altered(point, entities=900.0) for point in kept().series)
    for rate, lines, edge in ((900.0, 1, ["↑ target 20,000"]), (9000.0, 2, [])):
        point = altered(usual[9], entities=rate)
        series = (*usual[:9], point, *usual[10:])
        if lines == 2:
            series = tuple(altered(one, entities=rate) for one in usual)
        path.write_text(document(altered(kept(), series=series)), encoding="utf-8")
        page = pages(path.as_uri())
        texts = page.locator("#chart-main .note-text").all_text_contents()
        assert page.locator("#chart-main .level").count() == lines
        assert [text[: len("↑ target 20,000")] for text in texts if "↑" in text] == edge
    burst = (*usual[:9], altered(usual[9], entities=90_000.0), *usual[10:])
    path.write_text(document(altered(kept(), series=burst)), encoding="utf-8")
    page = pages(path.as_uri())
    assert "↑ 90,000 entities/s at" in page.locator("#chart-main svg").inner_html()
    assert page.locator("#chart-main .level").count() == 1


def test_paper_shows_what_is_collapsed(pages: Pages, file: Path) -> None:
    """In light colours; what the reader had collapsed is so again afterwards."""
    page = pages(file.as_uri(), scheme="dark")
    folded = page.locator("details:not([open])").count()
    assert folded
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded


def test_half_an_hour_of_200_partitions_opens_in_a_second(pages: Pages, tmp_path: Path) -> None:
    """With all charts drawn, of CPU time: a busy machine takes longer. The file is below 1 MB."""
    keys = [f"contoso-production-{place:04d}" for place in range(200)]
    like = with_courses(kept())
    series = tuple(
        altered(like.series[0], t=like.series[0].t + second, entities=900.0 + second % 90)
        for second in range(1800)
    )
    record = with_partitions(altered(like, series=series, measured_s=1795), keys)
    record = with_heat(record, keys[:64], lambda row, column: 99 + row * column % 50, columns=120)
    path = tmp_path / "long.html"
    path.write_text(document(record), encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    page = pages("about:blank")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    drawn(page, "chart-heat")
    metrics = session.send("Performance.getMetrics")["metrics"]
    [took_s] = [one["value"] for one in metrics if one["name"] == "TaskDuration"]
    assert 0 < took_s < 1.0


def test_it_is_read_without_scripts(browser: Browser, file: Path) -> None:
    """With scripts off the verdict and the tables are there."""
    context = browser.new_context(java_script_enabled=False)
    try:
        plain = context.new_page()
        plain.goto(file.as_uri())
        expect(plain.locator("#verdict .sentence")).to_be_visible(timeout=PATIENCE_MS)
        expect(plain.locator("#partitions table")).to_be_visible(timeout=PATIENCE_MS)
        expect(plain.locator("#chart-main")).to_be_hidden(timeout=PATIENCE_MS)
    finally:
        context.close()


def test_nothing_was_asked_for(pages: Pages, page: Page, file: Path) -> None:
    """The file is all that was loaded, and its own policy stopped nothing."""
    assert page.url == file.as_uri()
    loaded = {url for url in pages.loaded if not url.startswith(("data:", "blob:"))}
    assert loaded == {opened.url for opened in pages.opened}
    assert pages.wrong == []
