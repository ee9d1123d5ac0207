"""The metrics page: values from a real scrape, and what no key may break."""

from __future__ import annotations

import dataclasses
import http.client
import http.server
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from harness.metrics.export import push, start_server
from harness.metrics.exposition import Exposed, RunState, partition_label
from harness.model.entity import key_problem
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from tests.support.examples import examples
from tests.support.metrics_page import (
    SOME,
    START,
    Series,
    exposed,
    labelled,
    rendered,
    result,
    scrape,
    series,
)
from tests.support.records import altered


@pytest.fixture(scope="module")
def page() -> Iterator[Series]:
    """What a real scrape of `SOME` gives."""
    server = start_server(0, "127.0.0.1", lambda: SOME)
    yield scrape(server.port)
    server.close()


def test_every_series_carries_the_run(page: Series) -> None:
    """No series is without the label that tells runs apart."""
    assert page
    assert all(("run", "run1") in labels for _, labels in page)


def test_only_the_current_run_is_shown() -> None:
    """Before the first run a scrape is empty; after a second began the first is gone."""
    shown: list[Exposed] = []
    server = start_server(0, "127.0.0.1", lambda: shown[-1] if shown else None)
    try:
        assert scrape(server.port) == {}
        shown.append(exposed(result("p0")))
        assert {dict(labels)["run"] for _, labels in scrape(server.port)} == {"run1"}
        shown.append(exposed(result("p0"), run_id="run2"))
        assert {dict(labels)["run"] for _, labels in scrape(server.port)} == {"run2"}
    finally:
        server.close()


def test_folded_partitions_are_one_series() -> None:
    """A thousand keys above the cap lead to the capped number of label values, sums exact."""
    found = series(rendered(lambda: exposed(*(result(f"k{n}") for n in range(1000)), cap=5)))
    entities = labelled(found, "aztables_entities_total")
    assert len(entities) == 6
    assert entities["upsert_merge", "(other)", "run1"] == 995


AWKWARD = [
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "a\r\x00\x1b\x85b",
    "🦊 fox",
    "k" * 1024,
    "half \ud83e pair",
    "a,b=c}{#",
    " spaced ",
    "\\n",
    "}",
]


def renamed(keys: list[str]) -> Exposed:
    """A run with one entity in the first key, two in the second, and so on.

    The keys are put into the snapshot: a ledger takes no half surrogate pair, nor does a service.
    """
    run = exposed(*(result(f"x{n:04d}", entities=n + 1) for n in range(len(keys))))
    views = {view.key: view for view in run.snapshot.partitions}
    partitions = tuple(altered(views[f"x{n:04d}"], key=key) for n, key in enumerate(keys))
    return dataclasses.replace(
        run, snapshot=dataclasses.replace(run.snapshot, partitions=partitions)
    )


def test_awkward_keys_survive_a_real_scrape() -> None:
    """Quotes, newlines, emoji, 1 KiB and half surrogate pairs neither break nor blur a scrape."""
    server = start_server(0, "127.0.0.1", lambda: renamed(AWKWARD))
    try:
        entities = labelled(scrape(server.port), "aztables_entities_total")
    finally:
        server.close()
    assert entities == {
        ("upsert_merge", partition_label(key), "run1"): n + 1 for n, key in enumerate(AWKWARD)
    }


any_key = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    st.sampled_from(["(other)", "(table)", "(empty)", "/(other)", WHOLE_TABLE, ""]),
    st.text(st.sampled_from('\\"\nu0d{},=\ud800\x00'), max_size=8),
)


any_name = st.one_of(
    st.text(st.characters(codec=None), max_size=10),
    st.text(st.sampled_from('\\"\nu0d{},=\x00'), max_size=8),
    st.sampled_from(["\x00", "\\u0000", "insert", "query", ""]),
)


@examples(200)
@given(st.lists(any_key, max_size=8, unique=True))
def test_any_keys_give_a_valid_page_with_exact_sums(keys: list[str]) -> None:
    """Whatever the keys are, the page parses, has no series twice, and its sums are exact."""
    shown = renamed(keys)
    found = series(rendered(lambda: shown))
    assert sum(labelled(found, "aztables_entities_total").values()) == sum(range(1, len(keys) + 1))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunState(lambda: shown))
    openmetrics = generate_openmetrics(registry).decode()
    assert list(parse_openmetrics(openmetrics))


@examples(100)
@given(st.lists(st.tuples(any_name, st.sampled_from(Kind)), max_size=8))
def test_any_names_of_operations_give_a_valid_page(named: list[tuple[str, Kind]]) -> None:
    """Whatever an application calls what it does, no series comes twice and sums are exact."""
    shown = exposed(*(result("p", kind=kind, name=name, due_s=START) for name, kind in named))
    found = series(rendered(lambda: shown))
    for name in ("aztables_entities_total", "aztables_operations_total"):
        assert sum(labelled(found, name).values()) == len(named)
    durations = "aztables_operation_duration_seconds"
    assert sum(labelled(found, f"{durations}_count").values()) == 2 * len(named)
    infinite = [
        count
        for (name, labels), count in found.items()
        if name == f"{durations}_bucket" and ("le", "+Inf") in labels
    ]
    assert sum(infinite) == 2 * len(named)


