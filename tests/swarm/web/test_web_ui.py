"""The web UI by plain HTTP: a start is checked, its errors come back, a second run is new."""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from harness.endpoint.endpoint import Endpoint
from harness.measure.record.record import RunRecord
from harness.profile.profile_loader import shipped_names
from harness.swarm.web.start_form import THROTTLING, profile_in
from tests.support.http_pages import metrics_page, page
from tests.support.locust_process import WEB, LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy, Seen
from tests.support.sdk import table_names

pytestmark = pytest.mark.azurite

SMALL = (*WEB, "--set", "keys.rows_per_partition=10")
GOOD = {"user_count": "3", "spawn_rate": "50"}
WRONG_FORMS = {
    "unknown profile": ({**GOOD, "profile": "nosuch"}, "no profile 'nosuch'"),
    "profile by path": ({**GOOD, "profile": "/etc/passwd"}, "only shipped profiles can be chosen"),
    "profile by file": ({**GOOD, "profile": "../own.toml"}, "only shipped profiles can be chosen"),
    "another host": ({**GOOD, "host": "https://x.table.core.windows.net"}, "cannot be changed"),
    "limits on another endpoint": ({**GOOD, THROTTLING: "demo"}, "restart without -H"),
    "consent": ({**GOOD, "remote_ok": "x"}, "remote_ok cannot be set"),
    "overrides": ({**GOOD, "overrides": "load.users=1"}, "overrides cannot be set"),
    "table": ({**GOOD, "table": "precious"}, "table cannot be set"),
    "run time": ({**GOOD, "run_time": "soon"}, "'soon'"),
    "run time of a million years": ({**GOOD, "run_time": "999999999999h"}, "'999999999999h'"),
    "users beyond counting": ({**GOOD, "user_count": "9" * 5000}, "not a whole number"),
    "no users": ({**GOOD, "user_count": "0"}, "at least one user"),
    "users in words": ({**GOOD, "user_count": "many"}, "'many'"),
}
PATHS = {
    "/stress/runs/{second}/run.json": 200,
    "/stress/runs/{second}/partitions.csv": 200,
    "/stress/runs/{second}/report.html": 200,
    "/stress/runs/{first}/run.json": 404,
    "/stress/runs/{second}/nosuch.json": 404,
    "/stress/runs/{second}/../{first}/run.json": 404,
    "/stress/runs/{second}/..%2f{first}%2frun.json": 404,
    "/stress/runs/..%2f..%2f..%2fetc/passwd": 404,
    "/stress/runs/../../../../etc/passwd": 404,
    "/stress/runs/%2e%2e/run.json": 404,
    "/stress/..%2fpyproject.toml": 404,
    "/stress/page.py": 404,
    "/stress/page.js": 200,
}
"""Below the page: what is there after the second run, and what is never given away."""


