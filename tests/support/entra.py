"""Entra ID for tests: tokens that Azurite takes, and a stand-in for a managed identity's endpoint.

Azurite checks issuer, audience and times of a token, and not its signature.
"""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

TENANT = "11111111-2222-3333-4444-555555555555"
OBJECT_ID = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
AUDIENCE = "https://storage.azure.com"
SECRET = "the-header-that-only-this-machine-knows"
MANAGED = {"xms_mirid": "/subscriptions/1/resourcegroups/r/providers/m/userAssignedIdentities/i"}


def access_token(
    *, now_s: float | None = None, life_s: float = 3600.0, audience: str = AUDIENCE, **claims: Any
) -> str:
    """A token of `TENANT` for `OBJECT_ID`, with more ``claims``; None leaves one out."""
    now_s = time.time() if now_s is None else now_s
    content = {
        "aud": audience,
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": int(now_s) - 5,
        "nbf": int(now_s) - 5,
        # Azurite takes fractions of a second, as JWT allows.
        "exp": now_s + life_s,
        "oid": OBJECT_ID,
        "tid": TENANT,
        # So that no two tokens are equal.
        "uti": f"{time.perf_counter_ns()}",
        **claims,
    }
    parts = {"alg": "RS256", "typ": "JWT"}, {k: v for k, v in content.items() if v is not None}
    head, body = (_encoded(json.dumps(part).encode()) for part in parts)
    return f"{head}.{body}.{_encoded(b'a signature that nobody checks')}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class ManagedIdentity:
    """The endpoint of a managed identity on App Service.

    Its tokens are valid for an hour. With a shorter ``life_s`` they are renewed soon, and a process
    that a busy machine holds up is not refused: Azurite would answer 403, and Azure 401.

    Attributes:
        life_s: Life of the tokens that are issued from now on, as the client is told.
        failing: While True, no token is issued.
        claims: More claims of the tokens.
        issued: The tokens so far.
        refused: How many requests got none.
    """

    def __init__(self, life_s: float = 3600.0) -> None:
        self.life_s = life_s
        self.failing = False
        self.claims: dict[str, Any] = dict(MANAGED)
        self.issued: list[str] = []
        self.refused = 0
        identity = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, content = identity._answer(self.path, self.headers["X-IDENTITY-HEADER"])
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keep quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def environ(self) -> dict[str, str]:
        """What a machine with this identity has in its environment."""
        return {
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}/msi/token",
            "IDENTITY_HEADER": SECRET,
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str, header: str | None) -> tuple[int, dict[str, Any]]:
        asked = parse_qs(urlsplit(path).query)
        if header != SECRET or asked["api-version"] != ["2019-08-01"]:
            return 401, {"error": "unauthorized"}
        if self.failing:
            self.refused += 1
            return 400, {"error": "invalid_request", "error_description": "no identity today"}
        (audience,) = asked["resource"]
        expires_s = time.time() + self.life_s
        token = access_token(audience=audience, **self.claims)
        self.issued.append(token)
        return 200, {
            "access_token": token,
            "expires_on": str(int(expires_s)),
            "resource": audience,
            "token_type": "Bearer",
        }
