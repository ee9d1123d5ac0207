"""What the command line and the start form of the web UI ask for: profile, users, time, aliases."""

from __future__ import annotations

import argparse
import dataclasses
import os
import secrets

from locust.env import Environment

from harness.measure.counts.redaction import Aliases
from harness.model.errors import SetupError
from harness.profile.profile_loader import DEFAULT_PROFILE, NamedProfile, resolve, shipped_directory
from harness.swarm.worker.users import TableUser

REDACT_SECRET = "STRESS_REDACT_SECRET"
"""Environment variable with a secret that gives the same aliases in every run."""
_SECRET_BYTES = 32


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FormValues:
    """The values of the start form; None takes the profile's.

    Attributes:
        profile: Name of a shipped profile. Empty, or equal to ``--profile``, it is the profile of
            the command line, which may be a file.
        run_time_s: Length of the measured window, or of a whole search.
        users: Number of users.
        spawn_rate_per_s: Users started per second.
    """

    profile: str
    run_time_s: int | None
    users: int | None
    spawn_rate_per_s: float | None


class RunOptions:
    """Turns the command line, and the values of the start form, into a profile.

    Args:
        environment: Locust's.

    Attributes:
        started_with: Name or file of the profile of the command line.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._options = environment.parsed_options
        self.started_with = self._options.profile or DEFAULT_PROFILE

    def profile_of_command_line(self) -> NamedProfile:
        """Return the profile of the command line; fill missing options of Locust in from it.

        Raises:
            SetupError: the profile does not exist or is invalid, or its user class is missing.
        """
        options = self._options
        if options.class_picker:
            raise SetupError("--class-picker is not supported: the profile names the user class")
        run_time_s = None if options.run_time is None else int(options.run_time)
        named = self._resolve(self.started_with, run_time_s, options.num_users, options.spawn_rate)
        load = named.profile.load
        if options.num_users is None:
            options.num_users = load.users
        if options.spawn_rate is None:
            options.spawn_rate = load.spawn_rate_per_s
        options.profile = self.started_with
        if options.headless or options.autostart:
            # Locust's timer would include loading and settling.
            options.run_time = None
            options.only_summary = True
        return named

    def profile_of_form(self, values: FormValues) -> NamedProfile:
        """Return the profile that the start form asks for.

        Raises:
            SetupError: the profile does not exist or is invalid, or its user class is missing.
        """
        return self._resolve(
            values.profile or self.started_with,
            values.run_time_s,
            values.users,
            values.spawn_rate_per_s,
        )

    def _resolve(
        self, name: str, run_time_s: int | None, users: int | None, rate_per_s: float | None
    ) -> NamedProfile:
        overrides = list(self._options.overrides)
        if users is not None:
            overrides.append(f"load.users={users}")
        if rate_per_s is not None:
            overrides.append(f"load.spawn_rate_per_s={float(rate_per_s)}")
        named = resolve(
            name,
            overrides,
            run_time_s=run_time_s,
            directory=shipped_directory(),
            paths=name == self.started_with,
        )
        self._choose_user_class(named)
        return named

    def _choose_user_class(self, named: NamedProfile) -> None:
        """Run one user class only: that of the command line, else that of the profile."""
        environment = self._environment
        available = {
            cls.__name__: cls
            for cls in (environment.available_user_classes or {}).values()
            if issubclass(cls, TableUser)
        }
        wanted = named.profile.user_class
        if self._options.user_classes:
            return
        if wanted in available:
            environment.user_classes = [available[wanted]]
        elif len(available) == 1:
            environment.user_classes = list(available.values())
        else:
            existing = ", ".join(sorted(available)) or "none"
            raise SetupError(
                f"profile {named.name} needs the user class {wanted}; the locustfile has {existing}"
            )


def aliases_of(options: argparse.Namespace) -> Aliases | None:
    """Return the aliases that ``--redact-keys`` asks for; None if keys are shown."""
    if not options.redact_keys:
        return None
    secret = os.environ.get(REDACT_SECRET)
    return Aliases(secret.encode() if secret else secrets.token_bytes(_SECRET_BYTES))
