"""One request and its response, without retries, over a limited pool of connections.

The client of geventhttpclient, which Locust has, is not used: it repeats an idempotent request on
a broken connection, and that attempt would not be counted.
"""

from __future__ import annotations

import ssl
from time import monotonic

from gevent import GreenletExit
from httptools import HttpParserError

from harness.endpoint.http.exchange import (
    MAX_HEAD_BYTES,
    MAX_RESPONSE_BYTES,
    Exchange,
    Reader,
    RequestFault,
    ResponseFault,
    is_bare_success,
    read_at_once,
)
from harness.endpoint.http.pool import Connection, LimitedPool
from harness.model.outcome import Fault
from harness.model.process import Clock
from harness.workload.budget import Budget, BudgetSpent

USER_AGENT = "azure-table-stress-harness"
_FIRST_BYTES = 8192
"""Most responses are smaller; a much larger buffer would cost a system call every time."""
_BLOCK_BYTES = 65536


class Channel:
    """Sends messages to one origin and reads their responses. Safe among greenlets of one thread.

    A connection goes back to the pool only after a whole response. Whatever else ends an exchange,
    a killed greenlet included, closes the connection and frees its place.

    Args:
        pool: The connections to the origin. A whole response has to come within its time-out.
    """

    def __init__(self, pool: LimitedPool, *, clock: Clock, budget: Budget) -> None:
        self._pool = pool
        self._clock = clock
        self._budget = budget
        self._refuses = False

    @property
    def url(self) -> str:
        return self._pool.url

    @property
    def connections_in_use(self) -> int:
        return self._pool.in_use

    def close(self) -> None:
        self._pool.close()

    def refuse(self) -> None:
        """Send no further request, not even one that waits for a connection now."""
        self._refuses = True

    def send(self, message: bytes, exchange: Exchange) -> None:
        """Send ``message`` once and read its response; fills in ``exchange``, also on errors.

        Raises:
            RequestFault: the request did not leave.
            ResponseFault: the request may have been executed, but no whole response came.
            BudgetSpent: the request did not leave, because the budget is used up.
            GreenletExit: the request did not leave, because `refuse` was called.
        """
        pool = self._pool
        if pool.acquire_now():
            exchange.sent_s = self._clock()
        else:
            from_s = self._clock()
            pool.acquire()
            exchange.sent_s = self._clock()
            exchange.queued_s = exchange.sent_s - from_s
        connection = None
        try:
            connection = self._connect()
            if self._refuses:
                raise GreenletExit
            if not self._budget.take():
                raise BudgetSpent("the budget of billable transactions is used up")
            reusable = talk(connection, message, exchange)
        except BaseException:
            exchange.done_s = self._clock()
            pool.drop(connection)
            raise
        exchange.done_s = self._clock()
        if reusable:
            pool.put_back(connection)
        else:
            pool.drop(connection)

    def _connect(self) -> Connection:
        try:
            return self._pool.connection()
        except TimeoutError as error:
            raise RequestFault(Fault.CONNECT_TIMEOUT, error) from error
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            # An overloaded front end closes during the handshake, which is worth a retry.
            raise RequestFault(Fault.REFUSED, error) from error
        except ssl.SSLError as error:
            raise RequestFault(Fault.TLS, error) from error
        except OSError as error:
            raise RequestFault(Fault.REFUSED, error) from error


def talk(connection: Connection, message: bytes, exchange: Exchange) -> bool:
    """Send ``message`` and read one response into ``exchange``.

    Returns:
        Whether the connection can be used again.

    Raises:
        ResponseFault: there was no whole response in time, or none that can be read.
    """
    data = b""
    try:
        exchange.bytes_sent = len(message)
        connection.send(message)
        until_s = monotonic() + connection.timeout_s
        data = connection.first(_FIRST_BYTES)
        if is_bare_success(data):
            exchange.status, exchange.head = 204, data
            exchange.bytes_received = len(data)
            return True
        if read_at_once(data, exchange):
            return True
        reader = Reader()
        while True:
            if not data and exchange.bytes_received == 0:
                raise ConnectionResetError("closed before the response began")
            exchange.bytes_received += len(data)
            # No data means the end of the connection, which ends a response without a length.
            reader.feed(data)
            if reader.whole:
                break
            if not data:
                raise ConnectionResetError("closed before the response was whole")
            if reader.head_bytes > MAX_HEAD_BYTES:
                raise _too_large("the head of the response", MAX_HEAD_BYTES)
            if exchange.bytes_received > MAX_RESPONSE_BYTES:
                raise _too_large("the response", MAX_RESPONSE_BYTES)
            data = connection.more(_BLOCK_BYTES, until_s - monotonic())
    except TimeoutError as error:
        raise ResponseFault(Fault.READ_TIMEOUT, str(error)) from error
    except OSError as error:
        raise ResponseFault(Fault.RESET, f"{type(error).__name__}: {error}") from error
    except HttpParserError as error:
        raise ResponseFault(Fault.BAD_ANSWER, f"the response is not HTTP: {error}") from error
    exchange.status = reader.status
    exchange.headers, exchange.body = reader.headers(), reader.body()
    return reader.keeps_alive and not reader.surplus


def _too_large(what: str, limit: int) -> ResponseFault:
    return ResponseFault(Fault.TOO_LARGE, f"{what} is larger than {limit:,} bytes")
