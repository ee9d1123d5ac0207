"""Keys and names that would be markup or script are shown, not executed; behind login and path."""

from __future__ import annotations

import dataclasses
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from harness.measure.record.record import RunRecord
from tests.support.locust_process import ROOT, Stress, wait_until
from tests.support.ports import free_port
from tests.support.web_pages import LocustUi, Pages, drawn, says

pytestmark = [pytest.mark.azurite, pytest.mark.browser]

LONG = "<u>" + "k" * 507 + "zz"
"""1 KiB, as the service stores it: two bytes a letter. Azurite takes no longer ones."""
KEYS = [
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload=window.hacked=1> '`",
    "';window.hacked=1;'",
    "{{7*7}} ${7*7} %{y} &lt;b&gt; <b>bold",
    "🔥 crème 中文",
    LONG,
]
NAME = "<img src=x onerror=window.hacked=2>"
PATH = "/load/test"

SCENARIO = f"""\
from harness.workload.scenarios.scenario import Scenario

KEYS = {KEYS!r}


class Strange(Scenario):
    actions = {{"look": 1, "change": 1}}

    def loading(self):
        return self.batched(
            self.insert(key, f"{{row:04d}}", {{"Title": "x"}}) for key in KEYS for row in range(5)
        )

    def look(self, rng):
        return self.get(rng.choice(KEYS), "0001", name={NAME!r})

    def change(self, rng):
        return self.merge(rng.choice(KEYS), "0002", {{"Title": "y"}})
"""
PROFILE = """\
# <img src=x onerror=window.hacked=3> Are names "shown" & not executed?

scenario = "FILE:Strange"

[fields.key]
values = 6

[keys]
rows_per_partition = 5
"""
LOCUSTFILE = f"""\
import sys

sys.path.insert(0, {str(ROOT)!r})
from flask import redirect
from flask_login import UserMixin, login_user
from locust import events

from harness.swarm import ProfileUser, SinglePartitionUser, wire

wire(events)


class Somebody(UserMixin):
    id = "somebody"


@events.init.add_listener
def add_login(environment, **_):
    web_ui = environment.web_ui
    web_ui.app.secret_key = "of this test"
    web_ui.login_manager.user_loader(lambda name: Somebody())
    web_ui.auth_args = {{"username_password_callback": "{PATH}/enter"}}

    @web_ui.app.route("{PATH}/enter")
    def enter():
        login_user(Somebody())
        return redirect("{PATH}/")
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a user saw, and what nobody sees without having logged in."""

    without_login: dict[str, str]
    asked_to_log_in: str
    rows: list[str]
    names: str
    question: str
    partitions: list[str]
    whole: list[str]
    in_heat: list[str]
    statistics: str
    hacked: list[Any]
    record: RunRecord
    hosts: set[str]
    wrong: list[str]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _answer(url: str) -> str:
    """Status and goal of an answer."""
    try:
        with urllib.request.build_opener(_NoRedirect).open(url, timeout=20) as answer:
            return f"{answer.status}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.headers.get('Location', '')}"


