"""A web application from a public registry, unmodified: the report of a watch names its hot key.

The application is the blog among the examples in Microsoft's package ``azure`` for Node. It has one
PartitionKey for all posts, and expects an emulator at the usual port: the gateway listens there.
"""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from harness.endpoint.azurite.process import node
from tests.support.npm_packages import WEB_APPLICATION
from tests.support.ports import free_port

pytestmark = [pytest.mark.azurite, pytest.mark.long]

SERVER = WEB_APPLICATION.modules / "azure" / "examples" / "ASM" / "blog" / "server.js"
EMULATOR_PORT = 10002
"""Where ``UseDevelopmentStorage=true`` is."""
READERS, PAGES, EVERY = 4, 60, 6
"""Of the pages that each reader loads, one in so many is a new post."""
FIRST_POSTS = 4
_POST = re.compile(r'href="/blog/([0-9a-f-]{36})"')


class Reader:
    """A reader of the blog at ``port``, with a count of what was loaded."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)
        self.loaded: Counter[str] = Counter()

    def load(self, path: str, form: dict[str, str] | None = None) -> str:
        """The page at ``path``, or the answer to a ``form`` sent there."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        method, body = ("POST", urlencode(form)) if form else ("GET", None)
        self.connection.request(method, path, body=body, headers=headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        assert answer.status == (302 if form else 200), text
        self.loaded[path if len(path) < 20 else "post"] += 1
        return text

    def read_and_write(self, post: str) -> None:
        """Load one post again and again, and now and then write a new one."""
        for number in range(PAGES):
            if number % EVERY:
                self.load(f"/blog/{post}")
            else:
                self.load("/blog/new", {"title": "New", "body": "x" * 200})


def port_is_free() -> bool:
    """Whether nothing listens where the application expects its emulator."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", EMULATOR_PORT))
        except OSError:
            return False
    return True


def test_the_hot_key_of_a_web_application(watch_process: Callable[..., Any]) -> None:
    """Record, report and practices name the one partition, with the counts of the readers.

    Bounds: four readers with sixty pages each, about five seconds.
    """
    if not WEB_APPLICATION.installed:
        pytest.skip("the web application is not installed: run `make dev`")
    if not port_is_free():
        pytest.skip(f"allowed: something listens on port {EMULATOR_PORT}")
    port = free_port()
    listen = ("--listen", f"127.0.0.1:{EMULATOR_PORT}")
    watching = watch_process(*listen, "--", str(node()), str(SERVER), PORT=str(port))
    # It prints this when the first posts are stored.
    watching.said("Done")
    readers = [Reader(port) for _ in range(READERS)]
    posts = _POST.findall(readers[0].load("/"))
    assert len(set(posts)) == FIRST_POSTS
    threads = [threading.Thread(target=one.read_and_write, args=(posts[0],)) for one in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in readers:
        one.connection.close()
    loaded = sum((one.loaded for one in readers), Counter[str]())
    reads, writes, lists = loaded["post"], loaded["/blog/new"], loaded["/"]
    assert (reads + writes, lists) == (READERS * PAGES, 1)
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr

    record = watching.record
    hottest, table = record["partitions"]
    assert (hottest["key"], table["key"]) == ("posts/part1", "posts//")
    assert hottest["attempts_by_status"] == {"200": reads, "204": writes, "202": 1}
    assert hottest["entities"] == reads + writes + FIRST_POSTS
    assert {part["kind"]: part["count"] for part in record["operations"]} == {
        "point_query": reads,
        "insert": writes,
        "transaction": 1,
        "full_table_scan": lists,
    }
    watched = record["watched"]
    assert watched["requests"] - watched["others"] == reads + writes + 1 + lists
    (client,) = watched["clients"]
    assert client["user_agent"].startswith("Azure-Storage/")

    (folder,) = watching.out.iterdir()
    for name in ("summary.md", "report.html"):
        assert "posts/part1" in (folder / name).read_text(encoding="utf-8"), name
    assert "Partition 'posts/part1' was the busiest" in watching.stderr
    command = [sys.executable, "-m", "harness", "check", "--record", str(folder)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "constant-partition-key" in checked.stdout
    assert "operations on table posts used one PartitionKey" in " ".join(checked.stdout.split())
