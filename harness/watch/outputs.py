"""What a watch shows while it goes on: the live line, pages, metrics, limits of the gateway."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.endpoint.credential import EMULATOR_KEY
from harness.gateway.limits import GatewayLimits
from harness.gateway.process import read_counters
from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.enforced import EnforcedPart, moves_of, partition_limit_of, refusals_of
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import RunRecord
from harness.metrics.exposition import Exposed, LoadState, RunCourse, RunLabels
from harness.model.errors import SetupError
from harness.model.figures import listed
from harness.model.hosts import STRANGE_HOST, readers_of
from harness.model.services import BESIDE
from harness.report.terminal.live import watch_line
from harness.report.web.document import FreshlyShown, Shown, State, live_page
from harness.report.web.tables import ASSETS
from harness.watch.variables import ENDPOINT, Addresses
from harness.watch.watched_run import SESSION, WatchedRun, WatchOptions

LIVE_EVERY_S = 5.0
_COUNTERS_WITHIN_S = 2.0


def announcement(
    options: WatchOptions,
    here: Addresses,
    elsewhere: Addresses,
    proxy: str,
    authority: Path | None,
) -> Iterator[str]:
    """How the gateway is reached, on this machine and from others, in lines.

    ``proxy`` is its URL as a proxy; ``authority`` is as in `note_limits`.
    """
    plan, beside = options.plan, [one for one in BESIDE if one.server in here.beside]
    others = {one: elsewhere.beside[one.server] for one in beside}
    yield f"gateway:    {here.endpoint} -> {plan.host}, {plan.described}"
    for one in beside:
        yield f"{one.partitions + ':':<12}{here.beside[one.server]}"
    if elsewhere != here:
        more = "".join(f", {one.partitions} {url}" for one, url in others.items())
        yield f"elsewhere:  {elsewhere.endpoint}{more}{',' if more else ''} for other machines"
    if options.proxy:
        hosts = listed(["tables", *(one.partitions for one in beside)])
        yield f"proxy:      {proxy} for the hosts of {hosts}"
    if authority is not None:
        yield f"authority:  {authority} (to be trusted by clients)"
    if options.remote:
        limit = "an unlimited number of" if plan.budget is None else f"up to {plan.budget:,}"
        yield f"account:    {options.account} may be billed for {limit} transactions"
    if options.command:
        return
    yield "To watch an application, start it with:"
    if EMULATOR_KEY in elsewhere.connection_string:
        # The emulator's published key is no secret.
        yield f"  export AZURE_STORAGE_CONNECTION_STRING='{elsewhere.connection_string}'"
    yield f"  export {ENDPOINT}={elsewhere.endpoint}"
    yield from (f"  export {one.variable}={url}" for one, url in others.items())
    if EMULATOR_KEY not in elsewhere.connection_string:
        more = "".join(f";{one.field}={url}" for one, url in others.items())
        where = f"TableEndpoint={elsewhere.endpoint}{more}"
        yield f"  and in its connection string: {where} (key or SAS as before)"
    yield "Ctrl-C ends the watch."


class LiveLine:
    """The line about the last few seconds of a watch."""

    def __init__(self, run: WatchedRun) -> None:
        self._run = run
        self._latency: LatencyHistogram | None = None

    def text(self) -> str:
        """The line of now; its latency is that since the last line."""
        run, now_s = self._run, self._run.clock()
        now = int(now_s)
        with run.lock:
            # Reports come every second, so the counts of the last second are incomplete.
            snapshot = run.ledger.snapshot(
                start=now - 1 - int(LIVE_EVERY_S), end=now - 1, latencies=False
            )
            overall = run.ledger.overall("service")
            in_flight, clients = run.in_flight, run.tally.client_parts
        latest = overall.since(self._latency).view()
        self._latency = overall
        limit = partition_limit_of(run.enforced)
        snapshot = run.shown(snapshot)
        kind = run.kind_of(snapshot)
        return watch_line(
            snapshot,
            elapsed_s=now_s - run.started_s,
            held=snapshot.held(kind.targets, run.plan.throughput, limit),
            p99_ms=None if latest is None else latest.p99,
            in_flight=in_flight,
            senders=WatchedPart(clients=clients).senders,
            unit=kind.unit,
        )


def shown(run: WatchedRun, record: RunRecord | None, out: str) -> Shown:
    """What the live page shows: the final ``record``, or the counts so far."""
    now_s = run.clock()
    requests = run.tally.requests
    state = State.RUNNING if record is None else State.ENDED
    sentence = f"{run.plan.name}: {requests:,} requests in {now_s - run.started_s:,.0f} s."
    if not requests:
        state, sentence = State.PREPARING, f"{run.plan.name}: no request yet."
    elif record is None:
        record = run.record(now_s, over=False)
    return Shown(
        state=state,
        sentence=sentence,
        out=Path(out).absolute(),
        run_id=run.plan.run_id,
        record=record,
    )


def exposed(run: WatchedRun, record: RunRecord | None) -> Exposed:
    """What a scrape of the metrics page shows; with the verdict of the final ``record``."""
    plan = run.plan
    with run.lock:
        snapshot = run.shown(run.ledger.snapshot(start=0, end=0, latencies=False))
        cpu = {
            name: sample.cpu_percent
            for log in (run.application, run.gateway)
            for name, sample in log.latest().items()
        }
    return Exposed(
        run_id=plan.run_id,
        snapshot=snapshot,
        counted_until_s=int(run.clock()) - 1,
        course=RunCourse(
            phases=("measuring", "done"),
            phase="measuring" if record is None else "done",
            started_s=run.started_s,
            verdict=None if record is None else record.verdict,
        ),
        load=LoadState(
            in_flight=run.in_flight,
            billable_transactions=run.tally.passed,
            billable_limit=plan.budget,
        ),
        targets=run.kind_of(snapshot).targets,
        throughput=plan.throughput,
        users=0,
        workers=plan.processes,
        cpu_percent=cpu,
        info=RunLabels(
            profile=plan.name,
            endpoint=str(plan.kind),
            described=plan.described,
            host=plan.host,
            session=SESSION,
        ),
    )


def note_limits(
    run: WatchedRun, limits: GatewayLimits, gateway: str, authority: Path | None
) -> None:
    """Note the limits of the gateway, and what its page says of moves and refusals.

    Without an answer the earlier page stays.

    Args:
        gateway: Its URL.
        authority: File of the authority of its certificate; None without TLS.
    """
    if not run.plan.kind.models_targets:
        return
    try:
        page = json.loads(read_counters(gateway, authority, within_s=_COUNTERS_WITHIN_S))
    except SetupError:
        if run.enforced is not None:
            return
        page = {"moves": (), "counts": ()}
    aliases = run.aliases

    def name_of(table: str, key: str) -> str:
        name = f"{table}/{key}"
        return name if aliases is None else aliases(name)

    run.enforced = EnforcedPart(
        **limits.rates(run.plan.kind),
        moves=moves_of(page["moves"], run.started_s, name_of),
        refusals=dict(refusals_of(page["counts"])),
    )


_FILES: dict[str, tuple[Callable[[], str], str]] = {
    "": (partial(live_page, locust=False), "text/html"),
    **ASSETS,
}


class LivePage:
    """A running page of what ``show`` gives; ``port`` 0 takes a free one.

    Raises:
        SetupError: the port or the address is not available.
    """

    def __init__(self, show: Callable[[], Shown], host: str, port: int) -> None:
        self._content = FreshlyShown(show)
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
        name = path.removeprefix("/")
        if name == "data":
            return 200, self._content.now().data, "application/json"
        if name in _FILES:
            read, kind = _FILES[name]
            return 200, read().encode(), f"{kind}; charset=utf-8"
        return 404, b"There is no such page.\n", "text/plain; charset=utf-8"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
