"""What a user does with Locust's page and with ours, and what was noted meanwhile."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from importlib.resources import files as files_of
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from harness.report.web.document import embedded, live_page
from harness.report.web.tables import ASSETS
from tests.support.locust_process import PATIENCE_S

PATIENCE_MS = PATIENCE_S * 1000
WIDTH, HEIGHT = 1200, 800
UPDATE = os.environ.get("UPDATE_SCREENSHOTS") == "1"
"""Whether the pictures of the README are made again."""
COURSE_S = 15 if UPDATE else 6
"""So long are runs whose course is looked at; longer where it is to be a picture."""


class Pages:
    """Opens pages, and notes what they load and what goes wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._shared = self._profile()
        self.opened: list[Page] = []
        self.loaded: set[str] = set()
        self.wrong: list[str] = []

    def __call__(
        self,
        url: str,
        *,
        scheme: Literal["light", "dark"] = "light",
        width: int = WIDTH,
        height: int = HEIGHT,
        own: bool = False,
    ) -> Page:
        """A page at ``url``, seen by a reader who prefers this scheme.

        A page that is used in turn with others needs a browser profile of its ``own``, which costs
        as much as the page: of one profile only the page in front is drawn at full speed.
        """
        page = (self._profile() if own else self._shared).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        self.watch(page)
        page.goto(url)
        return page

    def watch(self, page: Page) -> None:
        """Note what it loads, and what goes wrong in it."""
        self.opened.append(page)
        page.on("request", lambda request: self.loaded.add(request.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(f"a dialog: {dialog.message}"))
        page.on(
            "console",
            lambda said: self.wrong.append(said.text) if said.type == "error" else None,
        )

    def hosts(self) -> set[str]:
        """Where everything came from that was not inside a page."""
        split = (urllib.parse.urlsplit(url) for url in self.loaded)
        return {part.netloc for part in split if part.scheme not in ("data", "blob")}

    def close(self) -> None:
        for context in {self._shared, *(page.context for page in self.opened)}:
            context.close()

    def _profile(self) -> BrowserContext:
        context = self._browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        return context


class LocustUi:
    """Locust's own page of one process, used as a user would."""

    def __init__(self, url: str, page: Page) -> None:
        self.url = url
        self.page = page

    def start(self, profile: str, *, users: int = 4, run_time: str = "") -> None:
        """Fill in the form and press its button."""
        page = self.page
        self.open_options()
        page.fill("input[name=userCount]", str(users))
        page.fill("input[name=spawnRate]", "100")
        page.fill("input[name=runTime]", run_time)
        page.fill("input[name=profile]", profile)
        page.locator("button[type=submit]").click()

    def open_options(self) -> None:
        """Open the part of the form that has run time and profile."""
        if not self.page.is_visible("input[name=profile]"):
            self.page.get_by_role("button", name="Advanced options").click()
            self.page.wait_for_selector("input[name=profile]")

    def again(self) -> None:
        """After a run, back to the form."""
        self.page.get_by_role("button", name="New").click()

    def stop(self) -> None:
        """Press Stop."""
        self.page.get_by_role("button", name="Stop").click()

    def open_tab(self, title: str = "Partitions") -> None:
        """Open a tab."""
        self.page.get_by_role("tab", name=title).click()

    def rows(self) -> dict[str, dict[str, str]]:
        """The rows of the open tab's table: by the first cell, each with its columns' titles."""
        # In one go: the page may draw other rows between two questions.
        titles, *cells = self.page.evaluate(
            "[...document.querySelectorAll('table tr')]"
            ".map(row => [...row.children].map(cell => cell.innerText.trim()))"
        ) or [[]]
        return {row[0]: dict(zip(titles, row, strict=True)) for row in cells}

    def lines(self) -> dict[str, str]:
        """The rows of the open tab's table of two columns."""
        cells = self.page.evaluate(
            "[...document.querySelectorAll('table tbody tr')]"
            ".map(row => [...row.children].map(cell => cell.innerText.trim()))"
        )
        return dict(cells)

    def data(self) -> dict[str, Any]:
        """What our own page is told."""
        with urllib.request.urlopen(f"{self.url}/stress/data", timeout=20) as answer:
            content: dict[str, Any] = json.loads(answer.read())
        return content


def says(page: Page, text: str) -> None:
    """Wait until our page says ``text`` of the run's state."""
    expect(page.locator("#state")).to_contain_text(text, timeout=PATIENCE_MS)


def drawn(page: Page, chart: str) -> None:
    """Wait until a heat map is there, with a picture of a size in it."""
    expect(page.locator(f"#{chart} canvas")).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator(f"#{chart} canvas").evaluate("one => one.width * one.height") > 0


def open_live(page: Page, answer: Mapping[str, Any]) -> None:
    """Open the live page, served by this process; it is told ``answer`` each time it asks."""
    files: dict[str, tuple[Callable[[], str], str]] = {
        "": (live_page, "text/html"),
        **ASSETS,
        "data": (lambda: embedded(answer), "application/json"),
    }

    def serve(route: Route) -> None:
        made, kind = files[route.request.url.rpartition("/")[2]]
        route.fulfill(content_type=kind, body=made())

    page.route("http://stress.invalid/**", serve)
    page.goto("http://stress.invalid/")


def violations(page: Page, *, contrast: bool = True) -> list[tuple[str, str]]:
    """What axe-core calls moderate or worse in a page, whose context has to bypass its policy.

    Without ``contrast``, which takes most of the time, axe-core does not look at colours.
    """
    page.evaluate((files_of("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    rules = {} if contrast else {"color-contrast": {"enabled": False}}
    found = page.evaluate(
        "options => axe.run(options).then(result => result.violations)",
        {"resultTypes": ["violations"], "rules": rules},
    )
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] != "minor"]
