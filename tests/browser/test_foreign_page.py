"""Another web page, open in the same browser, can neither start a run nor stop or read one."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response

from tests.support.locust_process import WEB, LocustProcess, Stress
from tests.support.ports import free_port
from tests.support.web_pages import PATIENCE_MS

pytestmark = [pytest.mark.azurite, pytest.mark.browser]

FOREIGN = "evil.example"
"""The browser is told that this name is of this machine, as its owner's DNS could tell it."""
START = "user_count=1&spawn_rate=1"
FETCH = """async ([url, options]) => {
    try {
        const answer = await fetch(url, options)
        return [answer.status, await answer.text()]
    } catch (error) {
        return [0, String(error)]
    }
}"""


class _Empty(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another page</title>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """The port of another web site."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def misled(browser: Browser) -> Iterator[Page]:
    """A page of a browser for which the foreign name is this machine."""
    options = ["--no-sandbox", f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1"]
    path = shutil.which("chromium")
    with browser.browser_type.launch(executable_path=path, args=options) as other:
        page = other.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page


@pytest.fixture(scope="module")
def ui(stress: Stress, host: str) -> Iterator[tuple[LocustProcess, int]]:
    """A process with its web UI; whatever the other pages did, no run began, and none was seen."""
    port = free_port()
    process = stress(*WEB, "-H", host, "--web-port", str(port))
    process.until_said("Web UI:")
    yield process, port
    process.interrupt()
    assert process.wait() == 0
    assert process.records == []
    assert "[1/4]" not in process.stdout


def fetched(page: Page, url: str, **options: Any) -> tuple[int, str]:
    status, text = page.evaluate(FETCH, [url, options])
    return status, text


@pytest.mark.parametrize("name", [FOREIGN, "127.0.0.1", "localhost"])
def test_a_page_elsewhere_changes_and_reads_nothing(
    ui: tuple[LocustProcess, int], elsewhere: int, misled: Page, name: str
) -> None:
    """By script, by form, by picture, by frame; of another site, or of another port of this one."""
    process, port = ui
    url = f"http://127.0.0.1:{port}"
    answers: dict[str, int] = {}

    def note(answer: Response) -> None:
        answers.setdefault(answer.url, answer.status)

    misled.on("response", note)
    misled.goto(f"http://{name}:{elsewhere}/")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    post = {"method": "POST", "body": START, "headers": headers}
    assert fetched(misled, f"{url}/swarm", **post)[0] == 0
    fetched(misled, f"{url}/swarm?quiet", **post, mode="no-cors")
    fetched(misled, f"{url}/stop", method="POST", mode="no-cors")
    fetched(misled, f"{url}/stats/reset", method="DELETE")
    for path in ("/", "/stress/data", "/stats/requests", "/logs"):
        assert fetched(misled, url + path)[0] == 0
    misled.evaluate(
        """url => new Promise(done => {
            const frame = document.createElement("iframe")
            frame.onload = done
            frame.src = url
            document.body.append(frame)
        })""",
        f"{url}/?framed",
    )
    assert answers[f"{url}/swarm?quiet"] == answers[f"{url}/stop"] == 403
    assert answers[f"{url}/?framed"] == 403
    with misled.expect_navigation():
        misled.evaluate(
            """([url, fields]) => {
                const form = document.createElement("form")
                form.method = "POST"
                form.action = url
                for (const [name, value] of new URLSearchParams(fields)) {
                    const input = document.createElement("input")
                    input.name = name
                    input.value = value
                    form.append(input)
                }
                document.body.append(form)
                form.submit()
            }""",
            [f"{url}/swarm?form", START],
        )
    assert answers[f"{url}/swarm?form"] == 403
    assert "Another web page made this request" in misled.inner_text("body")
    assert "[1/4]" not in process.stdout


def test_a_name_that_is_led_to_this_machine_gets_nothing(
    ui: tuple[LocustProcess, int], misled: Page
) -> None:
    """For the browser the page is of one origin with the web UI; the Host gives it away."""
    process, port = ui
    url = f"http://{FOREIGN}:{port}"
    answer = misled.goto(f"{url}/stress/")
    assert answer is not None
    assert answer.status == 403
    assert "not a name of this page" in misled.inner_text("body")
    requests: dict[str, dict[str, Any]] = {
        "/swarm": {"method": "POST", "body": START},
        "/stop": {"method": "POST", "headers": {"X-Forwarded-Host": f"127.0.0.1:{port}"}},
        "/stress/data": {},
    }
    for path, options in requests.items():
        assert fetched(misled, url + path, **options)[0] == 403
    assert "[1/4]" not in process.stdout


def test_a_link_elsewhere_leads_to_the_page(
    ui: tuple[LocustProcess, int], elsewhere: int, misled: Page
) -> None:
    """What a user follows is opened."""
    _, port = ui
    misled.goto(f"http://{FOREIGN}:{elsewhere}/")
    with misled.expect_navigation():
        misled.evaluate(
            """url => {
                const link = document.createElement("a")
                link.href = url
                document.body.append(link)
                link.click()
            }""",
            f"http://localhost:{port}/stress/",
        )
    assert "No run yet" in misled.inner_text("body")
