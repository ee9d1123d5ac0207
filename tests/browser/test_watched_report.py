"""The report of a watched application in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.web_pages import Pages

pytestmark = [pytest.mark.azurite, pytest.mark.browser]

SHOP = Path(__file__).parents[2] / "examples" / "web-shops" / "shop.py"
LIMITS = "[partition]\nentities_per_s = 30.0\n"
"""Refuses the busy shop soon, on a slow machine too."""
SECONDS = 6
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a watch of the shop."""
    where = tmp_path_factory.mktemp("shop")
    limits = where / "limits.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    watch = [sys.executable, "-m", "harness", "watch", "--out", str(where / "out")]
    shop = [sys.executable, str(SHOP), str(SECONDS)]
    ended = subprocess.run(
        [*watch, "--name", "shop", "--limits", str(limits), "--", *shop],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    (results,) = (where / "out").iterdir()
    return results


@pytest.fixture(scope="module")
def page(pages: Pages, folder: Path) -> Page:
    """The report, opened."""
    return pages((folder / "report.html").as_uri(), height=1000)


def test_the_first_screen_names_the_busy_shop(page: Page) -> None:
    """The verdict says which partition was throttled, beside the chart that shows it."""
    expect(page.locator("#chart-main .line").first).to_be_in_viewport()
    sentence = page.get_by_text("Partition 'orders/shop-1' was throttled: its limit is")
    expect(sentence.first).to_be_in_viewport()


def test_retries_that_the_shop_did_not_see_are_shown(page: Page, folder: Path) -> None:
    """More attempts than operations, and the sentence about those that succeeded after a retry."""
    counts = json.loads((folder / "run.json").read_text(encoding="utf-8"))["counts"]
    assert counts["attempts"] > counts["operations"]
    expect(page.get_by_text("succeeded after a retry")).to_have_count(1)
