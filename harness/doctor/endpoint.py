"""An endpoint, examined step by step as a run would use it.

A step that failed does not end the examination: what does not need it is tried all the same.
"""

from __future__ import annotations

import datetime as dt
import http.client
import ipaddress
import math
import os
import random
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import urlsplit

from harness.doctor.checks import CheckResult, Status, not_tried
from harness.endpoint.accounts import Accounts, consent_problem
from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.admin.housekeeping import Housekeeping
from harness.endpoint.admin.permissions import Tried, try_create, try_delete, try_operations
from harness.endpoint.admin.probe import MAX_CLOCK_SKEW_S, check
from harness.endpoint.admin.reachability import (
    Connected,
    Unreachable,
    addresses_of,
    connect,
    shake_hands,
)
from harness.endpoint.admin.round_trips import REQUESTS, RoundTrips, round_trips
from harness.endpoint.admin.tables import leftovers, new_table_name
from harness.endpoint.credential import Sas
from harness.endpoint.endpoint import Endpoint, endpoint_from
from harness.endpoint.http.tls import trust_context
from harness.gateway.pages import TRUTH_PATH
from harness.model.figures import counted, listed, milliseconds, number
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.target import PUBLISHED, EndpointKind
from harness.workload.budget import Budget

EXPECTED_TRANSACTIONS = REQUESTS + 11
"""The credential, the round trips, 9 permissions, and a page of the list of tables."""
MOST_TRANSACTIONS = 100
_MOST_ADDRESSES = 4
_EXPIRES_WITHIN_DAYS = 14
_FAR_S = 0.025
"""A median from which the machine is probably not in the account's region."""
_WORKERS_CLOCK_S = 5.0
"""A worker whose clock differs more from its master's is refused."""
_LEFT_AFTER_S = 3600.0
_WITHIN_S = 60.0
_HEAD_BYTES = 4096
_NOT_REACHED = "the endpoint is not reached"
_PROXIES = ("HTTPS_PROXY", "https_proxy")


