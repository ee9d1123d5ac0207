"""The event loop that the gateway runs on: uvloop where it can be installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

try:
    import uvloop
except ImportError:  # Windows
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop


def run(main: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)
