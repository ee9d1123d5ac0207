"""The plan of a run: what the master decides before the run and every process follows.

A plan holds no secret. Each process takes endpoint and credentials from its own environment.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import random
from collections.abc import Callable
from typing import Any, Self

from harness.endpoint.accounts import Accounts, Credentials, accounts_from
from harness.endpoint.admin.tables import new_table_name
from harness.endpoint.endpoint import as_kind
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions import require_sendable
from harness.model.errors import SetupError
from harness.model.partition import spread_problem
from harness.model.process import Clock
from harness.model.services import service_named, service_of_session
from harness.model.services.service import Service
from harness.profile.build.scenarios import fingerprint
from harness.profile.build.workload import retry_of, settings_problem
from harness.profile.checks.observed import Observed
from harness.profile.profile_loader import NamedProfile, parse
from harness.profile.settings.schema import Profile
from harness.workload.budget import Budgets

REPLACED_BY_CLASS = frozenset(("question", "actions", "mix", "query", "transaction"))
"""Settings of a profile that a user class of one's own does not follow."""
_LOADED = frozenset(("scenario", "keys", "entity", "loading"))
"""Further ones, unless the class has the profile's entities loaded."""
OPTION = "aztables_run"
"""Key of the plan among Locust's parsed options, which Locust itself sends to the workers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of one run.

    Attributes:
        run_id: UTC time and 8 hex digits.
        tables: Suffixes of the names of all tables; most workloads have one table, suffix ``""``.
        files_hash: Hash of the user's scenario and values; a worker with other files refuses.
        own_table: True if the run creates the table and deletes it.
        fingerprint: Hash of endpoints, accounts and tenants; a worker with others refuses.
        embedded: True if the endpoint is the embedded Azurite, which needs no credentials from
            the environment.
        kind: The kind of the endpoints, which the address of one on this machine does not tell.
        traced_properties: Those whose values the workers record with their operations for a trace;
            None without a trace.
        own_class: The user class that sends, if it is one of the user's own; else empty.
        loads: True if the entities of the profile are loaded before the run.
    """

    run_id: str
    profile_name: str
    profile: Profile
    table: str
    tables: tuple[str, ...] = ("",)
    files_hash: str = ""
    own_table: bool
    session: str
    fingerprint: str
    embedded: bool
    kind: Service
    traced_properties: tuple[str, ...] | None = None
    own_class: str = ""
    loads: bool = True

    @property
    def name(self) -> str:
        """What sends the load: the profile, or the user's own class."""
        return self.own_class or self.profile_name

    def recorded_settings(self) -> dict[str, Any]:
        """The settings for the record of the run, without those that an own class replaces."""
        # The record says at another place what the trace of a replay holds.
        settings = self.profile.model_dump(mode="json", exclude={"replay": {"found"}})
        if self.profile.load.max_entities_per_s == math.inf:
            # JSON has no infinity, and an account without a cap in its settings has the usual one.
            settings["load"]["uncapped"] = True
        if not self.own_class:
            return {"name": self.name, **settings}
        replaced = REPLACED_BY_CLASS if self.loads else {*REPLACED_BY_CLASS, *_LOADED}
        kept = {name: value for name, value in settings.items() if name not in replaced}
        return {"name": self.name, "profile": self.profile_name, **kept, "user_class": self.name}

    @property
    def table_names(self) -> tuple[str, ...]:
        return tuple(self.table + suffix for suffix in self.tables)

    def to_options(self) -> dict[str, Any]:
        """The plan in types that Locust can serialize."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return content | {
            "profile": self.profile.model_dump(mode="json", exclude_unset=True),
            "kind": str(self.kind),
        }

    @classmethod
    def from_options(cls, content: dict[str, Any]) -> Self:
        # Locust passes tuples as lists.
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in content.items()
        }
        known["profile"] = parse(content["profile"], source=content["profile_name"])
        return cls(**{**known, "kind": service_named(content["kind"])})

    def accounts(
        self, host: str, credentials: Credentials, tell: Callable[[str], None]
    ) -> Accounts:
        """The accounts of this worker, with a token for each login.

        ``tell`` is told what happens to the tokens later. A `SetupError` says that they are not the
        master's, or that there is no token.
        """
        server = self.kind.server
        if self.embedded:
            accounts = accounts_from(host, {}, server=server)
        else:
            accounts = credentials.accounts(host, server=server)
        if self.kind.emulated:
            accounts = Accounts(tuple(as_kind(endpoint, self.kind) for endpoint in accounts))
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
        profile = self.profile
        # A random source of its own, so that retries do not change the list of operations.
        rng = random.Random(f"{profile.seed}/{worker}/retry")
        return tuple(
            SessionOptions(
                endpoint=endpoint,
                table=self.table,
                # Each worker counts its requests: their ids have its number before that.
                run_id=f"{self.run_id}-{worker}",
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
    accounts: Accounts,
    *,
    session: str | None = None,
    table: str | None = None,
    tables: tuple[str, ...] = ("",),
    embedded: bool = False,
    traced_properties: tuple[str, ...] | None = None,
    own_class: str = "",
    loads: bool = True,
) -> RunPlan:
    """The plan of a run that is prepared at ``now``, UTC; the arguments are those of `RunPlan`.

    Without a ``session`` it is the profile's, and without an existing ``table`` the run creates
    one. A `SetupError` says what is not possible.
    """
    if table is not None and tables != ("",) and accounts.kind.store == "table":
        raise SetupError(
            f"--table names only one table, but profile {named.name} has {len(tables)}: without "
            "--table the run creates its own"
        )
    if own_class and named.profile.replay is not None:
        raise SetupError(
            f"user class {own_class} makes its own operations, and profile {named.name} sends "
            "those of a trace: choose another profile, or leave the class out"
        )
    # Two runs with the same seed must not get the same name.
    system_random = random.SystemRandom()
    own_name = new_table_name(now, system_random)
    if accounts.kind.store != "table":
        # Names of containers and queues have no capital letters.
        own_name = own_name.lower()
    return RunPlan(
        run_id=f"{now:%Y%m%dT%H%M%SZ}-{system_random.getrandbits(32):08x}",
        profile_name=named.name,
        profile=named.profile,
        table=own_name if table is None else table,
        tables=tables,
        files_hash=fingerprint(named.profile),
        own_table=table is None,
        session=session or named.profile.session.kind,
        fingerprint=accounts.fingerprint,
        embedded=embedded,
        kind=named.profile.endpoint.of(accounts.kind),
        traced_properties=traced_properties,
        own_class=own_class,
        loads=loads,
    )


def require_possible(plan: RunPlan, observed: Observed) -> None:
    """Raise a `SetupError` if the session of the run cannot make the operations of the profile."""
    only = service_of_session(plan.session)
    problem = None if only is None else _setting_problem(plan, only)
    examples = () if plan.own_class else (sent.example for sent in observed.sent)
    require_sendable(plan.name, plan.session, problem, examples)


def require_fitting(plan: RunPlan) -> None:
    """Raise a `SetupError` if the service that answers told does not fit to the settings."""
    if (problem := settings_problem(plan.profile, plan.kind)) is not None:
        raise SetupError(f"{plan.name} cannot run here: {problem} ({plan.kind.described})")


def _setting_problem(plan: RunPlan, only: Service) -> str | None:
    """Why the settings of a run do not fit to a service without tables; None where they do."""
    if plan.own_class:
        return "its operations are those of a class of your own"
    if not plan.own_table:
        return (
            f"--table names a table, and a run on {only.partitions} creates its own {only.store}s"
        )
    if len(plan.tables) > 1 and not only.store_each:
        return "its workload has several tables"
    if only.store_each and plan.traced_properties is not None:
        return "--trace records operations on rows of tables"
    return settings_problem(plan.profile, only)


def require_spreadable(named: NamedProfile, observed: Observed) -> None:
    """Raise a `SetupError` if an operation of the profile would have to go to several accounts."""
    for sent in observed.sent:
        if (problem := spread_problem(sent.example)) is not None:
            raise SetupError(f"profile {named.name} cannot be spread over accounts: {problem}")
