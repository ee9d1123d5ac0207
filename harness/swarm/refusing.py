"""Bad input or set-up: one sentence, exit code 2, nothing left behind."""

from __future__ import annotations

import sys
from typing import NoReturn

import psutil
from locust.env import Environment
from locust.runners import MasterRunner

from harness.model.errors import SetupError

BAD_SETUP = 2


def refuse(environment: Environment, error: SetupError) -> NoReturn:
    """Say what is wrong, and end the process and the workers it forked."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    if isinstance(environment.runner, MasterRunner):
        # Workers that are connected already leave at once.
        environment.runner.quit()
        if environment.parsed_options is not None and environment.parsed_options.processes:
            # Those that still look for the master would go on for five minutes: at the end of the
            # process Locust takes a running child for one that has ended.
            for worker in psutil.Process().children():
                worker.terminate()
    sys.exit(BAD_SETUP)
