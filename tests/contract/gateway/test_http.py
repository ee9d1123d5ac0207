"""HTTP between a client, the gateway and an endpoint, byte by byte."""

from __future__ import annotations

import gzip
import json
import socket
from typing import Any

import pytest

from tests.support.gateways import (
    TARGET,
    Connect,
    Gateway,
    StartGateway,
    Told,
    all_of,
    request,
)

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
NO_LOOK = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
"""Before a table's first query the gateway asks which rows the table has."""
MIB = 1024 * 1024


class Answers:
    """Reads the answers on a connection, one by one."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def next(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with names in lower case, and body."""
        status = int(self._file.readline().split()[1])
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            return status, headers, self._chunks()
        return (
            status,
            headers,
            self._file.read(int(headers.get("content-length", 0)) if body else 0),
        )

    def ended(self) -> bool:
        """Whether the connection was closed without another byte."""
        return self._file.read(1) == b""

    def _chunks(self) -> bytes:
        content = b""
        while size := int(self._file.readline(), 16):
            content += self._file.read(size)
            self._file.readline()
        self._file.readline()
        return content


@pytest.fixture
def through(gateway_to: StartGateway, service: Any) -> StartGateway:
    """Starts a gateway before the scripted service, with the script."""

    def start(*script: Any) -> Gateway:
        service.script = list(script)
        return gateway_to(upstream=f"http://{service.endpoint.host}")

    return start


