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
from harness.model.files import with_tuples
from harness.model.process import ChildProcess, bounded
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput

_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_COUNTERS_WITHIN_S = 5.0
_MOST_OUTPUT_BYTES = 64 * 1024
_MOST_PAGE_BYTES = 8 * 1024 * 1024
"""A page with a row for each of 200 partitions and result has less than 2 MB."""
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


def gateway_at(url: str, trusted: ssl.SSLContext | None = None) -> FoundGateway | None:
    """The gateway that listens at ``url``, if one does and tells its limits within 2 s.

    ``trusted`` knows the authorities of its certificate; None are the usual ones.
    """
    try:
        page = json.loads(_page(url, trusted, _FOUND_WITHIN_S))
        limits = GatewayLimits.model_validate(with_tuples(page["limits"]))
        upstream = page["upstream"]
        if not isinstance(upstream, str):
            return None
        check_upstream(upstream)
    except (SetupError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return FoundGateway(url, limits, upstream)


def read_counters(
    url: str, authority: Path | None = None, *, within_s: float = _COUNTERS_WITHIN_S
) -> bytes:
    """The page of counters of the gateway at ``url``, in JSON.

    ``authority`` is the file of the authority that issued its certificate. A `SetupError` says that
    no page came within ``within_s``, or one of more than 8 MB. A redirect is no page.
    """
    context = None if authority is None else ssl.create_default_context(cafile=str(authority))
    return _page(url, context, within_s)


def _page(url: str, context: ssl.SSLContext | None, within_s: float) -> bytes:
    try:
        content = bounded(partial(_read_page, url, context, within_s), within_s)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        why = str(error) or f"no whole page within {within_s:g} s"
        raise SetupError(f"the gateway at {url} does not respond: {why}") from error
    if len(content) > _MOST_PAGE_BYTES:
        raise SetupError(f"the page of the gateway at {url} is too large")
    return content


def _read_page(url: str, context: ssl.SSLContext | None, within_s: float) -> bytes:
    # Neither a proxy of the environment nor a redirect leads to another host.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    with opener.open(url + COUNTERS_PATH, timeout=within_s) as response:
        content: bytes = response.read(_MOST_PAGE_BYTES + 1)
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
