"""Ctrl-C while a command is imported."""

from __future__ import annotations

import os
import signal

import pytest

from harness.startup import interrupts_held


def test_an_interrupt_is_held_and_not_lost() -> None:
    """What is begun ends first; then the interrupt takes effect."""
    ended = []

    def interrupted() -> None:
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended
