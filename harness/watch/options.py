"""The options of a watch, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from harness.measure.counts.redaction import Aliases
from harness.watch.watched_run import WatchPlan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The options of a watch.

    Attributes:
        plan: What the record says of it.
        upstream: Scheme, host and port of the endpoint; None starts an Azurite.
        account: The account that the host of the upstream names; may be empty.
        remote: Whether the upstream is not on this machine.
        command: Program and arguments; empty waits for Ctrl-C.
        listen: HOST and port of the gateway.
        tls: Whether to listen with TLS, with an authority of its own.
        proxy: Whether the gateway is the command's proxy, which intercepts table endpoints.
        env: More variables that get the connection string.
        keep_env: Variables that reach the command as they are.
        wait_for_children: Whether the command ends when all that it started has ended.
        duration_s: When the watch ends at the latest; None is never.
        out: Folder of all runs.
        page: Host and port of the live page; port 0 serves none.
        metrics: Host and port of the metrics page; port 0 serves none.
        push: URL of a Pushgateway; None pushes nothing.
        aliases: Replace the keys in all outputs; None shows them.
        trace: The file of the trace; None writes none.
    """

    plan: WatchPlan
    upstream: str | None
    account: str
    remote: bool
    command: Sequence[str]
    listen: tuple[str, int]
    limits: Path
    tls: bool
    proxy: bool
    env: Sequence[str]
    keep_env: Sequence[str]
    wait_for_children: bool
    duration_s: float | None
    out: str
    page: tuple[str, int]
    metrics: tuple[str, int]
    push: str | None
    aliases: Aliases | None
    trace: Path | None = None
