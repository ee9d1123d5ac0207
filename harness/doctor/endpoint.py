"""An endpoint, examined step by step as a run would use it.

After a failed step, the steps that do not depend on it are still tried.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from harness.doctor.checks import CheckResult, Status, failed, judged, not_tried
from harness.doctor.connection import NOT_REACHED, connection_checks
from harness.endpoint.accounts import Accounts, consent_problem
from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.admin.housekeeping import Housekeeping
from harness.endpoint.admin.listing import REQUESTS, RoundTrips, round_trips
from harness.endpoint.admin.permissions import (
    KEY_LENGTHS,
    STORES_NOTHING,
    Tried,
    try_create,
    try_delete,
    try_keys,
    try_operations,
)
from harness.endpoint.admin.probe import MAX_CLOCK_SKEW_S, check, kind_told
from harness.endpoint.admin.stores import leftovers
from harness.endpoint.admin.tables import new_table_name
from harness.endpoint.endpoint import Endpoint, endpoint_from
from harness.model.errors import SetupError
from harness.model.figures import counted, listed, milliseconds, number
from harness.model.hosts import is_loopback
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.request_units import RU, charge_text
from harness.model.services.service import GATEWAY_VIA, PUBLISHED
from harness.model.sessions import SDK
from harness.workload.budget import Budget, BudgetSpent

EXPECTED_TRANSACTIONS = REQUESTS + 13
"""The credential, the round trips, 9 permissions, 2 lengths of keys, and a page of the tables."""
MOST_TRANSACTIONS = 100
_FAR_S = 0.025
"""A median from which the machine is probably not in the account's region."""
_WORKERS_CLOCK_S = 5.0
"""A worker whose clock differs more from its master's is refused."""
_LEFT_AFTER_S = 3600.0
_WITHIN_S = 60.0


