"""No other web page may use or read the web UI: each route of a real process, asked as by one."""

from __future__ import annotations

import dataclasses
import http.client
import json
import urllib.parse
from collections.abc import Iterator, Mapping

import pytest

from tests.support.locust_process import WEB, LocustProcess, Stress
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

BASE = "/load"
LOCUSTFILE = """\
import json
from locust import events
from harness.swarm import SinglePartitionUser, wire
wire(events)
@events.init.add_listener
def list_routes(environment, **_):
    rules = environment.web_ui.app.url_map.iter_rules()
    routes = {f"{rule.rule} {method}": rule.endpoint for rule in rules for method in rule.methods}
    with open("routes.json", "w") as file:
        json.dump(routes, file)
"""
READ = {
    *("static", "locust.send_assets", "locust.index", "locust.stats_report", "locust.tasks"),
    *("locust.request_stats_csv", "locust.request_stats_full_history_csv", "locust.exceptions"),
    *("locust.failures_stats_csv", "locust.request_stats", "locust.exceptions_csv", "locust.logs"),
    *("locust.login", "locust.get_worker_count", "stress.without_slash", "stress.page"),
    *("stress.data", "stress.asset", "stress.download"),
}
"""What is known to change nothing by GET. A new one is to be looked at before it is added."""


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """The web UI of one process."""

    process: LocustProcess
    port: int
    routes: dict[str, str]

    def ask(self, method: str, path: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": self.host, "Content-Length": "0", **headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            answer.read()
            return answer
        finally:
            connection.close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def site(stress: Stress, host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A process with a base path, asked for its routes."""
    locustfile = tmp_path_factory.mktemp("routes") / "locustfile.py"
    locustfile.write_text(LOCUSTFILE, encoding="utf-8")
    port = free_port()
    process = stress(
        *(*WEB, "-H", host, "--web-port", str(port), "--web-base-path", BASE),
        *("--web-allowed-host", "load.example, other.example"),
        environ={"LOCUST_WEB_HOST": "0.0.0.0"},
        locustfile=locustfile,
    )
    process.until_said("Web UI:")
    routes = json.loads((process.folder / "routes.json").read_text(encoding="utf-8"))
    yield Site(process, port, routes)
    process.interrupt()
    assert process.wait() == 0
    # Whatever was asked, no run began.
    assert process.records == []
    assert "[1/4]" not in process.stdout
    assert "Traceback" not in process.said


def paths(site: Site) -> Iterator[tuple[str, str]]:
    """Method and path of each route; parameters are filled in with what is there, or not."""
    for route in site.routes:
        path, method = route.split(" ")
        for parameter, value in {
            "<path:path>": "index.js",
            "<path:filename>": "index.js",
            "<name>": "page.css",
            "<run_id>": "nosuchrun",
        }.items():
            path = path.replace(parameter, value)
        yield method, urllib.parse.quote(path)
    yield "GET", "/nosuchroute"
    yield "POST", f"{BASE}/"


FOREIGN = {
    "led to this machine": {"Host": "evil.example:{port}"},
    "led here, of one origin": {
        "Host": "evil.example:{port}",
        "Origin": "http://evil.example:{port}",
        "Sec-Fetch-Site": "same-origin",
    },
    "led here, with our name beside it": {
        "Host": "evil.example:{port}",
        "X-Forwarded-Host": "127.0.0.1:{port}",
        "X-Forwarded-For": "127.0.0.1",
        "Forwarded": "host=127.0.0.1:{port}",
    },
    "no host": {"Host": ""},
    "two hosts": {"Host": "127.0.0.1:{port}, evil.example"},
    "another origin": {"Origin": "http://evil.example"},
    "another origin of one host": {"Origin": "http://127.0.0.1:1"},
    "another origin of an allowed host": {"Origin": "http://load.example"},
    "an origin without a name": {"Origin": "null"},
    "an origin that is none": {"Origin": "http://["},
    "a preflight": {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
    },
    "another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "another port": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    "a frame": {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "iframe",
    },
}


def told(headers: Mapping[str, str], site: Site) -> dict[str, str]:
    return {name: value.replace("{port}", str(site.port)) for name, value in headers.items()}


@pytest.mark.parametrize("case", FOREIGN)
def test_every_route_refuses_another_page(site: Site, case: str) -> None:
    """Locust's routes, ours, and what is none; whatever method; and allows nobody to read."""
    asked = 0
    for method, path in paths(site):
        answer = site.ask(method, path, told(FOREIGN[case], site))
        assert answer.status == 403, (method, path)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        asked += 1
    assert asked > 60


OWN = {
    "no browser": {},
    "its own page": {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
    "an old browser": {"Origin": "http://127.0.0.1:{port}"},
    "typed in": {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    "a proxy": {"Host": "load.example", "Origin": "https://load.example"},
    "a proxy at a port": {"Host": "Other.Example:8443", "Origin": "https://other.example:8443"},
    "a published port": {"Host": "192.0.2.7:80", "Origin": "http://192.0.2.7"},
    "localhost": {"Host": "localhost:{port}", "Origin": "http://localhost:{port}"},
    "IPv6": {"Host": "[::1]:{port}", "Origin": "http://[::1]:{port}"},
}


@pytest.mark.parametrize("case", OWN)
def test_its_own_page_and_scripts_are_served(site: Site, case: str) -> None:
    """Under each of its names; what other origins may do is not said to them either."""
    for method, path in (
        ("GET", f"{BASE}/"),
        ("POST", f"{BASE}/stop"),
        ("OPTIONS", f"{BASE}/stop"),
    ):
        answer = site.ask(method, path, told(OWN[case], site))
        assert answer.status == 200, (method, path)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"


def test_a_link_from_elsewhere_is_followed(site: Site) -> None:
    """A dashboard may lead to the page, but a form elsewhere may not be sent to it."""
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert site.ask("GET", f"{BASE}/stress/", link).status == 200
    assert site.ask("POST", f"{BASE}/stop", link).status == 403


def test_an_address_in_place_of_a_path_is_no_way_round(site: Site) -> None:
    """The Host header counts, whatever the first line names."""
    at_home = f"http://{site.host}{BASE}/stop"
    assert site.ask("POST", at_home, {"Host": "evil.example"}).status == 403
    assert site.ask("POST", f"http://evil.example{BASE}/stop", {}).status == 404


def test_nothing_is_changed_by_get(site: Site) -> None:
    """A link or a picture elsewhere can make a browser ask, with nothing that tells who did."""
    found = {name for route, name in site.routes.items() if route.endswith((" GET", " HEAD"))}
    assert found == READ
