"""One request, one answer, no second try: bytes to one origin over a bounded pool.

geventhttpclient brings the connecting, the TLS and the C parser. Its ``HTTPClient.request`` is
not used, because it sends an idempotent request again on a broken connection, and an attempt
that nobody sees is an attempt that nobody counts.

A connection goes back to the pool only after a whole answer. Whatever else ends an exchange, a
killed greenlet included, closes the connection and frees its place.
"""

from __future__ import annotations

import ssl

from harness.endpoint.clock import Clock
from harness.endpoint.connected import Connection
from harness.endpoint.exchange import Exchange, RequestFault, ResponseFault
from harness.endpoint.pool import ConnectionLimit, open_pool
from harness.endpoint.reader import HTTPParseError, Reader, is_bare_success, read_at_once
from harness.model.outcome import Fault

USER_AGENT = "azure-table-stress-harness"
_FIRST_BYTES = 8192
"""Most answers are smaller. Memory for much more would be asked of the system, every time."""
_BLOCK_BYTES = 65536


class Channel:
    """Sends messages to one origin and reads their answers. Safe among greenlets of one thread.

    Attributes:
        url: Where to; scheme, host and port count.

    Args:
        url: See above.
        connections: At most so many connections at once; a request beyond waits for a place.
        connect_timeout_s: For each address of the host, TLS handshake included.
        read_timeout_s: For each wait for more of an answer.
        clock: Gives the times of the exchanges.

    Raises:
        SetupError: the environment names a bundle of certificates that cannot be read.
    """

    def __init__(
        self,
        *,
        url: str,
        connections: int,
        connect_timeout_s: float,
        read_timeout_s: float,
        clock: Clock,
    ) -> None:
        self.url = url
        self._clock = clock
        self._pool: ConnectionLimit = open_pool(
            url,
            connections=connections,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )

    @property
    def connections_in_use(self) -> int:
        """Places of the pool that are taken at this moment."""
        return self._pool.in_use

    def close(self) -> None:
        """Close every idle connection; those in use are closed when their exchange ends."""
        self._pool.close()

    def send(self, message: bytes, exchange: Exchange) -> None:
        """Send ``message`` once and read its answer; ``exchange`` is filled in, also on errors.

        Raises:
            RequestFault: it did not leave.
            ResponseFault: it may have been done, but no whole answer came.
        """
        pool = self._pool
        pool.acquire()
        exchange.sent_s = self._clock()
        connection = None
        try:
            connection = self._connect()
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
        """An idle connection, or a new one.

        Raises:
            RequestFault: there is none to be had.
        """
        try:
            return self._pool.connection()
        except TimeoutError as error:
            raise RequestFault(Fault.CONNECT_TIMEOUT, error) from error
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            # Closed during the handshake, as an overloaded front end does. Worth a retry.
            raise RequestFault(Fault.REFUSED, error) from error
        except ssl.SSLError as error:
            raise RequestFault(Fault.TLS, error) from error
        except OSError as error:
            raise RequestFault(Fault.REFUSED, error) from error


def talk(connection: Connection, message: bytes, exchange: Exchange) -> bool:
    """Send ``message``, read one answer. True where the connection may be used again.

    Raises:
        ResponseFault: no whole answer came.
    """
    data = b""
    try:
        exchange.bytes_sent = len(message)
        connection.send(message)
        data = connection.first(_FIRST_BYTES)
        if is_bare_success(data):
            exchange.bytes_received = len(data)
            exchange.status, exchange.reason = 204, "No Content"
            return True
        if read_at_once(data, exchange):
            return True
        reader = Reader()
        while True:
            if not data and exchange.bytes_received == 0:
                raise ConnectionResetError("closed before the answer began")
            exchange.bytes_received += len(data)
            # No data is the end of the connection, which ends an answer without a length.
            reader.feed(data)
            if reader.whole:
                break
            if not data:
                # It ended between an interim answer and the real one.
                raise ConnectionResetError("closed before the answer was whole")
            data = connection.more(_BLOCK_BYTES)
    except TimeoutError as error:
        raise ResponseFault(Fault.READ_TIMEOUT, str(error)) from error
    except OSError as error:
        raise ResponseFault(Fault.RESET, f"{type(error).__name__}: {error}") from error
    except HTTPParseError as error:
        if not data:
            raise ResponseFault(Fault.RESET, "closed before the answer was whole") from error
        raise ResponseFault(Fault.BAD_ANSWER, f"the answer is not HTTP: {error}") from error
    exchange.status, exchange.reason = reader.get_code(), reader.reason
    exchange.headers, exchange.body = reader.headers(), reader.body()
    return reader.should_keep_alive() and not reader.surplus
