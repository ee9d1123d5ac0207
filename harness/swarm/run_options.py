"""What the command line and the start form choose: the profile, the user class, the time."""

from __future__ import annotations

from locust.env import Environment

from harness.model.errors import SetupError
from harness.profile.load import DEFAULT_PROFILE, NamedProfile, resolve, shipped_directory
from harness.swarm.users import TableUser


class Choices:
    """Turns Locust's options, and what its form posts, into a profile.

    Args:
        environment: Locust's.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._options = environment.parsed_options
        self._started_with = self._options.profile or DEFAULT_PROFILE

    def at_the_start(self) -> NamedProfile:
        """The profile of the command line. What Locust is not told is filled in from it.

        Raises:
            SetupError: there is no such profile, it is wrong, or its user class is missing.
        """
        options = self._options
        if options.class_picker:
            raise SetupError("--class-picker does not go here: the profile names the user class")
        run_time_s = None if options.run_time is None else int(options.run_time)
        named = self._resolve(self._started_with, run_time_s, options.num_users, options.spawn_rate)
        load = named.profile.load
        if options.num_users is None:
            options.num_users = load.users
        if options.spawn_rate is None:
            options.spawn_rate = load.spawn_rate_per_s
        options.profile = self._started_with
        if options.headless or options.autostart:
            # The timer is ours: Locust's would count loading and settling too.
            options.run_time = None
            options.only_summary = True
        return named

    def from_form(
        self, name: str, run_time_s: int | None, users: int | None, rate_per_s: float | None
    ) -> NamedProfile:
        """The profile that the start form asks for.

        Args:
            name: A shipped one's; empty, or as Locust was started with, is the one of the start,
                which may be a file.
            run_time_s: Length of the measured window, or the most that a search may take; None is
                the profile's.
            users: How many users; None is the profile's.
            rate_per_s: How many of them are started in a second; None is the profile's.

        Raises:
            SetupError: as `at_the_start`.
        """
        return self._resolve(name or self._started_with, run_time_s, users, rate_per_s)

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
            paths=name == self._started_with,
        )
        self._choose_user_class(named)
        return named

    def _choose_user_class(self, named: NamedProfile) -> None:
        """Only one class runs: the one named on the command line, else the profile's."""
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
            there = ", ".join(sorted(available)) or "none"
            raise SetupError(
                f"profile {named.name} wants the user class {wanted}; the locustfile has {there}"
            )