class Examination:
    """The examination of one endpoint, which is None where there is no usable credential.

    Args:
        host: The value of ``-H``; its address decides whether requests may be billed.
        embedded: The embedded Azurite, instead of ``host``.
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
        session: str = SDK.name,
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
        _, account = kind_and_account(self._address)
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

    @property
    def remote(self) -> bool:
        return not is_loopback(self._address.hostname or "")

    @property
    def host(self) -> str:
        return self._address.netloc

    def checks(self) -> Iterator[CheckResult]:
        """Each check as soon as it is done."""
        found: set[Status] = set()
        for one in connection_checks(self._address, self._environ):
            found.add(one.status)
            yield one
        yield from self._requests(found <= {Status.OK, Status.WARNING})

    def _requests(self, reached: bool) -> Iterator[CheckResult]:
        endpoint = self.endpoint
        names = ("round trip", "users", "clock", "kind", "permissions", "key length", "leftovers")
        if endpoint is None:
            advice = "see `harness --help` for the variables"
            yield failed("credential", self._no_credential, advice)
            yield from (not_tried(name, "there is no credential") for name in names)
            return
        if not reached or self.consent_missing:
            why = NOT_REACHED if not reached else "requests are billed"
            advice = "" if not reached else f"add --remote-ok {endpoint.confirmed_by}"
            yield not_tried("credential", why, advice)
            yield from (not_tried(name, why) for name in names)
            return
        accepted, endpoint = self._credential(endpoint)
        yield accepted
        try:
            made = round_trips(endpoint, self.budget)
        except SetupError as error:
            yield failed("round trip", str(error))
            yield from (not_tried(name, "requests get no response") for name in names[1:4])
        else:
            yield from self._round_trips(made, endpoint)
        if accepted.status is Status.FAILED:
            yield from (not_tried(name, "the credential was not accepted") for name in names[4:])
        elif (table := endpoint.credential.table) is not None:
            why = f"the SAS is for the table {table} alone, and was found sufficient"
            yield judged("permissions", f"{why}; use --table {table} in a run")
            yield key_length(())
            yield not_tried("leftovers", "a SAS for one table cannot list tables")
        else:
            tried, keys = list[Tried](), list[Tried]()
            yield self._permissions(endpoint, tried, keys)
            yield request_units(tried) if endpoint.kind.charges else key_length(keys)
            yield self._leftovers(endpoint)

    def _credential(self, endpoint: Endpoint) -> tuple[CheckResult, Endpoint]:
        """The check, and the endpoint as what answered: its address alone may not tell."""
        self.budget.take()
        try:
            self.endpoint = endpoint = check(endpoint, environ=self._environ)
        except SetupError as error:
            return failed("credential", str(error)), endpoint
        signer = f"the {endpoint.credential.noun}"
        if endpoint.login is not None:
            signer += f" ({endpoint.login.identity.described})"
        text = f"{signer} for the account {endpoint.account} is accepted"
        return judged("credential", text), endpoint

    def _round_trips(self, made: RoundTrips, endpoint: Endpoint) -> Iterator[CheckResult]:
        p50, p99, count = made.percentile_s(0.5), made.percentile_s(0.99), len(made.latencies_s)
        text = f"{_ms(p50)} ms at the median, {_ms(p99)} ms at p99 of {counted(count, 'request')}"
        if made.throttled:
            text += f"; {made.throttled:,} throttled"
        far = endpoint.remote and p50 >= _FAR_S
        advice = "others load this endpoint, or its limits are low" if made.throttled else ""
        yield judged(
            "round trip",
            text,
            "run the generator in the account's region" if far else advice,
            {
                "p50_ms": round(p50 * 1000, 3),
                "p99_ms": round(p99 * 1000, 3),
                "mean_ms": round(made.mean_s * 1000, 3),
                "requests": count,
                "throttled": made.throttled,
            },
        )
        rates = _RATES_IN_UNITS if endpoint.kind.charges else _RATES
        users = {rate: max(1, math.ceil(rate * made.mean_s)) for rate in rates}
        each = listed([f"{of:,} for {number(rate)}/s" for rate, of in users.items()])
        yield judged(
            "users",
            f"{each}, each waiting {_ms(made.mean_s)} ms for its answer (Little's law)",
            figures={f"for_{rate:.0f}_per_s": of for rate, of in users.items()},
        )
        yield _clock(made.clock_s)
        yield self._kind_of(made, endpoint)

    def _kind_of(self, made: RoundTrips, endpoint: Endpoint) -> CheckResult:
        expected, seen = endpoint.kind, kind_told(made.headers, endpoint)
        figures = {"expected": str(expected), "seen": None if seen is None else str(seen)}
        charges = seen is not None and seen.charges
        if made.headers.get("via") == GATEWAY_VIA and not charges:
            behind = "an unknown server" if seen is None else seen.described
            text = f"a gateway of the harness, which can throttle, in front of {behind}"
            return judged("kind", text, figures={**figures, "gateway": True})
        if seen is None:
            text = f"not told by its answers; by its address {expected.described}"
            return judged("kind", text, figures=figures)
        if seen is not expected:
            advice = "a run is held against the targets of the kind that the address names"
            text = f"its answers are those of {seen.described}, its address that of "
            return judged("kind", f"{text}{expected.described}", advice, figures)
        text = seen.described
        if not seen.emulated:
            sort = made.headers.get("x-ms-account-kind") or "not told by the service"
            text += f"; kind of account: {sort}"
        return judged("kind", text, figures=figures)

    def _permissions(
        self, endpoint: Endpoint, tried: list[Tried], keys: list[Tried]
    ) -> CheckResult:
        """Create a table, send an operation of each kind, and delete the table in any case.

        What was ``tried`` is appended to the list, and to ``keys`` the lengths of keys.
        """
        table = new_table_name(dt.datetime.now(dt.UTC), random.SystemRandom())
        before = self.budget.spent
        do = partial(self._housekeeping.do, within_s=_WITHIN_S)

        def try_all() -> None:
            for one in try_operations(endpoint, table, self._session, self.budget):
                tried.append(one)
            # At Cosmos DB the documents agree: see `harness.model.physical_partitions`.
            if not endpoint.kind.charges and not any(one.refused for one in tried):
                keys.extend(try_keys(endpoint, table, self._session, self.budget))

        try:
            try:
                create = partial(try_create, endpoint, table, self.budget)
                tried.append(do(f"creating the table {table}", create))
                if not tried[0].refused:
                    do(f"trying permissions on {table}", try_all)
            finally:
                # After an interrupted or lost request the table may exist.
                if not tried or not tried[0].refused:
                    delete = partial(try_delete, endpoint, table, self.budget)
                    tried.append(do(f"deleting the table {table}", delete))
        except SetupError as error:
            tried.append(Tried("all", f"{error}; `harness sweep` lists {table} after an hour"))
        spent = self.budget.spent - before - len(keys)
        refused = {one.name: one.refused for one in tried if one.refused}
        granted = [one.name for one in tried if not one.refused]
        figures = {"granted": granted, "refused": refused, "transactions": spent}
        if refused:
            sentences = [f"{one.name}: {one.refused}" for one in tried if one.refused]
            text = "; ".join(dict.fromkeys(sentences))
            advice = "a run needs all of them; with --table NAME it creates and deletes no table"
            if endpoint.behind_gateway and set(refused.values()) == {STORES_NOTHING}:
                return judged("permissions", text, "reads of a run find nothing", figures)
            return failed("permissions", text, advice, figures)
        text = f"{listed(granted)}, each tried on a table of its own "
        text += f"({counted(spent, 'transaction')}, session {self._session})"
        return judged("permissions", text, figures=figures)

    def _leftovers(self, endpoint: Endpoint) -> CheckResult:
        now = dt.datetime.now(dt.UTC)
        try:
            found = self._housekeeping.do(
                f"listing the tables at {endpoint.host}",
                partial(leftovers, endpoint, now, _LEFT_AFTER_S, self.budget),
                within_s=_WITHIN_S,
            )
        except SetupError as error:
            return failed("leftovers", str(error))
        except BudgetSpent:
            why = f"the doctor sends {MOST_TRANSACTIONS:,} billable transactions at most"
            return not_tried("leftovers", why, "`harness sweep` lists them all")
        if not found:
            return judged("leftovers", "no table of an earlier run is older than an hour")
        names = list(found)
        return judged(
            "leftovers",
            f"{counted(len(names), 'table')} of runs that were killed, such as {names[0]}",
            f"`harness sweep -H {urlsplit(endpoint.url).scheme}://{endpoint.host}` lists "
            "them, and deletes those that --delete names",
            {"tables": names},
        )


_RATES = (PUBLISHED.partition, PUBLISHED.account)
_RATES_IN_UNITS = (float(MAX_PARTITION_RU_PER_S),)
"""Reads of 1 KB by their keys, each 1 RU, that one partition serves."""


def _clock(bounds: tuple[float, float] | None) -> CheckResult:
    if bounds is None:
        return judged("clock", "unknown: the responses have no date")
    least, most = bounds
    # The smallest difference that explains all responses.
    off_s = 0.0 if least <= 0 <= most else min(abs(least), abs(most))
    text = f"equal to the service's within {max(abs(least), abs(most)):.1f} s"
    if off_s:
        text = f"{off_s:,.1f} s {'behind' if least > 0 else 'ahead of'} the service's"
    text += "; accepted are 15 min (SharedKey) and 5 s between workers"
    figures = {"least_s": round(least, 3), "most_s": round(most, 3)}
    advice = "synchronize the clock of this machine (NTP)" if off_s > _WORKERS_CLOCK_S else ""
    return (failed if off_s > MAX_CLOCK_SKEW_S else judged)("clock", text, advice, figures)


def _ms(seconds: float) -> str:
    return milliseconds(seconds * 1000)


def key_length(tried: Sequence[Tried]) -> CheckResult:
    """The longest keys among `KEY_LENGTHS` that were taken, and why longer ones were not."""
    if not tried:
        return not_tried("key length", "nothing was inserted")
    taken = [length for length, one in zip(KEY_LENGTHS, tried, strict=False) if not one.refused]
    refused = [one for one in tried if one.refused]
    longest = max(taken, default=0)
    text = f"PartitionKey and RowKey of {longest:,} characters each are taken"
    if not taken:
        text = f"keys of {KEY_LENGTHS[0]:,} characters are refused"
    if refused:
        text += f"; {listed([one.name for one in refused])}: {refused[0].refused}"
    advice = "" if taken else "keep keys shorter, or see what the account's documents say"
    figures = {"taken": longest, "tried": list(KEY_LENGTHS[: len(tried)])}
    return judged("key length", text, advice, figures)


def request_units(tried: Sequence[Tried]) -> CheckResult:
    """What the operations were charged, and the limit that rates are held against."""
    charges = {one.name: one.charge for one in tried if one.charge}
    limit = (
        f"a partition serves {MAX_PARTITION_RU_PER_S:,} RU/s, or its even part of what is "
        "provisioned (endpoint.provisioned_ru_per_s of a profile)"
    )
    if not charges:
        return judged(
            "request units",
            f"the answers do not tell what they were charged; {limit}",
            "a run counts no request units; `harness plan --host-kind cosmos` estimates "
            "them, and the metrics of the account show them",
        )
    each = listed([f"{name} {charge_text(charge)}" for name, charge in charges.items()])
    figures = {name: charge / RU for name, charge in charges.items()}
    return judged("request units", f"of entities of 1 KB: {each}; {limit}", figures=figures)
