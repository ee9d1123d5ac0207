"""CORS headers for answers of the gateway itself.

The service answers pages of other origins by the CORS rules of the account, which the gateway does
not have. The gateway repeats what the endpoint last allowed the origin; otherwise a browser would
hide a 503 from the page. Without an endpoint every origin is allowed everything, because nothing is
stored.
"""

from __future__ import annotations

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers

_MOST_ORIGINS = 100
_ALLOWED = "Access-Control-Allow-Origin"
_ASKED_METHOD = "Access-Control-Request-Method"
_ASKED_HEADERS = "Access-Control-Request-Headers"
_FIELDS = (_ALLOWED, "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Vary")


def is_preflight(method: str, headers: Headers) -> bool:
    """True if a browser asks whether a page of another origin may send a request."""
    return method == "OPTIONS" and "Origin" in headers and _ASKED_METHOD in headers


def permission(headers: Headers) -> GatewayAnswer:
    """Return the answer to a preflight request that allows what it asks for."""
    allowed = {"Access-Control-Allow-Methods": headers[_ASKED_METHOD]}
    if _ASKED_HEADERS in headers:
        allowed["Access-Control-Allow-Headers"] = headers[_ASKED_HEADERS]
    return GatewayAnswer(status=200, headers=allowed | {"Access-Control-Max-Age": "60"})


class CorsAnswers:
    """What the endpoint allowed to origins."""

    def __init__(self) -> None:
        self._by_origin: dict[str, dict[str, str]] = {}

    def learn(self, headers: Headers, answer: GatewayAnswer) -> None:
        """Store what an answer of the endpoint allows the origin of the request."""
        origin = headers.get("Origin")
        if origin is None or _ALLOWED not in answer.headers:
            return
        allowed = {name: answer.headers[name] for name in _FIELDS if name in answer.headers}
        known = self._by_origin.pop(origin, {})
        if len(self._by_origin) >= _MOST_ORIGINS:
            del self._by_origin[next(iter(self._by_origin))]
        # A preflight names no headers to expose.
        self._by_origin[origin] = known | allowed

    def allow(self, headers: Headers, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer that pages of the origin of the request may read, and store that."""
        if "Origin" not in headers:
            return answer
        allowed = {_ALLOWED: headers["Origin"], "Access-Control-Expose-Headers": "*"}
        answer = answer._replace(headers={**answer.headers, **allowed, "Vary": "Origin"})
        self.learn(headers, answer)
        return answer

    def add(self, headers: Headers, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer of the gateway with the CORS headers for the origin of the request."""
        allowed = self._by_origin.get(headers.get("Origin", ""))
        if not allowed:
            return answer
        return answer._replace(headers={**answer.headers, **allowed})
