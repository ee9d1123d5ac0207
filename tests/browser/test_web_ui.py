"""The web UI in a real browser: from the form to the tab, the live page, the files, another run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from harness.measure.record.record import RunRecord
from harness.profile.profile_loader import shipped_names
from harness.swarm.web.start_form import profile_in
from tests.support.locust_process import LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.web_pages import COURSE_S, UPDATE, WIDTH, LocustUi, Pages, drawn, says

pytestmark = [pytest.mark.azurite, pytest.mark.browser]

OPTIONS = (
    *("--profile", "single-partition"),
    *("--set", f"load.max_entities_per_s={400 if UPDATE else 120}"),
    *("--set", "load.settle_s=0"),
    *("--set", "loading.settle_s=0"),
    *("--set", "keys.rows_per_partition=10"),
    *("--set", "conditions=[]"),
)
LIMITS = "[partition]\nentities_per_s = 60.0\n"
"""One partition is asked for more."""
REFUSED = {
    "a path": ("../own.toml", "only shipped profiles can be chosen"),
    "no profile": ("nosuch", "no profile 'nosuch'"),
}


@dataclasses.dataclass(slots=True, kw_only=True)
class Story:
    """What a user saw, in the order of the fields."""

    process: LocustProcess
    before: str = ""
    suggested: list[str] = dataclasses.field(default_factory=list)
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    host_can_be_changed: bool = True
    labels: list[str] = dataclasses.field(default_factory=list)
    first_rows: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    running: dict[str, Any] = dataclasses.field(default_factory=dict)
    backgrounds: list[str] = dataclasses.field(default_factory=list)
    inks: list[str] = dataclasses.field(default_factory=list)
    reloaded: str = ""
    widths: list[float] = dataclasses.field(default_factory=list)
    first_verdict: dict[str, str] = dataclasses.field(default_factory=dict)
    last_verdict: dict[str, str] = dataclasses.field(default_factory=dict)
    link: str | None = None
    kept: list[list[str]] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    saved: bytes = b""
    report: str = ""
    second_rows: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    second: str = ""


@pytest.fixture(scope="module")
def story(
    stress: Stress,
    pages: Pages,
    picture: Callable[..., None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    """Wrong forms, a throttled run in two browsers, Stop, files, another run."""
    limits = tmp_path_factory.mktemp("limits") / "low.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    throttling = "demo" if UPDATE else str(limits)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = stress(*OPTIONS, "--throttling", throttling, "--web-port", str(port))
    process.until_said("Charts:")
    told = Story(process=process)
    ui = LocustUi(url, pages(url, own=True))
    light = pages(f"{url}/stress", own=True)
    dark = pages(f"{url}/stress/", scheme="dark", own=True)
    says(light, "No run yet")
    told.before = light.inner_text("body")
    _wrong_forms(told, ui)
    ui.start("single-partition", users=8, run_time="10m")
    _while_it_runs(told, ui, light, dark, picture)
    _after_stop(told, ui, light, picture)
    _another_run(told, ui, dark)
    process.interrupt()
    process.wait()
    return told


def _wrong_forms(told: Story, ui: LocustUi) -> None:
    page = ui.page
    ui.open_options()
    page.fill("input[name=profile]", "")
    page.click("input[name=profile]")
    page.wait_for_selector("[role=option]")
    told.suggested = page.locator("[role=option]").all_inner_texts()
    page.keyboard.press("Escape")
    told.host_can_be_changed = page.is_editable("input[name=host]")
    told.labels = page.locator("form label").all_inner_texts()
    for name, (profile, sentence) in REFUSED.items():
        ui.start(profile)
        shown = page.get_by_text(sentence)
        expect(shown).to_be_visible()
        told.refused[name] = shown.inner_text()


def _while_it_runs(
    told: Story, ui: LocustUi, light: Page, dark: Page, picture: Callable[..., None]
) -> None:
    ui.open_tab()

    def throttled() -> bool:
        row = ui.rows().get("p0")
        if row is None or row["Service p99 ms"] == "n/a":
            return False
        return float(row["Throttled/s"]) > 0

    wait_until(throttled, "a success and a 503 in the tab", every_s=0.25)
    told.first_rows = ui.rows()
    ui.open_tab("Verdict")
    told.first_verdict = ui.lines()
    ui.open_tab()
    told.running = ui.data()
    for live in (light, dark):
        drawn(live, "chart-heat")
        told.backgrounds.append(live.evaluate("getComputedStyle(document.body).backgroundColor"))
        tick = live.locator("#chart-heat .time").first
        told.inks.append(tick.evaluate("element => getComputedStyle(element).fill"))
    # A course that is worth a picture.
    enough = COURSE_S - 3
    wait_until(
        lambda: len(ui.data()["charts"]["chart-main"]["lines"][0]["xs"]) > enough,
        "a course",
        every_s=0.5,
    )
    light.reload()
    drawn(light, "chart-heat")
    told.reloaded = light.inner_text("#state")
    told.widths = light.evaluate(
        "[...document.querySelectorAll('[data-chart] svg')]"
        ".map(one => one.clientWidth / one.closest('[data-chart]').clientWidth)"
    )
    light.set_viewport_size({"width": WIDTH, "height": 1000})
    picture(light, "web-live")


def _after_stop(told: Story, ui: LocustUi, light: Page, picture: Callable[..., None]) -> None:
    ui.stop()
    says(light, "ended by Stop")
    light.wait_for_selector("#downloads a")
    told.kept.append([light.inner_text(part) for part in ("#verdict", "#partitions", "#details")])
    ui.open_tab("Verdict")
    expect(ui.page.get_by_text("ended by Stop")).to_be_visible()
    told.last_verdict = ui.lines()
    ui.open_tab("Download Data")
    told.link = ui.page.get_by_role("link", name="Charts, heat map").get_attribute("href")
    light.reload()
    drawn(light, "chart-heat")
    told.kept.append([light.inner_text(part) for part in ("#verdict", "#partitions", "#details")])
    told.files = light.locator("#downloads a").all_inner_texts()
    with light.expect_download() as download:
        light.get_by_role("link", name="run.json").click()
    told.saved = Path(download.value.path()).read_bytes()
    light.get_by_role("link", name="report.html").click()
    drawn(light, "chart-heat")
    told.report = light.inner_text("main")
    picture(light, "report")


def _another_run(told: Story, ui: LocustUi, dark: Page) -> None:
    says(dark, "ended by Stop")
    ui.again()
    ui.start("key-spread", users=4, run_time="6")
    says(dark, "key-spread: running")
    ui.open_tab()
    wait_until(lambda: len(ui.rows()) > 20, "rows of the second run", every_s=0.25)
    told.second_rows = ui.rows()
    says(dark, "ended by run time")
    drawn(dark, "chart-heat")
    told.second = dark.inner_text("body")


def test_before_the_first_run_the_page_says_so(story: Story) -> None:
    """There is no empty chart, and nothing of a run."""
    assert "No run yet" in story.before
    assert "Entities/s" not in story.before


def test_the_form_suggests_the_shipped_profiles(story: Story) -> None:
    """The field of the real form drops down our profiles, each with its question."""
    assert list(map(profile_in, story.suggested)) == shipped_names()
    assert all(label.endswith("?") for label in story.suggested)


def test_a_wrong_form_is_told_why(story: Story) -> None:
    """A path and an unknown profile are refused, with a sentence below the form."""
    assert story.refused.keys() == REFUSED.keys()
    assert len(story.process.records) == 2


def test_the_form_offers_only_what_it_can_change(story: Story) -> None:
    """The host is shown but cannot be edited, and the limits have a short name."""
    assert not story.host_can_be_changed
    assert "Simulated throttling" in story.labels


def test_rows_appear_while_the_run_goes_on(story: Story) -> None:
    """The tab says how the run goes, and holds partitions against the limit in force."""
    rows = story.first_rows
    assert list(rows) == ["The whole account", "p0"]
    assert story.first_verdict["Run"].startswith("single-partition: running")
    assert any(what.endswith("so far") for what in story.first_verdict)
    assert float(rows["p0"]["Entities/s"]) > 0
    assert "█" in rows["p0"]["Of the limit"]
    assert "█" in rows["p0"]["Throttled"]
    assert rows["p0"]["Unsuccessful answers/s"].startswith("503: ")
    assert "429/s" not in rows["p0"]
    assert float(rows["p0"]["Service p99 ms"]) >= float(rows["p0"]["Service p50 ms"]) > 0
    assert rows["p0"]["Response p99 ms"] == "n/a"


def test_two_browsers_see_the_same_run_in_their_own_colours(story: Story) -> None:
    """One is light, one is dark: background and the letters of a chart follow."""
    assert len(set(story.backgrounds)) == 2
    assert len(set(story.inks)) == 2
    assert story.running["state"] == "running"


def test_a_page_that_is_reloaded_goes_on(story: Story) -> None:
    """In mid-run it shows the same run again, each chart as wide as its place."""
    assert story.reloaded.startswith("single-partition: running")
    assert len(story.widths) > 3
    assert story.widths == pytest.approx([1.0] * len(story.widths), abs=0.05)


def test_the_verdict_comes_without_a_reload(story: Story) -> None:
    """When the run is over the tab shows what it came to."""
    assert story.last_verdict["Run"].startswith("single-partition: ended by Stop")
    assert story.last_verdict["Verdict"]


def test_the_tab_leads_to_the_page(story: Story) -> None:
    """Among Locust's downloads there is a link, relative to wherever Locust is served."""
    assert story.link == "./stress/"


