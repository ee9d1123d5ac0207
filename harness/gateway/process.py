"""The gateway as a child process. It ends when its standard input closes."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import IO

from harness.gateway.addresses import COUNTERS_PATH, check_upstream
from harness.gateway.limits import GatewayLimits, load_limits
from harness.model.errors import SetupError
from harness.model.process import ChildProcess, bounded
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput

_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_COUNTERS_WITHIN_S = 5.0
_MOST_OUTPUT_BYTES = 64 * 1024
_MOST_PAGE_BYTES = 64 * 1024 * 1024
_FOUND_WITHIN_S = 2.0


class GatewayProcess(ChildProcess):
    """A running gateway; see `start_gateway`.

    Attributes:
        url: Where it listens: scheme, host and port; empty before it listens.
        limits: What it enforces.
    """

    url = ""
    limits: GatewayLimits

    def counters(self) -> bytes:
        """See `read_counters`."""
        return read_counters(self.url)


@dataclasses.dataclass(frozen=True, slots=True)
class FoundGateway:
    """A gateway that somebody else started, ``before`` an endpoint; see `gateway_at`."""

    url: str
    limits: GatewayLimits
    before: str

    def counters(self) -> bytes:
        """See `read_counters`."""
        return read_counters(self.url)


def gateway_at(url: str) -> FoundGateway | None:
    """The gateway that listens at ``url``, if one does and tells its limits within 2 s."""
    try:
        content = bounded(partial(read_counters, url, within_s=_FOUND_WITHIN_S), _FOUND_WITHIN_S)
        page = json.loads(content)
        limits = GatewayLimits.model_validate_json(json.dumps(page["limits"]))
        check_upstream(page["upstream"])
        return FoundGateway(url, limits, page["upstream"])
    except (SetupError, TimeoutError, ValueError, LookupError, TypeError, RecursionError):
        return None


def read_counters(
    url: str, authority: Path | None = None, *, within_s: float = _COUNTERS_WITHIN_S
) -> bytes:
    """The page of counters of the gateway at ``url``, in JSON; a `SetupError` if it is not there.

    ``authority`` is the file of the authority that issued its certificate.
    """
    # A proxy named by the environment is not used for a host on this machine.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if authority is not None:
        context = ssl.create_default_context(cafile=str(authority))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        opener = urllib.request.build_opener(*handlers)
        with opener.open(url + COUNTERS_PATH, timeout=within_s) as response:
            content: bytes = response.read(_MOST_PAGE_BYTES)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise SetupError(f"the gateway at {url} does not respond: {error}") from error
    return content


def start_gateway(
    *,
    upstream: str,
    limits: Path,
    listen: str = "127.0.0.1:0",
    throughput: Throughput = UNKNOWN_THROUGHPUT,
) -> GatewayProcess:
    """Start a gateway, and wait until it listens; a `SetupError` if it did not within 20 s.

    Args:
        upstream: Scheme, host and port of the endpoint behind it, or ``none``.
        listen: Address to listen on; port 0 takes a free one.
        throughput: What is provisioned at a stand-in for Cosmos DB; unknown leaves it to the file.
    """
    loaded = load_limits(limits)
    command = [sys.executable, "-m", "harness.gateway", upstream, listen, str(limits.absolute())]
    command.append(json.dumps(dataclasses.asdict(throughput)))
    environ = {"PYTHONPATH": str(_PACKAGES)}
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = GatewayProcess(command, stdout=stdout, stderr=stderr, environ=environ)
        process.limits = loaded.provisioned(throughput)
        try:
            process.url = _announced_url(process, stdout)
        except BaseException:
            process.stop()
            raise
        if process.url:
            return process
        process.stop()
        errors = _content(stderr)
    if process.exit_code == 2 and errors:
        raise SetupError(errors)
    raise SetupError(
        f"the gateway did not start within {_READY_WITHIN_S:g} s; its last lines:\n{errors}"
    )


def _announced_url(process: GatewayProcess, stdout: IO[bytes]) -> str:
    """The URL that the gateway prints; empty where it ended or took too long."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.running and time.monotonic() < deadline:
        text = _content(stdout)
        if text.endswith("\n"):
            return text.strip()
        time.sleep(0.02)
    return ""


def _content(file: IO[bytes]) -> str:
    # The child writes at the offset that both share: only pread does not move it. Without pread
    # (Windows) reading to the end leaves the offset where the child goes on.
    if hasattr(os, "pread"):
        content = os.pread(file.fileno(), _MOST_OUTPUT_BYTES, 0)
    else:
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        content = os.read(file.fileno(), _MOST_OUTPUT_BYTES)
    return content.decode("utf-8", "replace")
