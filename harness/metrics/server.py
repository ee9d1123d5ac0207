"""The page that Prometheus scrapes, and the push to a Pushgateway for runs that are too short."""

from __future__ import annotations

import http.client
import re
import threading
import urllib.error
from collections.abc import Iterable
from wsgiref.simple_server import WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, push_to_gateway, start_http_server

from harness.metrics.exposition import Read, RunState
from harness.model.errors import SetupError
from harness.model.hosts import STRANGE_HOST, readers_of
from harness.model.process import bounded

PUSH_BOUND_S = 5.0
_JOB = "aztables"


class MetricsServer:
    """A running page, made by `start_server`."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def start_server(port: int, addr: str, read: Read) -> MetricsServer:
    """Serve what ``read`` gives at every scrape; port 0 takes a free one.

    On loopback only its own host names are answered: a foreign web page reads no PartitionKeys. A
    `SetupError` says that the port or address is not available.
    """
    try:
        server, thread = start_http_server(port, addr, registry=_registry(read))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(
            f"the metrics page cannot listen on {addr}:{port} ({reason}); "
            "choose another port with --metrics-port"
        ) from error
    page, readers = server.get_app(), readers_of(addr)
    assert page is not None

    def checked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if readers(environ.get("HTTP_HOST", "")):
            return page(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [STRANGE_HOST.encode()]

    server.set_app(checked)
    return MetricsServer(server, thread)


def push(url: str, run_id: str, read: Read, bound_s: float = PUSH_BOUND_S) -> str | None:
    """Push the state of a run to the Pushgateway at ``url``; return why that failed, or None.

    The push replaces the group of ``run_id``, and takes ``bound_s`` seconds at most.
    """
    authority = re.split("[/?#]", url.partition("//")[2] or url)[0]
    user, _, address = authority.rpartition("@")
    if user:
        return f"the metrics were not pushed to {address}: its URL holds a user name or password"
    registry = _registry(read)
    key, late = {"run": run_id}, f"no answer within {bound_s:g} s"
    try:
        # The library's time-out holds for each read, not for the whole push.
        bounded(
            lambda: push_to_gateway(
                url, job=_JOB, registry=registry, grouping_key=key, timeout=bound_s
            ),
            bound_s,
        )
    except urllib.error.HTTPError as error:
        problem = f"it answered {error.code} {error.reason}"
        error.close()
    except TimeoutError:
        problem = late
    except urllib.error.URLError as error:
        problem = late if isinstance(error.reason, TimeoutError) else str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        problem = str(error) or type(error).__name__
    else:
        return None
    return f"the metrics were not pushed to {address}: {problem}"


def _registry(read: Read) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunState(read))
    return registry
