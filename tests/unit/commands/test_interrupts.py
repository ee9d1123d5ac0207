"""Ctrl-C while a command is imported."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from harness.cli import main
from harness.startup import interrupts_held


def test_an_interrupt_is_held_and_not_lost() -> None:
    """What is begun ends first; then the interrupt takes effect."""
    ended = []

    def interrupted() -> None:
        with interrupts_held():
            # To this thread: earlier tests may have left others, which do not hold it.
            signal.raise_signal(signal.SIGINT)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended


def test_a_gateway_that_has_ended_leaves_signals_as_they_were() -> None:
    """The loop of the gateway, once closed, would swallow an interrupt of what follows."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert main(("gateway", "--listen", "nowhere")) == 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


FORKING = """
import os, signal, time
from harness import startup
startup.begin()
import psutil
worker = os.fork()
if worker == 0:
    time.sleep(60)
    os._exit(0)
# A busy machine may not let the worker run at all until the signal comes.
os.kill(worker, signal.SIGSTOP)
print(worker, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_worker_that_has_not_run_yet_ends_too() -> None:
    """An interrupt before the run leaves no worker behind that would look for its master."""
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # The pipes have an end when nobody holds them any longer, the worker included.
        _, said = process.communicate(timeout=20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, said) == (3, "error: ended by SIGTERM before the run began\n")