class Examination:
    """The examination of one endpoint.

    Attributes:
        budget: The billable transactions so far.
        endpoint: None where there is no usable credential.

    Args:
        host: The value of ``-H``; its address decides whether requests may be billed.
        embedded: The embedded Azurite, instead of ``host``.
        session: Kind of session that tries the permissions.
        alone: False if other endpoints are examined too, whose credentials must not be mixed up.
        say: Takes a line about a step that takes long.

    Raises:
        SetupError: ``host`` is not the address of a table service, or ``remote_ok`` names another
            account.
    """

    def __init__(
        self,
        host: str,
        *,
        embedded: Endpoint | None = None,
        remote_ok: str | None = None,
        session: str = "sdk",
        alone: bool = True,
        environ: Mapping[str, str] = os.environ,
        say: Callable[[str], None] = print,
    ) -> None:
        self.budget = Budget(MOST_TRANSACTIONS)
        self.endpoint = embedded
        self._session = session
        self._environ = environ
        self._housekeeping = Housekeeping(say)
        self._no_credential = ""
        self._address = address_of(host)
        self._kind, account = kind_and_account(self._address)
        self._hostname = self._address.hostname or ""
        if embedded is None:
            try:
                self.endpoint = endpoint_from(host, environ, alone=alone)
            except SetupError as error:
                self._no_credential = str(error)
        self.account = account if self.endpoint is None else self.endpoint.account
        problem = None
        if self.endpoint is not None:
            problem = consent_problem(Accounts((self.endpoint,)), remote_ok)
        if problem is not None and remote_ok:
            raise SetupError(problem)
        self.consent_missing = problem is not None
        self._proxied = any(environ.get(name) for name in _PROXIES)

    @property
    def remote(self) -> bool:
        return not is_loopback(self._hostname)

    @property
    def host(self) -> str:
        return self._address.netloc

    def checks(self) -> Iterator[CheckResult]:
        """Each check as soon as it is done."""
        connected: Connected | None = None
        port = self._address.port or (443 if self._address.scheme == "https" else 80)
        try:
            addresses = [self._hostname]
            if not _is_address(self._hostname):
                addresses = addresses_of(self._hostname, port)
        except Unreachable as error:
            yield _failed("name", error)
            yield not_tried("connection", _NOT_REACHED)
        else:
            yield self._name(addresses)
            for one in self._connection(addresses, port):
                connected = one if isinstance(one, Connected) else connected
                if isinstance(one, CheckResult):
                    yield one
        reached = connected is not None
        if self._address.scheme == "https":
            handshake = self._tls(connected, port)
            yield handshake
            reached = reached and handshake.status is not Status.FAILED
        yield from self._requests(reached)

    def _name(self, addresses: list[str]) -> CheckResult:
        if addresses == [self._hostname]:
            return CheckResult(name="name", text=f"{self._hostname} is an address")
        shown = listed(addresses[:_MOST_ADDRESSES])
        more = len(addresses) - _MOST_ADDRESSES
        text = f"{self._hostname} is {shown}{f' and {more} more' if more > 0 else ''}"
        private = self.remote and all(is_loopback(address) for address in addresses)
        return CheckResult(
            name="name",
            status=Status.WARNING if private else Status.OK,
            text=text,
            advice="the name leads to this machine: check the hosts file" if private else "",
            figures={"addresses": addresses},
        )

    def _connection(self, addresses: list[str], port: int) -> Iterator[CheckResult | Connected]:
        failures: list[Unreachable] = []
        for address in addresses[:_MOST_ADDRESSES]:
            try:
                connected = connect(address, port)
            except Unreachable as error:
                failures.append(error)
                continue
            yield connected
            took = f"{_ms(connected.seconds)} ms to {address} port {port}"
            figures = {"address": address, "ms": round(connected.seconds * 1000, 3)}
            if not failures:
                yield CheckResult(name="connection", text=took, figures=figures)
                return
            yield CheckResult(
                name="connection",
                status=Status.WARNING,
                text=f"{took}, but {'; '.join(map(str, failures))}",
                advice="every new connection of a run tries that address first and waits: "
                f"{failures[0].advice}",
                figures=figures,
            )
            return
        if failures:
            advice = failures[0].advice
            if self._proxied:
                advice += ". A proxy is named in the environment, which the harness does not use"
            yield CheckResult(
                name="connection",
                status=Status.FAILED,
                text="; ".join(map(str, failures)),
                advice=advice,
            )

    def _tls(self, connected: Connected | None, port: int) -> CheckResult:
        if connected is None:
            return not_tried("TLS", _NOT_REACHED)
        try:
            context = trust_context(self._environ)
            made = shake_hands(connected.address, port, self._hostname, context)
        except Unreachable as error:
            return _failed("TLS", error)
        except SetupError as error:
            return CheckResult(name="TLS", status=Status.FAILED, text=str(error))
        days = (made.expires - dt.datetime.now(dt.UTC)).total_seconds() / 86400
        resumed = "sessions are not resumed"
        if made.resumed_s is not None:
            resumed = f"{_ms(made.resumed_s)} ms with a resumed session"
        soon = days < _EXPIRES_WITHIN_DAYS
        return CheckResult(
            name="TLS",
            status=Status.WARNING if soon else Status.OK,
            text=f"{made.version}, {made.cipher}; certificate of {made.subject}, issued by "
            f"{made.issuer}, valid for {days:,.0f} days; {_ms(made.seconds)} ms, {resumed}",
            advice="renew the certificate soon" if soon else "",
            figures={
                "version": made.version,
                "cipher": made.cipher,
                "subject": made.subject,
                "issuer": made.issuer,
                "expires": made.expires.isoformat(),
                "ms": round(made.seconds * 1000, 3),
                "resumed_ms": None if made.resumed_s is None else round(made.resumed_s * 1000, 3),
            },
        )

    def _requests(self, reached: bool) -> Iterator[CheckResult]:
        """The checks that send requests."""
        endpoint = self.endpoint
        names = ("round trip", "users", "clock", "kind", "permissions", "leftovers")
        if endpoint is None:
            yield CheckResult(
                name="credential",
                status=Status.FAILED,
                text=self._no_credential,
                advice="see `harness --help` for the variables",
            )
            yield from (not_tried(name, "there is no credential") for name in names)
            return
        if not reached or self.consent_missing:
            why = _NOT_REACHED if not reached else "requests are billed"
            advice = "" if not reached else f"add --remote-ok {endpoint.account}"
            yield not_tried("credential", why, advice)
            yield from (not_tried(name, why) for name in names)
            return
        accepted = self._credential(endpoint)
        yield accepted
        try:
            made = round_trips(endpoint, self.budget)
        except SetupError as error:
            yield CheckResult(name="round trip", status=Status.FAILED, text=str(error))
            yield from (not_tried(name, "requests get no response") for name in names[1:4])
        else:
            yield from self._round_trips(made, endpoint)
        if accepted.status is Status.FAILED:
            yield from (not_tried(name, "the credential was not accepted") for name in names[4:])
        elif isinstance(endpoint.credential, Sas) and endpoint.credential.table is not None:
            table = endpoint.credential.table
            why = f"the SAS is for the table {table} alone, and was found sufficient"
            yield CheckResult(name="permissions", text=f"{why}; use --table {table} in a run")
            yield not_tried("leftovers", "a SAS for one table cannot list tables")
        else:
            yield self._permissions(endpoint)
            yield self._leftovers(endpoint)

    def _credential(self, endpoint: Endpoint) -> CheckResult:
        self.budget.take()
        try:
            check(endpoint, environ=self._environ)
        except SetupError as error:
            return CheckResult(name="credential", status=Status.FAILED, text=str(error))
        signer = f"the {endpoint.credential.noun}"
        if endpoint.login is not None:
            signer += f" ({endpoint.login.identity.described})"
        return CheckResult(
            name="credential", text=f"{signer} for the account {endpoint.account} is accepted"
        )

    def _round_trips(self, made: RoundTrips, endpoint: Endpoint) -> Iterator[CheckResult]:
        p50, p99, count = made.percentile_s(0.5), made.percentile_s(0.99), len(made.latencies_s)
        text = f"{_ms(p50)} ms at the median, {_ms(p99)} ms at p99 of {counted(count, 'request')}"
        if made.throttled:
            text += f"; {made.throttled:,} throttled"
        far = endpoint.remote and p50 >= _FAR_S
        yield CheckResult(
            name="round trip",
            status=Status.WARNING if far or made.throttled else Status.OK,
            text=text,
            advice="run the generator in the account's region"
            if far
            else "others load this endpoint, or its limits are low"
            if made.throttled
            else "",
            figures={
                "p50_ms": round(p50 * 1000, 3),
                "p99_ms": round(p99 * 1000, 3),
                "mean_ms": round(made.mean_s * 1000, 3),
                "requests": count,
                "throttled": made.throttled,
            },
        )
        users = {rate: max(1, math.ceil(rate * made.mean_s)) for rate in _RATES}
        each = listed([f"{of:,} for {number(rate)}/s" for rate, of in users.items()])
        yield CheckResult(
            name="users",
            text=f"{each}, each waiting {_ms(made.mean_s)} ms for its answer (Little's law)",
            figures={f"for_{rate:.0f}_per_s": of for rate, of in users.items()},
        )
        yield _clock(made.clock_s)
        yield self._kind_of(made, endpoint)

    def _kind_of(self, made: RoundTrips, endpoint: Endpoint) -> CheckResult:
        expected, seen = endpoint.kind, made.kind
        sort = made.headers.get("x-ms-account-kind") or "not told by the service"
        figures = {"expected": str(expected), "seen": None if seen is None else str(seen)}
        if not self.remote and self._gateway():
            return CheckResult(
                name="kind",
                text="a gateway of the harness, which can throttle, in front of "
                f"{'an unknown server' if seen is None else seen.described}",
                figures={**figures, "gateway": True},
            )
        if seen is None:
            return CheckResult(
                name="kind",
                text=f"not told by its answers; by its address {expected.described}",
                figures=figures,
            )
        if seen is not expected and expected is not EndpointKind.GATEWAY:
            return CheckResult(
                name="kind",
                status=Status.WARNING,
                text=f"its answers are those of {seen.described}, its address that of "
                f"{expected.described}",
                advice="a run is held against the targets of the kind that the address names",
                figures=figures,
            )
        text = seen.described
        if not seen.emulated:
            text += f"; kind of account: {sort}"
        return CheckResult(name="kind", text=text, figures=figures)

    def _gateway(self) -> bool:
        """Whether a gateway of the harness answers on this machine."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"{self._address.scheme}://{self._address.netloc}{TRUTH_PATH}"
        try:
            with opener.open(url, timeout=2.0) as response:
                head: bytes = response.read(_HEAD_BYTES)
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return b"behind a model of the published limits" in head

    def _permissions(self, endpoint: Endpoint) -> CheckResult:
        """Create a table, send an operation of each kind, and delete the table in any case."""
        table = new_table_name(dt.datetime.now(dt.UTC), random.SystemRandom())
        before = self.budget.spent
        tried: list[Tried] = []
        do = partial(self._housekeeping.do, within_s=_WITHIN_S)

        def try_all() -> None:
            for one in try_operations(endpoint, table, self._session, self.budget):
                tried.append(one)

        try:
            try:
                tried.append(
                    do(
                        f"creating the table {table}",
                        partial(try_create, endpoint, table, self.budget),
                    )
                )
                if not tried[0].refused:
                    do(f"trying permissions on {table}", try_all)
            finally:
                # After an interrupted or lost request the table may exist.
                if not tried or not tried[0].refused:
                    tried.append(
                        do(
                            f"deleting the table {table}",
                            partial(try_delete, endpoint, table, self.budget),
                        )
                    )
        except SetupError as error:
            tried.append(Tried("all", f"{error}; `harness sweep` lists {table} after an hour"))
        spent = self.budget.spent - before
        refused = [one for one in tried if one.refused]
        figures = {
            "granted": [one.name for one in tried if not one.refused],
            "refused": {one.name: one.refused for one in refused},
            "transactions": spent,
        }
        if refused:
            sentences = [f"{one.name}: {one.refused}" for one in refused]
            return CheckResult(
                name="permissions",
                status=Status.FAILED,
                text="; ".join(dict.fromkeys(sentences)),
                advice="a run needs all of them; with --table NAME it creates and deletes no table",
                figures=figures,
            )
        names = listed([one.name for one in tried])
        return CheckResult(
            name="permissions",
            text=f"{names}, each tried on a table of its own "
            f"({counted(spent, 'transaction')}, session {self._session})",
            figures=figures,
        )

    def _leftovers(self, endpoint: Endpoint) -> CheckResult:
        now = dt.datetime.now(dt.UTC)
        try:
            found = self._housekeeping.do(
                f"listing the tables at {endpoint.host}",
                partial(leftovers, endpoint, now, _LEFT_AFTER_S, self.budget),
                within_s=_WITHIN_S,
            )
        except SetupError as error:
            return CheckResult(name="leftovers", status=Status.FAILED, text=str(error))
        if not found:
            return CheckResult(
                name="leftovers", text="no table of an earlier run is older than an hour"
            )
        names = list(found)
        return CheckResult(
            name="leftovers",
            status=Status.WARNING,
            text=f"{counted(len(names), 'table')} of runs that were killed, such as {names[0]}",
            advice=f"`harness sweep -H {urlsplit(endpoint.url).scheme}://{endpoint.host}` lists "
            "them, and deletes those that --delete names",
            figures={"tables": names},
        )


_RATES = (PUBLISHED.partition, PUBLISHED.account)


def _clock(bounds: tuple[float, float] | None) -> CheckResult:
    if bounds is None:
        return CheckResult(name="clock", text="unknown: the responses have no date")
    least, most = bounds
    # The smallest difference that explains all responses.
    off_s = 0.0 if least <= 0 <= most else min(abs(least), abs(most))
    text = f"equal to the service's within {max(abs(least), abs(most)):.1f} s"
    if off_s:
        text = f"{off_s:,.1f} s {'behind' if least > 0 else 'ahead of'} the service's"
    text += "; accepted are 15 min (SharedKey) and 5 s between workers"
    figures = {"least_s": round(least, 3), "most_s": round(most, 3)}
    if off_s <= _WORKERS_CLOCK_S:
        return CheckResult(name="clock", text=text, figures=figures)
    return CheckResult(
        name="clock",
        status=Status.FAILED if off_s > MAX_CLOCK_SKEW_S else Status.WARNING,
        text=text,
        advice="synchronize the clock of this machine (NTP)",
        figures=figures,
    )


def _failed(name: str, error: Unreachable) -> CheckResult:
    return CheckResult(name=name, status=Status.FAILED, text=str(error), advice=error.advice)


def _is_address(hostname: str) -> bool:
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True


def _ms(seconds: float) -> str:
    return milliseconds(seconds * 1000)
