"""A real browser and real `locust` processes. Locust has to be the first to be imported."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import locust  # noqa: F401
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from harness.endpoint.azurite.process import AzuriteProcess
from tests.support.web_pages import UPDATE, Pages

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window. Nothing is downloaded."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: run make test-deps")
    with sync_playwright() as playwright:
        # It may be started by root, who has no sandbox; it meets nothing but this machine.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[Pages]:
    """Opens pages, and closes them with the module."""
    opened = Pages(browser)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def host(azurite: AzuriteProcess) -> str:
    """What -H takes to reach the real Azurite."""
    return f"http://{azurite.endpoint.host}"


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Page, str], None]:
    """Takes a picture of a page; with UPDATE_SCREENSHOTS=1 the one that the README shows."""
    folder = IMAGES if UPDATE else tmp_path_factory.mktemp("pictures")

    def take(page: Page, name: str, *, whole: bool = False) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=whole, animations="disabled")

    return take
