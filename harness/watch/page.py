"""The live page of a watch: the page of a run, served by a thread."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from harness.model.errors import SetupError
from harness.model.hosts import STRANGE_HOST, readers_of
from harness.report.web.document import Shown, live_page
from harness.report.web.tables import page_css, page_js, plotly_js

FRESH_FOR_S = 1.0
"""The least time for which a record of a watch in progress is shown."""
_OF_THE_TIME = 10
"""Building records takes at most one part of so many of the time."""
_ASSETS: dict[str, tuple[Callable[[], str], str]] = {
    "/": (lambda: live_page(locust=False), "text/html; charset=utf-8"),
    "/plotly.js": (plotly_js, "text/javascript; charset=utf-8"),
    "/page.js": (page_js, "text/javascript; charset=utf-8"),
    "/page.css": (page_css, "text/css; charset=utf-8"),
}


class LivePage:
    """A running page. Leaving the context stops it.

    Args:
        show: Makes what the page shows now.
        port: Port to listen on; 0 takes a free one.

    Raises:
        SetupError: the port or the address is not available.
    """

    def __init__(self, show: Callable[[], Shown], host: str, port: int) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._shown: Shown | None = None
        self._fresh_until_s = 0.0
        page, readers = self, readers_of(host)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, content, kind = 403, STRANGE_HOST.encode(), "text/plain; charset=utf-8"
                if readers(self.headers.get("Host", "")):
                    status, content, kind = page.answer(urlsplit(self.path).path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: the terminal is the application's."""

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """Say nothing: a browser that closes its page breaks connections off."""

        try:
            self._server = Server((host, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SetupError(
                f"the live page cannot listen on {host}:{port} ({reason}); choose another port "
                "with --page-port, or -1 for none"
            ) from error
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def answer(self, path: str) -> tuple[int, bytes, str]:
        """Status, content and content type of the answer to a GET."""
        if path == "/data":
            return 200, self._now().data, "application/json"
        if path in _ASSETS:
            read, kind = _ASSETS[path]
            return 200, read().encode(), kind
        return 404, b"There is no such page.\n", "text/plain; charset=utf-8"

    def _now(self) -> Shown:
        with self._lock:
            began_s = time.monotonic()
            if self._shown is None or began_s >= self._fresh_until_s:
                self._shown = self._show()
                took_s = time.monotonic() - began_s
                self._fresh_until_s = began_s + max(FRESH_FOR_S, took_s * _OF_THE_TIME)
            return self._shown

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
