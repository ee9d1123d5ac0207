"""The event loop that the gateway runs on, uvloop where it can be installed, and its end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine

from harness.model.garbage import search_rarely

try:
    import uvloop
except ImportError:  # Windows
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop


def run(main: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end, as `asyncio.run` does."""
    search_rarely()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


def stopped_by_parent() -> asyncio.Event:
    """An event that is set when standard input ends: the parent process holds this pipe."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    # A thread, because the event loop of Windows cannot watch a pipe.
    threading.Thread(target=wait_for_end, daemon=True).start()
    return stop
