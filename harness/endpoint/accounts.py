"""The accounts under load: one endpoint each, in the order of ``-H``.

Several accounts share the load: each partition belongs to one of them
(`harness.model.partition.account_of`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from harness.endpoint.address import is_account_name
from harness.endpoint.endpoint import Endpoint, endpoint_from
from harness.endpoint.entra.login import Login, Logins
from harness.endpoint.session import TableSession
from harness.model.auth_mode import LOGIN_MODE, auth_mode, in_mode
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.outcome import Result
from harness.model.partition import account_of
from harness.model.services.service import Server, Service

_SEPARATORS = re.compile(r"[,\s]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Accounts:
    """One or several accounts of the same kind, each at an endpoint of its own."""

    endpoints: tuple[Endpoint, ...]

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self.endpoints)

    def __len__(self) -> int:
        return len(self.endpoints)

    @property
    def kind(self) -> Service:
        return self.endpoints[0].kind

    @property
    def remote(self) -> bool:
        """True where requests may reach a billed account."""
        return any(endpoint.remote for endpoint in self)

    @property
    def names(self) -> tuple[str, ...]:
        """A name of each account: of emulators that share one, their hosts."""
        known = [endpoint.account for endpoint in self]
        return tuple(
            endpoint.account if known.count(endpoint.account) == 1 else endpoint.host
            for endpoint in self
        )

    def of(self, partition_key: str) -> str:
        return self.names[account_of(partition_key, len(self))]

    @property
    def described(self) -> str:
        """``account a``, or ``accounts a, b``."""
        return f"account{'s' if len(self) > 1 else ''} {', '.join(self.names)}"

    @property
    def host(self) -> str:
        """Host and port of each account."""
        return ", ".join(endpoint.host for endpoint in self)

    @property
    def url(self) -> str:
        """The addresses as one value of ``-H``."""
        return ",".join(endpoint.url for endpoint in self)

    @property
    def logins(self) -> tuple[Login, ...]:
        """The logins in use; accounts of one cloud share one."""
        found = [endpoint.login for endpoint in self]
        return tuple(dict.fromkeys(login for login in found if login is not None))

    @property
    def signed_with(self) -> str:
        """The kinds of credentials, for outputs; empty for the emulator's own key."""
        found = [endpoint.credential.described for endpoint in self]
        return "; ".join(dict.fromkeys(filter(None, found)))

    def sign_in(self, tell: Callable[[str], None]) -> None:
        """Get the tokens of all logins, or a `SetupError`, and renew them; see `Login.keep`."""
        for login in self.logins:
            login.sign_in()
            login.keep(tell)

    @property
    def fingerprint(self) -> str:
        """A hash of all accounts in their order, without secrets, that workers compare."""
        each = [endpoint.fingerprint for endpoint in self]
        return (
            each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()[:16]
        )


