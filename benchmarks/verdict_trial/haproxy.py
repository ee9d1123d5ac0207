"""HAProxy as a throttle: so many requests/s of each PartitionKey, or of all together."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.locust_process import wait_until
from tests.support.ports import free_port

MESSAGES = {
    "partition": "The server is busy.",
    "account": "Operations per second is over the account limit.",
}
# A key stands between the first two quotation marks of a path. A transaction has none there: it
# passes, as those of loading do.
CONFIGURATION = """\
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend tables
  bind 127.0.0.1:{port}
  http-request set-var(txn.key) path,url_dec,field(2,\\\\\\')
  stick-table type string len 64 size 1k expire 60s store gpc0,gpc0_rate(1s)
  http-request track-sc0 {tracked} if {{ var(txn.key) -m found }} {{ var(txn.key) -m {which} }}
  http-request return status 503 content-type application/json hdr x-ms-error-code ServerBusy \
string '{body}' if {{ sc0_gpc0_rate ge {per_s} }}
  http-request sc-inc-gpc0(0) if {{ sc0_tracked }}
  default_backend service
backend service
  server service 127.0.0.1:{upstream}
"""


class NoHaproxy(Exception):
    """It is not installed."""


@contextlib.contextmanager
def throttled_by_haproxy(
    folder: Path, upstream: int, per_s: int, *, key: str = "", each: str = "partition"
) -> Iterator[str]:
    """The URL of a throttle in front of ``upstream``, until the context is left.

    Args:
        key: The only PartitionKey that is limited; empty is all.
        each: What has the limit: each ``partition``, or the ``account``.
    """
    command = shutil.which(
        "haproxy", path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin"
    )
    if command is None:
        raise NoHaproxy("no haproxy: run make test-deps")
    error = {"code": "ServerBusy", "message": {"lang": "en-US", "value": MESSAGES[each]}}
    port, file = free_port(), folder / "haproxy.cfg"
    text = CONFIGURATION.format(
        port=port,
        upstream=upstream,
        per_s=per_s,
        tracked="var(txn.key)" if each == "partition" else "str(account)",
        which=f"str {key}" if key else "found",
        body=json.dumps({"odata.error": error}),
    )
    file.write_text(text, encoding="utf-8")
    said = folder / "haproxy.txt"
    with (
        said.open("wb") as out,
        subprocess.Popen([command, "-db", "-f", str(file)], stderr=out) as process,
    ):
        try:
            wait_until(
                lambda: _listens(port) or process.poll() is not None, "HAProxy listens", 10.0
            )
            if process.poll() is not None:
                raise RuntimeError(said.read_text(encoding="utf-8"))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
