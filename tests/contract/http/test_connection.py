"""A connection that one watcher looks after, whoever waits for what comes."""

from __future__ import annotations

import socket as blocking
from collections.abc import Callable, Iterator

import gevent
import gevent.socket
import pytest

from harness.endpoint.http.pool import Connection

LONG_S = 30.0
Ends = tuple[Connection, blocking.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A connection that waits long, and the server's end of it."""
    with blocking.create_server(("127.0.0.1", 0)) as listener:
        ours = gevent.socket.create_connection(listener.getsockname(), timeout=LONG_S)
        server, _ = listener.accept()
    connection = Connection(ours, LONG_S)
    with server:
        yield connection, server
        connection.close()


def until(condition: Callable[[], bool]) -> None:
    """Let the loop go round until ``condition`` holds."""
    with gevent.Timeout(LONG_S):
        while not condition():
            gevent.sleep(0.01)


def test_who_waits_gets_the_first_bytes(ends: Ends) -> None:
    """The waiting greenlet goes on when they come, again and again."""
    connection, server = ends
    for number in range(5):
        connection.send(b"ask")
        waiting = gevent.spawn(connection.first, 100)
        gevent.sleep(0.01)
        assert not waiting.ready()
        server.sendall(b"%d" % number)
        assert waiting.get(timeout=LONG_S) == b"%d" % number
        assert server.recv(100) == b"ask"
        connection.free()
        assert connection.usable()


def test_an_answer_before_anybody_waits_is_not_lost(ends: Ends) -> None:
    """What came while the request was still being sent is read, and the next answer too."""
    connection, server = ends
    for number in range(3):
        server.sendall(b"%d" % number)
        until(lambda: not connection.usable())
        assert connection.first(100) == b"%d" % number
        connection.free()
        assert connection.usable()


@pytest.mark.parametrize("looked", [True, False], ids=["the loop looked", "nobody looked"])
@pytest.mark.parametrize("what", ["data", "end"])
def test_an_idle_connection_that_has_something_to_say_is_not_usable(
    ends: Ends, what: str, looked: bool
) -> None:
    """Stray data and the end of the connection are seen, also where the loop had no turn yet."""
    connection, server = ends
    assert connection.usable()
    if what == "data":
        server.sendall(b"stray")
    else:
        server.shutdown(blocking.SHUT_WR)
    if looked:
        gevent.sleep(0.05)
    assert not connection.usable()
    assert not connection.usable()


def test_stray_data_behind_an_answer_is_seen_later(ends: Ends) -> None:
    """What comes behind a whole answer makes the connection unusable, not the next answer wrong."""
    connection, server = ends
    server.sendall(b"answerstray")
    assert connection.first(6) == b"answer"
    connection.free()
    assert not connection.usable()


def test_waiting_too_long_ends(ends: Ends) -> None:
    """It is a time-out where nothing came for so long, and not a moment earlier."""
    connection, _ = ends
    waiting = gevent.spawn(connection.first, 100)
    gevent.sleep(0.01)
    since_s = connection.waits_since_s
    connection.give_up_if_late(since_s + LONG_S - 0.1)
    gevent.sleep(0.01)
    assert not waiting.ready()
    connection.give_up_if_late(since_s + LONG_S)
    with pytest.raises(TimeoutError, match="timed out"):
        waiting.get(timeout=LONG_S)


def test_an_answer_that_just_came_is_no_time_out(ends: Ends) -> None:
    """Where it comes in the moment in which the wait is given up, the next wait is not ended."""
    connection, server = ends

    def ask_twice() -> list[bytes]:
        return [connection.first(100), connection.first(100)]

    waiting = gevent.spawn(ask_twice)
    gevent.sleep(0.01)
    server.sendall(b"first")
    until(lambda: connection.waits_since_s < float("inf"))
    stale_s = connection.waits_since_s
    gevent.sleep(0.05)
    assert connection.waits_since_s != stale_s
    connection.give_up_if_late(stale_s)
    gevent.sleep(0.01)
    server.sendall(b"second")
    assert waiting.get(timeout=LONG_S) == [b"first", b"second"]


def test_a_killed_greenlet_leaves_nobody_waiting(ends: Ends) -> None:
    """What comes for it afterwards finds nobody, and says that the connection is out of step."""
    connection, server = ends
    waiting = gevent.spawn(connection.first, 100)
    gevent.sleep(0.01)
    waiting.kill()
    assert connection.waits_since_s == float("inf")
    server.sendall(b"late")
    until(lambda: not connection.usable())


def test_a_whole_answer_may_come_in_pieces(ends: Ends) -> None:
    """Further bytes are waited for as the first ones are."""
    connection, server = ends

    def whole() -> bytes:
        data = connection.first(3)
        while len(data) < 9:
            data += connection.more(3, LONG_S)
        return data

    waiting = gevent.spawn(whole)
    for piece in (b"one", b"two", b"six"):
        gevent.sleep(0.02)
        server.sendall(piece)
    assert waiting.get(timeout=LONG_S) == b"onetwosix"
    connection.free()
    until(connection.usable)


def test_an_end_is_no_bytes(ends: Ends) -> None:
    """The other side closed: nothing more comes."""
    connection, server = ends
    server.shutdown(blocking.SHUT_WR)
    assert connection.first(100) == b""
