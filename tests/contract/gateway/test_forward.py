"""The gateway as a forward proxy: hosts of table endpoints lead to it, others pass untouched."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from harness.gateway.forward import Interception
from harness.gateway.limits import GatewayLimits
from harness.gateway.server import new_event_loop, serve
from harness.gateway.tls import made_certificate
from tests.support.certificates import certificate

TABLES = "acme.table.core.windows.net"
HEAD = "HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_S = 20.0

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def proxy(folder: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A gateway without an endpoint that is a proxy too: its port, and who trusts it."""
    tls, authority = made_certificate(folder, "127.0.0.1", ["*.table.core.windows.net"])
    listening, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    running = asyncio.create_task(
        serve(
            upstream="none",
            listen="127.0.0.1:0",
            limits=GatewayLimits(),
            ready=listening.set_result,
            stop=stop,
            interception=Interception(
                covers=lambda host: host.endswith(".table.core.windows.net"), tls=tls
            ),
        )
    )
    url = await listening
    try:
        yield (
            int(url.rpartition(":")[2]),
            ssl.create_default_context(cafile=str(authority)),
        )
    finally:
        stop.set()
        await running


@contextlib.asynccontextmanager
async def server(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[list[bytes]]:
    """A host that is nobody's table endpoint: its port, and then what it received."""
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    async with listener:
        seen.append(b"%d" % listener.sockets[0].getsockname()[1])
        yield seen


async def ask(stream: Stream, text: str) -> bytes:
    """Send a text, and return the head of the answer."""
    stream[1].write(text.encode())
    return await stream[0].readuntil(b"\r\n\r\n")


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test in an event loop of the gateway, for some time at most."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(bounded())


def test_a_table_endpoint_leads_to_the_gateway(tmp_path: Path) -> None:
    """The client meets a certificate for that very host, and several requests use one tunnel."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, trusts):
            stream = await asyncio.open_connection("127.0.0.1", port)
            assert b" 200 " in await ask(stream, f"CONNECT {TABLES}:443 {HEAD}")
            await stream[1].start_tls(trusts, server_hostname=TABLES)
            for _ in range(2):
                answer = await ask(stream, f"DELETE /orders(PartitionKey='p',RowKey='r') {HEAD}")
                assert answer.startswith(b"HTTP/1.1 204 ")
            stream[1].close()
            plain = await asyncio.open_connection("127.0.0.1", port)
            text = f"DELETE http://{TABLES}/orders(PartitionKey='p',RowKey='r') {HEAD}"
            assert (await ask(plain, text)).startswith(b"HTTP/1.1 204 ")
            plain[1].close()

    run(test)


def test_another_host_passes_untouched(tmp_path: Path) -> None:
    """The client meets the certificate of the host itself, and the host the client's own bytes."""
    files = certificate(tmp_path, "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.cert, files.key)
    trusts = ssl.create_default_context(cafile=str(files.authority))

    async def test() -> None:
        async with proxy(tmp_path) as (port, _), server(b"HTTP/1.1 204 \r\n\r\n", tls) as seen:
            stream = await asyncio.open_connection("127.0.0.1", port)
            assert b" 200 " in await ask(stream, f"CONNECT localhost:{seen[0].decode()} {HEAD}")
            # A tunnel does not depend on what the garbage collector finds.
            gc.collect()
            await stream[1].start_tls(trusts, server_hostname="localhost")
            assert await ask(stream, f"GET /any {HEAD}") == b"HTTP/1.1 204 \r\n\r\n"
            assert seen[1] == f"GET /any {HEAD}".encode()
            # The end of the host's connection is that of the client's.
            assert await stream[0].read() == b""
            stream[1].close()

    run(test)


def test_another_host_in_plain_http_gets_one_request(tmp_path: Path) -> None:
    """It sees a path, as without a proxy, no login for the proxy, and ends the connection."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, _), server(b"HTTP/1.1 204 \r\n\r\n") as seen:
            stream = await asyncio.open_connection("127.0.0.1", port)
            url = f"HTTP://127.0.0.1:{seen[0].decode()}/a?b=c"
            own = "Proxy-Connection: keep-alive\r\nproxy-authorization: Basic bWU6cw==\r\n"
            text = f"GET {url} HTTP/1.1\r\nHost: x\r\n{own}\r\n"
            assert await ask(stream, text) == b"HTTP/1.1 204 \r\n\r\n"
            assert seen[1] == b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            stream[1].close()

    run(test)


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_client_that_ends_its_side_at_once_gets_the_answer(tmp_path: Path, version: str) -> None:
    """The host sees the version of the client, and the client all that the host sends."""
    answer = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 1_000_000

    async def test() -> None:
        async with proxy(tmp_path) as (port, _), server(answer) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET http://127.0.0.1:{seen[0].decode()}/ {version}\r\n\r\n".encode())
            writer.write_eof()
            assert await reader.read() == answer
            assert seen[1] == f"GET / {version}\r\nConnection: close\r\n\r\n".encode()
            writer.close()

    run(test)


def test_bytes_that_do_not_wait_for_the_tunnel_arrive(tmp_path: Path) -> None:
    """They were sent with CONNECT, before its answer."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    async def test() -> None:
        listener = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with proxy(tmp_path) as (port, _), listener:
            far = listener.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"CONNECT 127.0.0.1:{far} {HEAD}early".encode())
            writer.write_eof()
            assert (await reader.read()).partition(b"\r\n\r\n")[2] == b"early"
            writer.close()

    run(test)


def test_the_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the request as the client would have sent it, with the login of its URL."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, _), server(b"HTTP/1.1 407 \r\n\r\n") as seen:
            monkeypatch.setenv("https_proxy", f"http://me:s%40x@127.0.0.1:{seen[0].decode()}")
            monkeypatch.setenv("no_proxy", "other.example")
            stream = await asyncio.open_connection("127.0.0.1", port)
            assert b" 407 " in await ask(stream, f"CONNECT far.example:443 {HEAD}")
            line, field, *_ = seen[1].split(b"\r\n")
            assert line == b"CONNECT far.example:443 HTTP/1.1"
            assert field == b"Proxy-Authorization: Basic bWU6c0B4"
            stream[1].close()

    run(test)


def test_the_proxy_of_the_environment_gets_one_request_in_plain_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later one of the same connection could be to a table endpoint, and pass by the gateway."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, _), server(b"HTTP/1.1 204 \r\n\r\n") as seen:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{seen[0].decode()}")
            monkeypatch.setenv("no_proxy", "other.example")
            stream = await asyncio.open_connection("127.0.0.1", port)
            text = "GET http://far.example/a HTTP/1.1\r\nConnection: keep-alive\r\n\r\n"
            assert b" 204 " in await ask(stream, text)
            assert seen[1] == text.replace("keep-alive", "close").encode()
            stream[1].close()

    run(test)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        # A request to the gateway itself, in both forms of a target, in two pieces.
        (["DELETE /acme/orders(PartitionKey='p',", f"RowKey='r') {HEAD}"], b"204"),
        (["DELETE http://127.0.0.1:PORT/acme/orders(PartitionKey='p',RowKey='r') ", HEAD], b"204"),
        # Nobody listens there.
        ([f"CONNECT 127.0.0.1:1 {HEAD}"], b"502"),
        ([f"CONNECT 127.0.0.1:99999 {HEAD}"], b"400"),
        ([f"CONNECT far.example:x {HEAD}"], b"400"),
        # The first byte of TLS.
        (["\x16\x03\x01"], b"4"),
    ],
)
def test_other_first_bytes(tmp_path: Path, sent: list[str], status: bytes) -> None:
    """Whatever a client sends first gets an answer."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for piece in sent:
                writer.write(piece.replace("PORT", str(port)).encode("latin-1"))
                await asyncio.sleep(0.05)
            assert (await reader.readline()).split(b" ")[1].startswith(status)
            writer.close()

    run(test)


def test_a_client_that_does_not_trust_the_gateway_ends_alone(tmp_path: Path) -> None:
    """The next client is served."""

    async def test() -> None:
        async with proxy(tmp_path) as (port, trusts):
            for context, served in ((ssl.create_default_context(), False), (trusts, True)):
                stream = await asyncio.open_connection("127.0.0.1", port)
                await ask(stream, f"CONNECT {TABLES}:443 {HEAD}")
                try:
                    await stream[1].start_tls(context, server_hostname=TABLES)
                except ssl.SSLError:
                    assert not served
                    continue
                assert served
                assert b" 204 " in await ask(
                    stream, f"DELETE /orders(PartitionKey='p',RowKey='r') {HEAD}"
                )
                stream[1].close()

    run(test)