@pytest.fixture(scope="module")
def seen(
    stress: Stress, pages: Pages, host: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seen]:
    """One run, seen by somebody who had to log in, below a path."""
    folder = tmp_path_factory.mktemp("strange")
    locustfile, profile = folder / "locustfile.py", folder / "strange.toml"
    locustfile.write_text(LOCUSTFILE, encoding="utf-8")
    scenario = folder / "strange.py"
    scenario.write_text(SCENARIO, encoding="utf-8")
    profile.write_text(PROFILE.replace("FILE", str(scenario)), encoding="utf-8")
    port = free_port()
    process = stress(
        *("-H", host, "--profile", str(profile), "--web-port", str(port)),
        *("--web-base-path", PATH, "--web-login"),
        *("--set", "load.max_entities_per_s=100", "--set", "load.settle_s=0"),
        *("--set", "loading.settle_s=0", "--set", "conditions=[]"),
        locustfile=locustfile,
    )
    process.until_said("Charts:")
    url = f"http://127.0.0.1:{port}{PATH}"
    names = ("", "/", "/data", "/page.js", "/page.css", "/runs/x/run.json")
    without_login = {name: _answer(f"{url}/stress{name}") for name in names}
    live = pages(f"{url}/stress/")
    live.wait_for_url("**/login**")
    asked_to_log_in = live.url
    live.goto(f"{url}/enter")
    ui = LocustUi(url, live)
    expect(live.locator("input[name=userCount]")).to_be_visible()
    live = live.context.new_page()
    pages.watch(live)
    live.goto(f"{url}/stress")
    says(live, "No run yet")
    ui.start(str(profile), run_time="60s")
    ui.open_tab()
    wait_until(lambda: len(ui.rows()) >= 1 + len(KEYS), "a row for each key", every_s=0.25)
    rows = list(ui.rows())
    drawn(live, "chart-heat")
    heat = live.locator("#chart-heat .row").all_text_contents()
    cells = live.locator("#partitions tbody tr td:first-child, #partitions tbody tr th:first-child")
    ui.open_tab("Statistics")
    expect(ui.page.get_by_text(NAME)).to_be_visible()
    statistics = ui.page.inner_text("table")
    ui.stop()
    says(live, "ended by Stop")
    live.wait_for_selector("#downloads a")
    found = Seen(
        without_login=without_login,
        asked_to_log_in=asked_to_log_in,
        rows=rows,
        names=live.inner_text("#operations"),
        question=live.inner_text("#head"),
        partitions=cells.all_inner_texts(),
        whole=live.locator("#partitions [title]").evaluate_all("all => all.map(one => one.title)"),
        in_heat=heat,
        statistics=statistics,
        hacked=[page.evaluate("window.hacked ?? null") for page in (live, ui.page)],
        record=process.record,
        hosts=pages.hosts(),
        wrong=pages.wrong,
    )
    live.get_by_role("link", name="report.html").click()
    drawn(live, "chart-heat")
    found.hacked.append(live.evaluate("window.hacked ?? null"))
    yield found
    process.interrupt()
    process.wait()


def test_nothing_is_shown_without_a_login(seen: Seen) -> None:
    """Every address of ours leads to Locust's own page of login."""
    assert seen.without_login
    assert {answer.partition("?")[0] for answer in seen.without_login.values()} == {
        f"302 {PATH}/login"
    }
    assert f"{PATH}/login" in seen.asked_to_log_in


def test_strange_keys_were_really_stressed(seen: Seen) -> None:
    """The record holds each of them, as long as it is."""
    assert {part.key for part in seen.record.partitions} == set(KEYS)
    assert len(LONG.encode("utf-16-le")) == 1024


def test_no_script_of_a_key_was_executed(seen: Seen) -> None:
    """Neither in Locust's page, nor in ours, nor in the report."""
    assert seen.hacked == [None, None, None]
    assert seen.wrong == []
    assert len(seen.hosts) == 1


def test_the_tab_shows_keys_as_they_are(seen: Seen) -> None:
    """Markup is text there; a long key is shortened."""
    shown = set(seen.rows)
    assert set(KEYS[:4]) <= shown
    assert KEYS[4] in shown
    assert any(name.startswith("<u>k") and name.endswith("kzz") for name in shown)


def test_the_live_page_shows_keys_as_they_are(seen: Seen) -> None:
    """In the table each key is text, and a shortened one has its whole self beside it."""
    shown = "\n".join(seen.partitions)
    assert all(key in shown for key in KEYS[:5])
    assert LONG in seen.whole
    assert NAME in seen.names
    assert "<img src=x onerror=window.hacked=3>" in seen.question


def test_the_heat_map_names_keys_as_they_are(seen: Seen) -> None:
    """Its letters are not taken for markup either."""
    assert any(name.startswith("<img src") for name in seen.in_heat)
    assert any(name.startswith("<u>k") for name in seen.in_heat)


def test_locust_names_operations_as_they_are(seen: Seen) -> None:
    """The application's own name for an operation is text in Locust's statistics."""
    assert NAME in seen.statistics