def test_the_last_run_is_kept(story: Story) -> None:
    """After its end, and after a reload, all of it is still there."""
    before, after = story.kept
    assert all(before)
    assert after == before


def test_the_record_can_be_saved(story: Story) -> None:
    """What is downloaded is the run's own file, and the others are there too."""
    saved = RunRecord.from_json(story.saved)
    first = story.process.records[0]
    assert saved == first
    assert first.throttled_ratio > 0
    assert first.ended_by == "Stop"
    wanted = {"run.json", "report.html", "summary.md", "partitions.csv", "junit.xml"}
    assert wanted <= set(story.files)


def test_the_report_opens(story: Story) -> None:
    """It says what the live page said."""
    first = story.process.records[0]
    assert first.verdict.sentence in story.report


def test_a_second_run_starts_clean(story: Story) -> None:
    """Nothing of the first is left, in the tab or on a page that was open all the time."""
    second = story.process.records[1]
    assert second.profile["name"] == "key-spread"
    assert second.ended_by == "run time"
    assert len(story.second_rows) > 20
    assert sum(part.entities for part in second.partitions) == second.counts.entities
    assert second.run_id in story.second
    assert story.process.records[0].run_id not in story.second
    assert "single-partition" not in story.second


def test_everything_comes_from_here(story: Story, pages: Pages) -> None:
    """Neither Locust's pages nor ours load anything from another host, and no script fails."""
    process = story.process
    assert pages.hosts() == {pages.opened[0].url.split("/")[2]}
    assert pages.wrong == []
    assert "Traceback" not in process.said