class Credentials:
    """What this process signs with: its environment, and the tokens of its logins.

    Args:
        mode: One of `harness.model.auth_mode.AUTH_MODES`; None takes that of ``environ``.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, *, mode: str | None = None) -> None:
        self._environ = in_mode(environ, mode)
        self._logins = Logins(environ)

    @property
    def logs_in(self) -> bool:
        """True where a login is used; a `SetupError` if the mode in the environment is invalid."""
        return auth_mode(self._environ) == LOGIN_MODE

    def accounts(self, hosts: str, option: str = "-H", server: Server | None = "table") -> Accounts:
        """The accounts at ``hosts``; see `accounts_from`."""
        return accounts_from(hosts, self._environ, option, self._logins, server)

    def permitted(
        self,
        hosts: str,
        remote_ok: str | None,
        option: str = "-H",
        server: Server | None = "table",
    ) -> Accounts:
        """The accounts at ``hosts``; also a `SetupError` where `consent_problem` has one."""
        accounts = self.accounts(hosts, option, server)
        if (problem := consent_problem(accounts, remote_ok)) is not None:
            raise SetupError(problem)
        return accounts


def accounts_from(
    hosts: str,
    environ: Mapping[str, str] = os.environ,
    option: str = "-H",
    logins: Logins | None = None,
    server: Server | None = "table",
) -> Accounts:
    """The accounts at ``hosts``: values of ``option``, separated by commas or blanks.

    ``server`` is what requests are for; None takes what the addresses tell, or else tables. A
    `SetupError` says which address or credential is wrong, or why accounts do not go together.
    """
    given = listed(hosts)
    alone, logins = len(given) == 1, logins or Logins(environ)
    endpoints = [
        endpoint_from(host, environ, alone=alone, option=option, logins=logins, server=server)
        for host in given
    ]
    for place, endpoint in enumerate(endpoints):
        for earlier in endpoints[:place]:
            same_name = endpoint.account == earlier.account and endpoint.remote
            if endpoint.url == earlier.url or same_name:
                raise SetupError(f"{option} names the account {endpoint.account} twice")
    return of_one_kind(endpoints, option)


def of_one_kind(endpoints: Sequence[Endpoint], option: str = "-H") -> Accounts:
    """The accounts at ``endpoints``; a `SetupError` if these are of different kinds."""
    kinds = dict.fromkeys(endpoint.kind for endpoint in endpoints)
    if len(kinds) > 1:
        named = "; ".join(kind.described for kind in kinds)
        raise SetupError(
            f"{option} names accounts of different kinds ({named}), and targets differ by kind: "
            "give each kind a run of its own"
        )
    return Accounts(tuple(endpoints))


def listed(text: str | None) -> list[str]:
    """The values of an option that takes several, separated by commas or blanks."""
    return [value for value in _SEPARATORS.split(text or "") if value]


def consent_problem(accounts: Accounts, remote_ok: str | None) -> str | None:
    """Why a run needs more consent; None where it may start.

    Each host that is not loopback may be a billed account, which ``--remote-ok`` has to name. A
    host that is not Azure's has to be named itself if it would get an access token.
    """
    remote = [endpoint for endpoint in accounts if endpoint.remote]
    if not remote:
        return None
    needed, named = [endpoint.confirmed_by for endpoint in remote], listed(remote_ok)
    for endpoint in remote:
        if endpoint.takes_token and endpoint.hostname not in named:
            return (
                f"{endpoint.hostname} is not a host of Azure, and would get the access token of "
                "your login, which opens every account that the login may use: no request was "
                f"sent. If the host is yours, add --remote-ok {','.join(needed)}"
            )
    if not named:
        are, billed = ("is", "account") if len(remote) == 1 else ("are", "accounts")
        return (
            f"{', '.join(endpoint.host for endpoint in remote)} {are} not on this machine: every "
            f"request is billed to the {billed} {', '.join(needed)}. To allow that, add "
            f"--remote-ok {','.join(needed)}"
        )
    if missing := [account for account in needed if account not in named]:
        return (
            f"--remote-ok names {_shown(named)}, but -H leads to the account {missing[0]}: "
            "no request was sent"
        )
    return None


def _shown(names: Iterable[str]) -> str:
    """``names`` where they can be accounts; what else is given may be a secret."""
    fine = all(map(is_account_name, names))
    return ", ".join(names) if fine else "something that is not an account"


class AccountsSession:
    """A `TableSession` made of one for each account."""

    def __init__(self, sessions: Sequence[TableSession]) -> None:
        self._sessions = tuple(sessions)

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        sessions = self._sessions
        session = sessions[account_of(operation.partition_key, len(sessions))]
        return session.execute(operation, due_s, keep=keep)

    def abandon(self) -> None:
        for session in self._sessions:
            session.abandon()

    @property
    def connections_in_use(self) -> int:
        """The most connections to one account, because each account has its own limit."""
        return max(session.connections_in_use for session in self._sessions)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
