"""A hot key is a line of the heat map, and stands first in the tab.

Pictures are made of three runs. What the map of each key design looks like is tested in
`tests/unit/measure/counts/test_heatmap.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness.measure.record.record import RunRecord
from tests.support.locust_process import ROOT, Stress, wait_until
from tests.support.ports import free_port
from tests.support.web_pages import COURSE_S, UPDATE, LocustUi, Pages, drawn, says

pytestmark = [pytest.mark.azurite, pytest.mark.browser]

HOT_KEY = """\
# What does one busy tenant among twenty do?

[fields.tenant]
values = 20
prefix = "p"
distribution = "zipfian"
theta = 1.3

[keys]
partition_key = "{tenant}"
rows_per_partition = 10

[load]
users = 8
max_entities_per_s = 300
"""
"""A file of one's own: it can be chosen because Locust was started with it."""
DESIGNS = {"append-only": "compare-append-only", "even-spread": "compare-spread"}
"""Of the other pictures, each by its profile."""
LIGHT = ("--set", "load.max_entities_per_s=150")
"""A low rate. Pictures are made with the profiles as they are."""
LIMIT = 70.0 if UPDATE else 25.0
"""A partition serves so little that only the busiest asks for more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The run with a hot key as a user saw it, and its record."""

    record: RunRecord
    ranges: int
    rows: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def seen(
    stress: Stress,
    pages: Pages,
    picture: Callable[..., None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Seen]:
    """A run from the form; the page is open all the time."""
    folder = tmp_path_factory.mktemp("own")
    own = folder / "hot-key.toml"
    own.write_text(HOT_KEY, encoding="utf-8")
    limits = folder / "limits.toml"
    demo = (ROOT / "limits" / "demo.toml").read_text(encoding="utf-8")
    changed = demo.replace("entities_per_s = 250.0", f"entities_per_s = {LIMIT}")
    changed = changed.replace("entities_per_s = 500.0", "entities_per_s = 2500.0")
    assert changed.count(f" = {LIMIT}") == 1
    limits.write_text(changed, encoding="utf-8")
    port = free_port()
    process = stress(
        *("--profile", str(own), "--throttling", str(limits), "--web-port", str(port)),
        *("--set", "load.settle_s=0", "--set", "loading.settle_s=0", "--set", "conditions=[]"),
        *(() if UPDATE else LIGHT),
    )
    process.until_said("Charts:")
    url = f"http://127.0.0.1:{port}"
    ui = LocustUi(url, pages(url, own=True))
    live = pages(f"{url}/stress/", height=1150, own=True)

    def see(profile: str) -> None:
        ui.start(profile, users=8, run_time=str(COURSE_S))
        says(live, f"{Path(profile).stem}: running")

    def ended(name: str) -> None:
        says(live, "ended by run time")
        drawn(live, "chart-heat")
        _show_course(live)
        picture(live, f"web-{name}")

    see(str(own))
    ui.open_tab()
    wait_until(lambda: _points(ui) >= COURSE_S - 4, "points", every_s=0.5)
    rows = _rows_while_throttled(ui)
    picture(ui.page, "web-tab")
    ended("hot-key")
    yield Seen(record=process.record, ranges=live.locator("#chart-heat .row").count(), rows=rows)
    for name, profile in DESIGNS.items() if UPDATE else ():
        ui.again()
        see(profile)
        ended(name)
    process.interrupt()
    process.wait()


def _points(ui: LocustUi) -> int:
    """How many seconds of the run are in the charts."""
    charts = ui.data()["charts"]
    return len(charts["chart-main"]["lines"][0]["xs"]) if "chart-main" in charts else 0


def _rows_while_throttled(ui: LocustUi) -> dict[str, dict[str, str]]:
    """The rows of the tab, once the hottest partition is throttled."""
    rows: dict[str, dict[str, str]] = {}

    def throttled() -> bool:
        rows.update(ui.rows())
        return len(rows) > 10 and float(list(rows.values())[1]["Throttled/s"] or 0) > 0

    wait_until(throttled, "throttling in the tab", every_s=0.25)
    return rows


def _show_course(live: Page) -> None:
    live.evaluate("document.getElementById('over-time').scrollIntoView()")
    live.wait_for_timeout(300)


def test_a_hot_key_is_a_line(seen: Seen) -> None:
    """One row of the map has far more than the others, and is what the gateway refuses."""
    heat = seen.record.heat
    assert heat is not None
    sums = [sum(row.entities) for row in heat.ranges]
    hottest = sums.index(max(sums))
    assert max(sums) > 4 * sorted(sums)[len(sums) // 2]
    refused = [sum(row.throttled) for row in heat.ranges]
    assert refused.index(max(refused)) == hottest
    assert max(refused) > 0


def test_the_hot_key_stands_first_in_the_tab(seen: Seen) -> None:
    """The most accessed and most throttled partition is the first one below the account."""
    rows = list(seen.rows.values())
    hot = rows[1]
    assert hot["Partition"] == max(seen.record.partitions, key=lambda part: part.entities).key
    assert float(hot["Throttled/s"]) > 0
    assert float(hot["Entities/s"]) > float(rows[4]["Entities/s"])


def test_the_map_is_drawn_with_all_its_ranges(seen: Seen) -> None:
    """In the browser every row has its name, or every second one where they are many."""
    heat = seen.record.heat
    assert heat is not None
    rows = len(heat.ranges)
    assert rows // 4 < seen.ranges <= rows
