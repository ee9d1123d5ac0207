"""The plan of a run: what the master decides before the run and every process follows.

A plan holds no secret. Each process takes endpoint and credentials from its own environment.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable
from typing import Any, Self

from harness.endpoint.accounts import Accounts, Credentials, accounts_from
from harness.endpoint.admin.tables import new_table_name
from harness.endpoint.endpoint import behind_gateway
from harness.endpoint.http.exchange import Clock
from harness.endpoint.session import SessionOptions
from harness.model.errors import SetupError
from harness.model.target import EndpointKind
from harness.profile.build.scenarios import fingerprint
from harness.profile.build.workload import retry_of
from harness.profile.profile_loader import NamedProfile, parse
from harness.profile.settings.schema import Profile
from harness.workload.budget import Budgets

OPTION = "aztables_run"
"""Key of the plan among Locust's parsed options, which Locust itself sends to the workers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of one run.

    Attributes:
        run_id: UTC time and 8 hex digits.
        tables: Suffixes of the names of all tables; most workloads have one table, suffix ``""``.
        scenario_hash: Hash of the user's scenario file; a worker with another file refuses.
        own_table: True if the run creates the table and deletes it.
        fingerprint: Hash of endpoints, accounts and tenants; a worker with others refuses.
        embedded: True if the endpoint is the embedded Azurite, which needs no credentials from
            the environment.
        throttled: True if the embedded gateway stands before that Azurite.
        traced: True if the workers record their operations for a trace.
    """

    run_id: str
    profile_name: str
    profile: Profile
    table: str
    tables: tuple[str, ...]
    scenario_hash: str
    own_table: bool
    session: str
    fingerprint: str
    embedded: bool
    throttled: bool
    traced: bool = False

    @property
    def table_names(self) -> tuple[str, ...]:
        return tuple(self.table + suffix for suffix in self.tables)

    def to_options(self) -> dict[str, Any]:
        """The plan in types that Locust can serialize."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return content | {"profile": self.profile.model_dump(mode="json", exclude_unset=True)}

    @classmethod
    def from_options(cls, content: dict[str, Any]) -> Self:
        profile = parse(content["profile"], source=content["profile_name"])
        return cls(**{**content, "profile": profile, "tables": tuple(content["tables"])})

    def accounts(
        self, host: str, credentials: Credentials, tell: Callable[[str], None]
    ) -> Accounts:
        """Return the accounts of this worker, with a token for each login.

        ``tell`` is told what happens to the tokens later.

        Raises:
            SetupError: they are not the master's, or there is no token.
        """
        accounts = accounts_from(host, {}) if self.embedded else credentials.accounts(host)
        if self.throttled:
            accounts = Accounts(tuple(map(behind_gateway, accounts)))
        accounts.sign_in(tell)
        if accounts.fingerprint != self.fingerprint:
            used = ", ".join(f"{one.account!r} at {one.host}" for one in accounts)
            signed_with = f" with {accounts.signed_with}" if accounts.signed_with else ""
            raise SetupError(
                f"this worker would use account {used}{signed_with}, and the master uses another "
                "one; give both the same host, credentials and --auth-mode"
            )
        return accounts

    def session_options(
        self, worker: int, accounts: Accounts, budgets: Budgets, clock: Clock
    ) -> tuple[SessionOptions, ...]:
        """The options of a session to each account."""
        profile = self.profile
        # A random source of its own, so that retries do not change the list of operations.
        rng = random.Random(f"{profile.seed}/{worker}/retry")
        return tuple(
            SessionOptions(
                endpoint=endpoint,
                table=self.table,
                run_id=self.run_id,
                retry=retry_of(profile),
                longest_wait_s=profile.retry.maximum_s,
                budget=budget,
                clock=clock,
                rng=rng,
                connections=profile.session.connections,
                connect_timeout_s=profile.session.connect_timeout_s,
                read_timeout_s=profile.session.read_timeout_s,
            )
            for endpoint, budget in zip(accounts, budgets.each, strict=True)
        )


def new_plan(
    named: NamedProfile,
    now: dt.datetime,
    *,
    session: str | None,
    table: str | None,
    tables: tuple[str, ...],
    accounts: Accounts,
    embedded: bool,
    traced: bool = False,
) -> RunPlan:
    """Make the plan of a run that is prepared at ``now``, UTC.

    Args:
        session: Kind of session that sends; None takes the profile's.
        table: Name of an existing table; None creates a table for the run.
        tables: Suffixes of the names of all tables of the workload.
        traced: Whether the operations are recorded for a trace.

    Raises:
        SetupError: ``table`` names one table but the workload has several, or the scenario file
            cannot be read.
    """
    if table is not None and tables != ("",):
        raise SetupError(
            f"--table names only one table, but profile {named.name} has {len(tables)}: without "
            "--table the run creates its own"
        )
    # Two runs with the same seed must not get the same name.
    system_random = random.SystemRandom()
    return RunPlan(
        run_id=f"{now:%Y%m%dT%H%M%SZ}-{system_random.getrandbits(32):08x}",
        profile_name=named.name,
        profile=named.profile,
        table=new_table_name(now, system_random) if table is None else table,
        tables=tables,
        scenario_hash=fingerprint(named.profile.scenario),
        own_table=table is None,
        session=session or named.profile.session.kind,
        fingerprint=accounts.fingerprint,
        embedded=embedded,
        throttled=accounts.kind is EndpointKind.GATEWAY,
        traced=traced,
    )
