"""CORS headers for answers of the gateway itself.

The service answers pages of other origins by the CORS rules of the account, which the gateway does
not have. The gateway repeats what the endpoint last allowed the origin; otherwise a browser would
hide a 503 from the page.
"""

from __future__ import annotations

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers

_MOST_ORIGINS = 100
_ALLOWED = "Access-Control-Allow-Origin"
_FIELDS = (_ALLOWED, "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Vary")


class CorsAnswers:
    """What the endpoint allowed to origins."""

    def __init__(self) -> None:
        self._by_origin: dict[str, dict[str, str]] = {}

    def learn(self, headers: Headers, answer: GatewayAnswer) -> None:
        """Store what an answer of the endpoint allows the origin of the request.

        Args:
            headers: Headers of the request.
            answer: The endpoint's answer.
        """
        origin = headers.get("Origin")
        if origin is None or _ALLOWED not in answer.headers:
            return
        allowed = {name: answer.headers[name] for name in _FIELDS if name in answer.headers}
        known = self._by_origin.pop(origin, {})
        if len(self._by_origin) >= _MOST_ORIGINS:
            del self._by_origin[next(iter(self._by_origin))]
        # A preflight names no headers to expose.
        self._by_origin[origin] = known | allowed

    def add(self, headers: Headers, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer of the gateway with the CORS headers for the origin of the request."""
        allowed = self._by_origin.get(headers.get("Origin", ""))
        if not allowed:
            return answer
        return answer._replace(headers={**answer.headers, **allowed})