class Ui:
    """A process with its web UI."""

    def __init__(self, process: LocustProcess, port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **form: object) -> str:
        return page(self.url + path, **form)

    def fetch(self, path: str) -> tuple[int, bytes]:
        """Status and content of an answer, the path sent as it is."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def told(self) -> dict[str, Any]:
        """What our own page is told."""
        content: dict[str, Any] = json.loads(self.get("/stress/data"))
        return content

    def first_rows(self) -> list[str]:
        """What Locust's sum of all requests is called, and the first row of the partitions."""
        content = json.loads(self.get("/stats/requests"))
        tabs = {tab["key"]: tab["data"] for tab in content["extended_stats"]}
        return [content["stats"][-1]["name"], tabs["partitions"][0]["partition"]]

    def start(self, form: dict[str, str]) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.get("/swarm", **form))
        return result

    def stop(self) -> None:
        assert json.loads(self.get("/stop", now=1))["success"]

    def wait_for_records(self, count: int) -> None:
        def finished() -> object:
            assert self.process.process.poll() is None, self.process.said
            return self.process.stdout.count("Record: ") >= count and self.get(
                "/stats/requests"
            ).count('"stopped"')

        wait_until(finished, f"{count} records in {self.process.said}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What was done in one process, and what came of it."""

    process: LocustProcess
    page: str
    answers: dict[str, dict[str, Any]]
    requests_before: list[Seen]
    told: list[dict[str, Any]]
    fetched: dict[str, tuple[int, bytes]]
    metrics: list[str]
    locust_counts: list[int]
    records: list[RunRecord]
    stopped_within_s: float


@pytest.fixture(scope="module")
def going(stress: Stress, proxy_to: Callable[..., Proxy]) -> gevent.Greenlet:
    """The session, while another test is under way."""
    return gevent.spawn(_session, stress, proxy_to)


@pytest.fixture(scope="module")
def session(going: gevent.Greenlet) -> Session:
    """The session, ended."""
    ended: Session = going.get()
    return ended


def _session(stress: Stress, proxy_to: Callable[..., Proxy]) -> Session:
    """Wrong forms, a run, another run, a stop while measuring, a stop while loading, Ctrl-C."""
    slow = False

    def hold(seen: Seen) -> None:
        if slow and "$batch" in seen.path:
            gevent.sleep(0.3)

    proxy = proxy_to(before=hold)
    port, metrics_port = free_port(), free_port()
    ui = Ui(
        stress(
            *(*SMALL, "-H", proxy.url, "--set", "loading.concurrency=1"),
            *("--web-port", str(port), "--metrics-port", str(metrics_port)),
        ),
        port,
    )
    ui.process.until_said("Web UI:")
    metrics: list[str] = []
    locust_counts: list[int] = []

    def note() -> None:
        metrics.append(metrics_page(metrics_port))
        locust_counts.append(json.loads(ui.get("/stats/requests"))["stats"][-1]["num_requests"])

    page = ui.get("/")
    requests_before = list(proxy.seen)
    answers = {name: ui.start(form) for name, (form, _) in WRONG_FORMS.items()}
    requests_before = proxy.seen[len(requests_before) :]
    told = [ui.told()]
    answers["first"] = ui.start({**GOOD, "profile": "single-partition", "run_time": "3s"})
    ui.wait_for_records(1)
    told.append(ui.told())
    note()
    answers["second"] = ui.start({**GOOD, "profile": "key-spread", "run_time": "3"})
    ui.wait_for_records(2)
    told.append(ui.told())
    first, second = (answer["run_id"] for answer in told[1:])
    paths = [path.format(first=first, second=second) for path in PATHS]
    fetched = dict(zip(PATHS, map(ui.fetch, paths), strict=True))
    note()
    answers["third"] = ui.start({**GOOD, "profile": "single-partition", "run_time": "60s"})
    wait_until(lambda: ui.process.stdout.count("[3/4]") == 3, "the third run sends")
    answers["another meanwhile"] = ui.start({**GOOD, "profile": "key-spread"})
    answers["more users"] = ui.start({"user_count": "4", "spawn_rate": "50"})
    time.sleep(2.0)
    ui.stop()
    ui.wait_for_records(3)
    slow = True
    answers["fourth"] = ui.start({**GOOD, "profile": "key-spread", "run_time": "60s"})
    wait_until(lambda: ui.process.stdout.count("[2/4]") == 4, "the fourth run loads")
    time.sleep(1.0)
    stop_s = time.monotonic()
    ui.stop()
    stopped_within_s = time.monotonic() - stop_s
    ui.wait_for_records(4)
    note()
    ui.process.interrupt()
    ui.process.wait()
    return Session(
        process=ui.process,
        page=page,
        answers=answers,
        requests_before=requests_before,
        told=told,
        fetched=fetched,
        metrics=metrics,
        locust_counts=locust_counts,
        records=ui.process.records,
        stopped_within_s=stopped_within_s,
    )


@pytest.mark.usefixtures("going")
def test_throttling_is_chosen_in_the_form(stress: Stress) -> None:
    """Each run has the gateway that its form asks for; a form can name no file.

    Until the first request the tabs that have no figures yet say what is done.
    """
    port = free_port()
    settling = ("--set", "loading.settle_s=3")
    process = stress(*SMALL, *settling, "-t", "1s", "--web-port", str(port))
    process.until_said("Web UI:")
    ui = Ui(process, port)
    page = ui.get("/")
    (host,) = re.findall(r'"host": "([^"]+)"', page)
    assert '"choices": ["off", "cosmos", ' in page
    form = {**GOOD, "host": host, "profile": "single-partition \N{EM DASH} How many?"}
    for wrong in ("/etc/hostname", "nosuch", "demo.toml"):
        answer = ui.start({**form, THROTTLING: wrong})
        assert "only shipped limits can be chosen here: cosmos, " in answer["message"]
    for runs, limits in enumerate(("demo", "off"), 1):
        assert ui.start({**form, THROTTLING: limits})["success"]
        wait_until(
            lambda: all("loading the table, 100%" in row for row in ui.first_rows()),
            "progress in the tabs",
        )
        ui.wait_for_records(runs)
    process.interrupt()
    process.wait()
    assert [record.endpoint.kind for record in process.records] == ["gateway", "azurite"]
    assert "Traceback" not in process.said


def test_the_form_suggests_the_shipped_profiles(session: Session) -> None:
    """The page knows each profile with its question, and the one Locust was started with."""
    found = re.search(r'"all_profiles": (\[".*?"\])', session.page)
    assert found is not None
    offered = json.loads(found[1])
    assert list(map(profile_in, offered)) == shipped_names()
    assert any("How many entities a second does ONE partition" in label for label in offered)
    # Only the embedded Azurite can have a gateway before it.
    assert '"throttling"' not in session.page


@pytest.mark.parametrize("name", WRONG_FORMS)
def test_what_is_wrong_comes_back_to_the_form(name: str, session: Session) -> None:
    """A start that cannot be is refused with a sentence."""
    answer = session.answers[name]
    assert answer["success"] is False
    assert WRONG_FORMS[name][1] in answer["message"]


def test_a_refused_start_sends_nothing(session: Session) -> None:
    """Nothing that is wrong in a form reaches the endpoint."""
    assert session.requests_before == []


def test_each_run_is_recorded(session: Session) -> None:
    """Four starts, four records, of the profiles that the form chose."""
    assert all(session.answers[name]["success"] for name in ("first", "second", "third", "fourth"))
    names = [record.profile["name"] for record in session.records]
    assert names == ["single-partition", "key-spread", "single-partition", "key-spread"]
    assert [record.ended_by for record in session.records] == ["run time", "run time"] + 2 * [
        "Stop"
    ]
    assert len({record.run_id for record in session.records}) == 4
    assert len({record.endpoint.table for record in session.records}) == 4


def test_no_other_profile_begins_while_a_run_goes_on(session: Session) -> None:
    """It is refused with a sentence; another number of users is taken."""
    refused = session.answers["another meanwhile"]
    assert refused["success"] is False
    assert "a run of single-partition goes on" in refused["message"]
    assert session.answers["more users"]["success"]
    assert session.records[2].users == 4


def test_the_form_has_the_last_word(session: Session) -> None:
    """Users and run time are those of the form."""
    first = session.records[0]
    assert (first.users, first.measured_s) == (3, 3)


def test_a_second_run_starts_from_nothing(session: Session) -> None:
    """It counts its own operations alone: invariants hold, keys are its own, sums agree."""
    first, second, *_ = session.records
    assert [part.key for part in first.partitions] == ["p0"]
    assert len(second.partitions) > 30
    for record in session.records:
        counts = record.counts
        assert record.complete
        assert record.invariants == ()
        assert counts.sent == sum(record.outcomes.values()) + counts.in_flight
        assert sum(point.entities for point in record.series) == counts.entities
    assert session.locust_counts[:2] == [record.counts.operations for record in session.records[:2]]


def test_only_the_last_run_is_exposed(session: Session) -> None:
    """Every series of a scrape carries the id of the current or last run."""
    shown = [set(re.findall(r'\brun="([^"]+)"', text)) for text in session.metrics]
    assert shown == [{session.records[number].run_id} for number in (0, 1, 3)]


def test_stop_while_measuring_examines(session: Session) -> None:
    """A stopped run has what it measured, and nothing in flight."""
    third = session.records[2]
    assert third.counts.operations > 20
    assert third.counts.in_flight == 0
    assert third.measured_s < 60


def test_stop_while_loading_stops_the_loading(session: Session) -> None:
    """It takes no longer than a request, and nothing was sent under load."""
    fourth = session.records[3]
    assert session.stopped_within_s < 5
    assert 0 < fourth.loading.entities < 5000
    assert fourth.counts.sent == 0


def test_all_tables_are_gone(session: Session, endpoint: Endpoint) -> None:
    """Each run deleted its own."""
    assert not table_names(endpoint) & {record.endpoint.table for record in session.records}


def test_nobody_sees_a_traceback(session: Session) -> None:
    """Four runs and many refusals later there is nothing but reports."""
    assert "Traceback" not in session.process.said
    assert "nanobind" not in session.process.said
    assert session.process.process.returncode == session.records[-1].exit_code


def test_our_page_is_told_of_each_run(session: Session) -> None:
    """Of none before the first, then of the last one alone."""
    nothing, first, second = session.told
    assert (nothing["state"], nothing["run_id"], nothing["charts"]) == ("none", None, {})
    for answer, record in ((first, session.records[0]), (second, session.records[1])):
        assert (answer["state"], answer["run_id"]) == ("ended", record.run_id)
        assert "chart-heat" in answer["charts"]
    assert "single-partition" not in json.dumps(second)


def test_only_files_of_the_last_run_are_given_away(session: Session) -> None:
    """Known names of one folder; nothing by a path, nothing of another run."""
    assert {path: status for path, (status, _) in session.fetched.items()} == PATHS
    saved = RunRecord.from_json(session.fetched["/stress/runs/{second}/run.json"][1])
    assert saved == session.records[1]


def test_a_login_is_asked_for(stress: Stress, host: str) -> None:
    """With --web-login nobody starts a run, or sees a page, without the password."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = stress(
        *(
            *SMALL,
            "-H",
            host,
            "--web-login",
            "--web-port",
            str(port),
            "--web-base-path",
            "/load",
        ),
        environ={"STRESS_WEB_PASSWORD": "sesame"},
    )
    process.until_said("Web UI:")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def place(path: str, **fields: object) -> str:
        """Where the browser is after this request."""
        data = urllib.parse.urlencode(fields).encode() if fields else None
        with opener.open(url + path, data, timeout=10) as answer:
            arrived: str = answer.geturl()
        return arrived.removeprefix(url).partition("?")[0]

    assert place("/load/swarm", **GOOD) == "/load/login"
    assert place("/load/stress/login", password="open") == "/load/login"
    assert place("/load/stress/") == "/load/login"
    assert place("/load/stress/login", password="sesame") == "/load/"
    assert place("/load/stress/") == "/load/stress/"
    process.interrupt()
    assert process.wait() == 0
    assert process.records == []
    assert "[1/4]" not in process.stdout
    assert "sesame" not in process.said
