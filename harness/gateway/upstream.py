"""The endpoint behind the gateway: requests are passed on unchanged, responses complete.

Only headers of a single connection are left out, and Host is the endpoint's own: Shared Key and SAS
do not sign it, and the service finds the account by it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from harness.gateway.answers import GatewayAnswer

MAX_HEADER_BYTES = 128 * 1024
"""Two percent-encoded keys of 1,024 characters exceed the usual 8 KiB."""

_HOP_BY_HOP = (
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
)
_NOT_SENT_ON = (*_HOP_BY_HOP, "Host", "Expect")
_CONNECTED_WITHIN_S = 10.0
_ANSWERED_WITHIN_S = 120.0
# Azurite closes connections that were idle for 5 s; the setting has no effect.
_IDLE_S = 2.0


class UpstreamMissing(Exception):
    """No connection could be opened; nothing was sent."""


class UpstreamBroken(Exception):
    """There was no complete response; the request may have been executed."""


class Upstream:
    """Connections to one endpoint.

    Args:
        url: Scheme, host and port.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(
                total=_ANSWERED_WITHIN_S, sock_connect=_CONNECTED_WITHIN_S
            ),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self._session.close()

    async def ask(
        self, method: str, target: str, headers: CIMultiDictProxy[str], body: bytes
    ) -> GatewayAnswer:
        """Pass a request on, and return its response.

        Raises:
            UpstreamMissing: the request was not sent.
            UpstreamBroken: there was no complete response.
        """
        sent = CIMultiDict(headers)
        for name in _NOT_SENT_ON:
            if name in sent:
                del sent[name]
        try:
            async with self._session.request(
                method,
                URL(self.url + target, encoded=True),
                headers=sent,
                data=body or None,
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise UpstreamMissing(error.strerror or str(error)) from error
        except aiohttp.ConnectionTimeoutError as error:
            raise UpstreamMissing("no connection in time") from error
        except (TimeoutError, aiohttp.ClientError, ConnectionError) as error:
            raise UpstreamBroken(str(error)) from error
        kept = CIMultiDict(response.headers)
        for name in _HOP_BY_HOP:
            if name in kept:
                del kept[name]
        return GatewayAnswer(status=response.status, headers=kept, body=content)