@given(any_key, any_key)
def test_keys_that_a_service_takes_are_told_apart(one: str, other: str) -> None:
    """Two different keys that the service would take never share a label, in whatever table."""
    if key_problem(one) is None and key_problem(other) is None:
        keys = {one, other, WHOLE_TABLE}
        shown = {
            partition_label(Operation(kind=Kind.QUERY, partition_key=key, table=table).partition)
            for key in keys
            for table in ("", "Index", "Orders")
        }
        assert len(shown) == 3 * len(keys)


def test_port_in_use_is_a_sentence_that_names_the_option() -> None:
    """A port that somebody else has is bad set-up: port and option are named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=rf"127\.0\.0\.1:{port} .*--metrics-port"):
            start_server(port, "127.0.0.1", lambda: None)


@pytest.mark.parametrize(("port", "addr"), [(70_000, "127.0.0.1"), (0, "256.256.256.256")])
def test_impossible_address_is_a_sentence(port: int, addr: str) -> None:
    """A port or an address that cannot be is bad set-up too."""
    with pytest.raises(SetupError, match="--metrics-port"):
        start_server(port, addr, lambda: None)


@pytest.mark.parametrize(
    ("addr", "host", "status"),
    [
        ("127.0.0.1", "localhost:{port}", 200),
        ("127.0.0.1", "evil.example:{port}", 403),
        ("127.0.0.1", "", 403),
        ("0.0.0.0", "master:9646", 200),
    ],
)
def test_on_loopback_it_answers_to_its_own_names_alone(addr: str, host: str, status: int) -> None:
    """A web page whose name was led to this machine reads no keys; others may have any name."""
    server = start_server(0, addr, lambda: SOME)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        headers = {"Host": host.format(port=server.port)}
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        assert (answer.status, b"p0" in answer.read()) == (status, status == 200)
    finally:
        connection.close()
        server.close()


def test_closing_frees_the_port() -> None:
    """After close the same port can be listened on at once."""
    first = start_server(0, "127.0.0.1", lambda: SOME)
    port = first.port
    first.close()
    second = start_server(port, "127.0.0.1", lambda: SOME)
    assert second.port == port
    second.close()


class Gateway:
    """A Pushgateway's side of the wire: keeps what is put, answers with one status."""

    def __init__(self, status: int = 200) -> None:
        self.puts: list[tuple[str, str]] = []
        puts = self.puts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                puts.append((self.path, body.decode()))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Gateway:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def test_push_puts_the_page_under_job_and_run() -> None:
    """A push replaces the group of the run with the same series as a scrape."""
    with Gateway() as gateway:
        assert push(f"http://{gateway.address}", "run1", lambda: SOME) is None
    [(path, body)] = gateway.puts
    assert path == "/metrics/job/aztables/run/run1"
    assert series(body) == series(rendered(lambda: SOME))


def test_refused_push_is_a_sentence() -> None:
    """A gateway that answers with an error is named with its status."""
    with Gateway(status=400) as gateway:
        sentence = push(f"http://{gateway.address}", "run1", lambda: SOME)
    assert sentence == (
        f"the metrics were not pushed to {gateway.address}: it answered 400 Bad Request"
    )


def test_push_to_nobody_is_a_sentence() -> None:
    """Where nobody listens the sentence names host and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    sentence = push(f"http://{address}/", "run1", lambda: SOME)
    assert sentence is not None
    assert address in sentence
    assert "refused" in sentence


@pytest.mark.parametrize("url", ["http://[::1", "ftp://127.0.0.1:1", "http://127.0.0.1:port"])
def test_push_to_nonsense_is_a_sentence(url: str) -> None:
    """A URL that is none leads to a sentence, not to an error."""
    assert push(url, "run1", lambda: SOME) is not None


def test_push_shows_no_password() -> None:
    """A password in the URL is refused and not shown."""
    sentence = push("http://me:secret@127.0.0.1:9", "run1", lambda: SOME)
    assert sentence is not None
    assert "127.0.0.1:9" in sentence
    assert "secret" not in sentence


def test_silent_gateway_does_not_hold_up_the_end() -> None:
    """A gateway that takes the connection and never answers costs the stated time at most."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        sentence = push(f"http://127.0.0.1:{port}", "run1", lambda: SOME, bound_s=0.2)
    assert sentence == f"the metrics were not pushed to 127.0.0.1:{port}: no answer within 0.2 s"
