"""The page of an advice in a real browser: the answer first, and both keys side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from harness.report.advise import Given
from harness.report.web.key_pages import advise_page
from harness.trace.advise.advise import Question, advise
from harness.trace.sources import opened
from tests.support.known_keys import KNOWN, LIMITS, record_known
from tests.support.web_pages import Pages, drawn

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The advice for a log whose day is its PartitionKey."""
    folder = tmp_path_factory.mktemp("advice")
    trace = folder / "log.parquet"
    record_known(next(one for one in KNOWN if one.name == "log by day"), trace)
    question = Question(limits=LIMITS, limits_name="a fiftieth")
    with opened(trace) as recorded:
        found = advise(recorded, question, folder, name="log")
    path = folder / "keys.html"
    path.write_text(advise_page(found, Given("log", "published")), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
def test_the_answer_is_the_first_thing_on_the_page(
    pages: Pages, file: Path, picture: Callable[..., None], width: int
) -> None:
    """Without scrolling, on a desk and on a phone, where nothing is wider than the window; both
    heat maps are drawn.
    """
    page: Page = pages(file.as_uri(), width=width, height=900)
    answer = page.locator("h1")
    expect(answer).to_contain_text("nothing throttled instead of 17%")
    box = answer.bounding_box()
    assert box is not None
    assert box["y"] < 100
    for place in range(2):
        drawn(page, f"chart-heat-0-{place}")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    expect(page.get_by_text("becomes").first).to_be_visible()
    assert not pages.wrong
    if width == 1280:
        picture(page, "advice")
