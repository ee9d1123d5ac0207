"""``--repeat N``: the same profile again, each run with a table, a ledger and a record of its own.

Repeats tell a difference between two designs from the noise of one: `harness compare` takes the
folder that holds them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

from locust.env import Environment

from harness.model.errors import SetupError
from harness.swarm.conductor import Conductor

_SEVEREST_FIRST = (2, 4, 3, 1, 0)


class Repeats:
    """The runs of one headless start.

    Args:
        environment: Locust's.
        conductor: Leads each run.
        prepare: Prepares the next one.

    Raises:
        SetupError: so many runs cannot be.
    """

    def __init__(
        self, environment: Environment, conductor: Conductor, prepare: Callable[[], None]
    ) -> None:
        self._environment = environment
        self._conductor = conductor
        self._prepare = prepare
        self._codes: list[int] = []
        self.going_on = False
        options = environment.parsed_options
        self._count: int = options.repeat
        if self._count < 1:
            raise SetupError(f"--repeat {self._count} is no number of runs")
        if self._count == 1:
            return
        if not options.headless:
            raise SetupError("--repeat goes with --headless")
        name = f"repeat-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}"
        options.out = str(Path(options.out) / name)

    def next(self) -> bool:
        """Begin the next run; False where the last one was the last.

        The exit code is the severest of all.
        """
        environment, options = self._environment, self._environment.parsed_options
        self._codes.append(environment.process_exit_code or 0)
        if len(self._codes) < self._count and self._conductor.record is not None:
            self._conductor.say_found()
            self.going_on = True
            environment.runner.stop()
            self._prepare()
            self.going_on = False
            environment.runner.start(options.num_users, options.spawn_rate)
            return True
        environment.process_exit_code = min(self._codes, key=_SEVEREST_FIRST.index)
        if len(self._codes) > 1:
            self._conductor.say_found()
            print(f"{len(self._codes)} runs: harness compare {options.out} [ANOTHER]", flush=True)
        return False
