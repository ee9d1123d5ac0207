"""The documentation builds, and its search answers what a newcomer asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from docs.generator.site import build

pytestmark = pytest.mark.browser
FIRST = 5
"""Results that a reader sees without scrolling."""
QUESTIONS = {
    "throttled 5 %": "questions.html#what-does-throttled-5-mean",
    "is 500/s good": "questions.html#is-500s-good",
    "which command": "questions.html#which-command-do-i-need",
    "503 429": "throttling.html#503-500-504-and-429",
    "what is a partition": "questions.html#what-is-a-partition",
    "client-limited": "questions.html#why-is-my-run-inconclusive-or-client-limited",
    "cost": "questions.html#do-i-need-an-azure-account-and-what-does-a-run-cost",
    "exit codes": "ci.html#exit-codes",
    "scheme": "whatif.html#a-scheme",
    "own scenario": "scenario.html",
    "which partitionkey": "questions.html#which-partitionkey-should-i-use",
    "grafana": "dashboards.html",
    "several machines": "machines.html",
    "conditions": "conditions.html",
    "request units": "cosmos-stand-in.html#what-requests-are-charged",
}
"""The words that come to mind, and the place that answers."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, without warnings and broken links."""
    folder = tmp_path_factory.mktemp("documentation") / "site"
    assert build(folder) > len(QUESTIONS)
    return folder


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The home page as it is opened from a disk; it may load nothing from elsewhere."""
    context = browser.new_context()
    page = context.new_page()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto((site / "index.html").as_uri())
    yield page
    context.close()
    assert [url for url in loaded if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(("words", "place"), QUESTIONS.items(), ids=QUESTIONS)
def test_the_search_finds_the_answer(page: Page, words: str, place: str) -> None:
    """The obvious words of a question have its answer among the first results."""
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search").fill(words)
    page.get_by_role("status").get_by_text(re.compile(r"\d results?")).wait_for()
    results = page.get_by_role("option").evaluate_all("links => links.map(link => link.href)")
    found = [link.rpartition("/")[2] for link in results][:FIRST]
    assert place in found
