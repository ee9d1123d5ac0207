"""The documentation builds, and its search answers what a newcomer asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from docs.generator.site import add_version, build
from harness import __version__
from tests.support.web_pages import violations

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
    "tutorial": "tutorial.html",
    "which partitionkey": "questions.html#which-partitionkey-should-i-use",
    "grafana": "dashboards.html",
    "several machines": "machines.html",
    "conditions": "conditions.html",
    "request units": "cosmos-stand-in.html#what-requests-are-charged",
}
"""The words that come to mind, and the place that answers."""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The site, without warnings and broken links, opened from a disk; it loads nothing else."""
    folder = tmp_path_factory.mktemp("documentation") / "site"
    assert build(folder) > len(QUESTIONS)
    context = browser.new_context()
    page = context.new_page()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto((folder / "index.html").as_uri())
    page.keyboard.press("/")
    yield page
    context.close()
    assert [url for url in loaded if not url.startswith(("file:", "data:"))] == []


def test_axe_finds_nothing(browser: Browser, page: Page) -> None:
    """A page of each kind has nothing that axe-core calls moderate or worse: the first one, one of
    text and commands, also on a phone in the dark, and one of tables.
    """
    site = page.url.rpartition("/")[0]
    looks: tuple[tuple[Literal["light", "dark"], int, tuple[str, ...]], ...] = (
        ("light", 1280, ("index", "docs/tutorial", "docs/settings")),
        ("dark", 390, ("docs/tutorial",)),
    )
    for scheme, width, names in looks:
        context = browser.new_context(
            bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        for name in names:
            other = context.new_page()
            other.goto(f"{site}/{name}.html")
            # A long page has the colours of the others.
            assert violations(other, contrast=name != "docs/settings") == [], name
        context.close()


def test_each_version_is_listed(tmp_path: Path) -> None:
    """The page above them leads to this version, and the list has the others, the newest first."""
    for version in ("0.0.9", "0.0.10", __version__):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").touch()
    add_version(tmp_path)
    listed = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [one["version"] for one in listed] == [__version__, "0.0.10", "0.0.9"]
    assert f"{__version__}/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("words", "place"), QUESTIONS.items(), ids=QUESTIONS)
def test_the_search_finds_the_answer(page: Page, words: str, place: str) -> None:
    """The obvious words of a question have its answer among the first results."""
    search, results = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    search.fill("")
    expect(results).to_have_count(0)
    search.fill(words)
    expect(results).not_to_have_count(0)
    links = results.evaluate_all("links => links.map(link => link.href)")
    assert place in [link.rpartition("/")[2] for link in links][:FIRST]