def test_a_request_is_sent_to_the_endpoint_once(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """An endpoint that reads a request and closes gets no second one; counters say it was asked.

    On a new connection and on one that served a request before.
    """
    gateway = through(service.close_after(b""), NO_CONTENT, service.close_after(b""))
    for method in ("PUT", "DELETE"):
        connection = connect(gateway)
        if method == "DELETE":
            connection.sendall(request("PUT"))
            assert connection.recv(1000).startswith(b"HTTP/1.1 204 ")
        connection.sendall(request(method))
        with pytest.raises(ConnectionResetError):
            connection.recv(1000)
    assert [sent.split(b" ")[0] for sent in service.requests] == [b"PUT", b"PUT", b"DELETE"]
    assert Told(gateway).by("sent", "upstream") == {("reset", "unanswered"): 2, ("204", "204"): 1}


def test_a_body_over_4_mib_is_refused_as_by_the_service(
    gateway_to: StartGateway, connect: Connect
) -> None:
    """Updates get 400, others 413, with the error code twice, and the connection goes on."""
    gateway = gateway_to(upstream="none")
    connection = connect(gateway)
    answers = Answers(connection)
    body = b"x" * (4 * MIB + 1)
    for method, target, status, code in (
        ("PUT", TARGET, 400, "EntityTooLarge"),
        ("MERGE", TARGET, 400, "EntityTooLarge"),
        ("POST", "/account/table", 413, "RequestBodyTooLarge"),
        ("POST", "/account/$batch", 413, "RequestBodyTooLarge"),
    ):
        head = f"{method} {target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunked = head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        for sent in (request(method, target, body), chunked):
            connection.sendall(sent)
            got, headers, content = answers.next()
            assert (got, headers["x-ms-error-code"]) == (status, code)
            assert json.loads(content)["odata.error"]["code"] == code
            connection.sendall(request("PUT", body=b"{}"))
            assert answers.next()[0] == 204
    counts = {("size", "400"): 4, ("size", "413"): 4, ("", "204"): 8}
    assert Told(gateway).by("rule", "sent") == counts


def test_an_announced_body_over_4_mib_is_not_asked_for(
    gateway_to: StartGateway, connect: Connect
) -> None:
    """A client that waits to be asked gets the refusal, and the connection ends."""
    connection = connect(gateway_to(upstream="none"))
    head = f"PUT {TARGET} HTTP/1.1\r\nHost: h\r\nContent-Length: {5 * MIB}\r\n"
    connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
    answers = Answers(connection)
    assert answers.next()[0] == 400
    assert answers.ended()


def test_a_packed_body_is_passed_on_as_it_is_and_understood(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """A body in gzip counts for its partition; one that unpacks to 100 MiB is not unpacked."""
    gateway = through(NO_CONTENT, NO_CONTENT)
    entity = gzip.compress(b'{"PartitionKey":"packed","RowKey":"r"}')
    bomb = gzip.compress(b"\0" * 100 * MIB)
    connection = connect(gateway)
    for body in (entity, bomb):
        connection.sendall(request("POST", "/account/table", body, Content_Encoding="gzip"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 204 ")
    assert [sent.partition(b"\r\n\r\n")[2] for sent in service.requests] == [entity, bomb]
    assert all(b"Content-Encoding: gzip\r\n" in sent for sent in service.requests)
    assert set(Told(gateway).by("table", "partition")) == {("table", "packed"), ("table", None)}


def test_every_form_of_a_target_is_answered_and_counted(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """A whole URL is the request it names, OPTIONS * is passed on, CONNECT is refused."""
    gateway = through(NO_CONTENT, NO_CONTENT)
    connection = connect(gateway)
    answers = Answers(connection)
    connection.sendall(request("PUT", f"http://127.0.0.1:1{TARGET}", b"{}"))
    assert answers.next()[0] == 204
    connection.sendall(request("OPTIONS", "*"))
    assert answers.next()[0] == 204
    connection.sendall(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
    status, headers, _ = answers.next()
    assert (status, headers["x-ms-error-code"]) == (405, "UnsupportedHttpVerb")
    assert "PUT" in headers["allow"]
    lines = [sent.partition(b"\r\n\r\n")[0].split(b"\r\n")[:2] for sent in service.requests]
    assert lines[0] == [f"PUT {TARGET} HTTP/1.1".encode(), b"Host: 127.0.0.1:1"]
    assert lines[1][0] == b"OPTIONS * HTTP/1.1"
    counts = Told(gateway).by("partition", "result", "rule", "sent")
    assert counts == {
        ("p", "passed", "", "204"): 1,
        (None, "passed", "", "204"): 1,
        (None, "refused", "method", "405"): 1,
    }


def test_what_is_not_a_request_is_refused_and_counted(
    gateway_to: StartGateway, connect: Connect
) -> None:
    """The client gets an error, the connection ends, the counters have a row, and others go on."""
    gateway = gateway_to(upstream="none")
    for sent, status in (
        (b"PUT nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost h\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"BREW / HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        (b"GET /" + b"x" * MIB, 431),
    ):
        connection = connect(gateway)
        connection.sendall(sent)
        answers = Answers(connection)
        assert answers.next()[0] == status
        assert answers.ended()
    assert Told(gateway).by("result", "rule", "sent") == {
        ("refused", "malformed", "400"): 3,
        ("refused", "method", "405"): 1,
        ("refused", "size", "431"): 1,
    }


def test_an_upgrade_is_not_made(through: StartGateway, connect: Connect, service: Any) -> None:
    """A request that offers another protocol is answered in this one, and so is the next."""
    connection = connect(through(NO_CONTENT, NO_CONTENT))
    answers = Answers(connection)
    offer = request("PUT", body=b"{}", Connection="Upgrade", Upgrade="h2c")
    connection.sendall(offer + request("PUT", body=b"{}"))
    assert [answers.next()[0] for _ in range(2)] == [204, 204]
    assert all(sent.endswith(b"\r\n\r\n{}") for sent in service.requests)
    assert b"pgrade" not in service.requests[0]


def test_a_half_closed_client_gets_its_answers(through: StartGateway, connect: Connect) -> None:
    """A client that sends its requests and closes its half reads every answer, then the end."""
    connection = connect(through(NO_CONTENT, NO_CONTENT))
    connection.sendall(request("PUT", body=b"{}") * 2)
    connection.shutdown(socket.SHUT_WR)
    answers = Answers(connection)
    assert [answers.next()[0] for _ in range(2)] == [204, 204]
    assert answers.ended()


def test_requests_that_do_not_wait_are_answered_in_order(
    through: StartGateway, connect: Connect, service: Any
) -> None:
    """A hundred requests in one piece get their hundred answers, each its own."""
    count = 100
    gateway = through(*(service.entity_answer(RowKey=str(number)) for number in range(count)))
    connection = connect(gateway)
    connection.sendall(b"".join(request("GET", f"/account/t{n:03d}(a)") for n in range(count)))
    answers = Answers(connection)
    got = [json.loads(answers.next()[2])["RowKey"] for _ in range(count)]
    assert got == [str(number) for number in range(count)]
    targets = [sent.split(b" ")[1] for sent in service.requests]
    assert targets == [f"/account/t{n:03d}(a)".encode() for n in range(count)]


def test_answers_without_a_body_have_none(through: StartGateway, connect: Connect) -> None:
    """HEAD and 304 keep the length of the body that is not there; 204 has neither."""
    gateway = through(
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
        b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 12\r\n\r\n',
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
    )
    connection = connect(gateway)
    answers = Answers(connection)
    for method, length in (("HEAD", "12"), ("GET", "12"), ("PUT", None)):
        connection.sendall(request(method))
        assert answers.next(body=False)[1].get("content-length") == length


def test_an_answer_arrives_however_it_was_framed(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """In chunks, after an interim answer, or up to the end of the connection, byte by byte."""

    def to_the_end(connection: socket.socket) -> bool:
        service.in_pieces(b"HTTP/1.0 200 OK\r\n\r\nabcde")(connection)
        return False

    chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    gateway = through(
        service.in_pieces(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
        service.in_pieces(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
        ),
        to_the_end,
    )
    for _ in range(3):
        connection = connect(gateway)
        connection.sendall(request("GET"))
        assert Answers(connection).next()[::2] == (200, b"abcde")


def test_fields_of_one_connection_stay_on_it(
    through: StartGateway, connect: Connect, service: Any
) -> None:
    """What Connection names, and Connection itself, is not passed on in either direction."""
    connection = connect(
        through(
            b"HTTP/1.1 204 No Content\r\nConnection: keep-alive, x-own\r\nKeep-Alive: timeout=5\r\n"
            b"X-Own: 1\r\nX-Kept: 1\r\nX-Kept: 2\r\n\r\n"
        )
    )
    connection.sendall(request("PUT", Connection="x-mine", X_Mine="1", X_Other="1", TE="trailers"))
    head = connection.recv(1000)
    assert b"X-Kept: 1\r\nX-Kept: 2\r\n" in head
    assert b"wn" not in head.partition(b"\r\n")[2]
    assert b"Keep-Alive" not in head
    assert b"X-Other: 1" in service.requests[0]
    for name in (b"onnection", b"X-Mine", b"TE:"):
        assert name not in service.requests[0]


def test_an_answer_of_the_gateway_allows_what_the_endpoint_allowed(
    gateway_to: StartGateway, service: Any, connect: Connect
) -> None:
    """A page of another origin may read a 503 where it may read the endpoint's answers."""
    service.script = [
        b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: http://page\r\n"
        b"Access-Control-Expose-Headers: x-ms-request-id\r\n\r\n"
    ]
    limits = "[partition]\nentities_per_s = 0.1\nburst_s = 10.0\n"
    connection = connect(gateway_to(limits, f"http://{service.endpoint.host}"))
    answers = Answers(connection)
    allowed = []
    for origin in ("http://page", "http://page", "http://other"):
        connection.sendall(request("PUT", body=b"{}", Origin=origin))
        status, headers, _ = answers.next()
        exposed = headers.get("access-control-expose-headers")
        allowed.append((status, headers.get("access-control-allow-origin"), exposed))
    assert allowed == [
        (204, "http://page", "x-ms-request-id"),
        (503, "http://page", "x-ms-request-id"),
        (503, None, None),
    ]


def test_a_page_may_use_a_gateway_without_an_endpoint(
    gateway_to: StartGateway, connect: Connect
) -> None:
    """A preflight request is allowed, and the page reads answers and refusals, but no own page."""
    limits = "[partition]\nentities_per_s = 0.1\nburst_s = 10.0\n"
    connection = connect(gateway_to(limits, "none"))
    answers = Answers(connection)
    preflight: dict[str, Any] = {
        "Origin": "http://page",
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "x-ms-version,accept",
    }
    connection.sendall(request("OPTIONS", **preflight))
    status, headers, _ = answers.next()
    allowed = {
        name.removeprefix("access-control-allow-"): text
        for name, text in headers.items()
        if name.startswith("access-control-allow-")
    }
    assert (status, allowed) == (
        200,
        {"origin": "http://page", "methods": "PUT", "headers": "x-ms-version,accept"},
    )
    read = []
    for _ in range(2):
        connection.sendall(request("PUT", body=b"{}", Origin="http://page"))
        status, headers, _ = answers.next()
        read.append((status, headers.get("access-control-allow-origin")))
    assert read == [(204, "http://page"), (503, "http://page")]
    for target, origin in ((TARGET, None), ("/-/truth", "http://page")):
        said: dict[str, Any] = {} if origin is None else {"Origin": origin}
        connection.sendall(request("GET", target, Host="127.0.0.1", **said))
        assert "access-control-allow-origin" not in answers.next()[1]


def test_a_large_answer_is_passed_on_while_it_comes(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """A page of 30 MiB arrives in order and counts its entities, before a client that waits."""
    row = b'{"PartitionKey":"k%d","RowKey":"r","Text":"%b"}'
    rows = [row % (number % 3, b"x" * MIB) for number in range(30)]
    body = b'{"value":[' + b",".join(rows) + b"]}"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    gateway = through(NO_LOOK, head % len(body) + body)
    connection = connect(gateway)
    connection.sendall(request("GET", "/account/table()"))
    answers = Answers(connection)
    assert answers.next()[2] == body
    assert Told(gateway).rows("table")[0]["entities"] == 30


def test_a_large_answer_that_breaks_off_is_no_answer(
    through: StartGateway, service: Any, connect: Connect
) -> None:
    """The client gets an error in place of the end, and the counters count half an answer."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    gateway = through(NO_LOOK, service.close_after(head + b"1000000\r\n" + b"x" * 12 * MIB))
    connection = connect(gateway)
    connection.sendall(request("GET", "/account/table()"))
    assert all_of(connection)[1] == "reset"
    assert Told(gateway).by("rule", "sent") == {("upstream", "half"): 1}
