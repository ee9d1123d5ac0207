"""The SDK's own transport (``requests``) for the baseline session, with three additions.

It trusts the authorities that the harness trusts, reports what kept a response away, and limits
the size of response bodies.

``requests`` calls the hooks of a request before it reads the body, and the SDK passes the hooks of
a call on, so the body can be limited there. Heads are read by then: `http.client` limits the length
of their lines, but not the number of interim responses and trailers. Nor is there a place from
which a response that comes byte by byte could be ended.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any, cast

import requests
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter

from harness.endpoint.http.reader import MAX_RESPONSE_BYTES

REQUEST_ID = "x-ms-client-request-id"


class SdkDefaultTransport(RequestsTransport):  # type: ignore[misc]
    """The SDK's own transport with the harness's authorities.

    Args:
        on_fault: Called with the client request id and the error where no whole response came.
        trusting: Checks certificates, see `harness.endpoint.http.tls`; None without TLS.
        options: Options of the SDK's transport.
    """

    def __init__(
        self,
        on_fault: Callable[[str, AzureError], None],
        *,
        trusting: ssl.SSLContext | None,
        **options: Any,
    ) -> None:
        self._trusting = trusting
        self._on_fault = on_fault
        super().__init__(**options)

    def send(self, request: Any, **options: Any) -> Any:
        """Send ``request`` as the base class does.

        Raises:
            AzureError: no whole response came.
        """
        try:
            return super().send(request, **options)
        except AzureError as error:
            self._on_fault(request.headers.get(REQUEST_ID, ""), error)
            raise

    def _init_session(self, session: requests.Session) -> None:
        super()._init_session(session)
        if self._trusting is None:
            return
        default = cast(HTTPAdapter, session.get_adapter("https://"))
        trusting = _TrustingAdapter(self._trusting, max_retries=default.max_retries)
        session.mount("https://", trusting)


class _TrustingAdapter(HTTPAdapter):
    """Opens connections whose certificates one context checks, and nothing else."""

    def __init__(self, context: ssl.SSLContext, **options: Any) -> None:
        self._context = context
        super().__init__(**options)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **{**options, "ssl_context": self._context})

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **{**options, "ssl_context": self._context})

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        # Certificates that a variable names are in the context already.
        return super().build_connection_pool_key_attributes(request, True, cert)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Add nothing: ``requests`` would trust its own authorities besides the context's."""


class ResponseTooLarge(requests.RequestException):
    """The body is larger than any response of the service."""


def limit_body(response: requests.Response, **_options: Any) -> None:
    """A hook of ``requests``: reading a body that is too large raises `ResponseTooLarge`."""
    stream = response.raw.stream

    def read(*args: Any, **options: Any) -> Iterator[bytes]:
        size = 0
        for piece in stream(*args, **options):
            size += len(piece)
            if size > MAX_RESPONSE_BYTES:
                response.close()
                raise ResponseTooLarge(f"the response is larger than {MAX_RESPONSE_BYTES:,} bytes")
            yield piece

    response.raw.stream = read
