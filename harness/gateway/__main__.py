"""The gateway as a child process: ``python -m harness.gateway UPSTREAM HOST:PORT LIMITS``.

The gateway writes its URL as one line. It ends when its standard input ends: the parent process
holds this pipe, so the gateway never outlives the parent.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

from harness.gateway.limits import load_limits
from harness.gateway.loop import run
from harness.gateway.server import serve
from harness.model.errors import SetupError


async def _serve(upstream: str, listen: str, path: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    # A thread, because the event loop of Windows cannot watch a pipe.
    threading.Thread(target=wait_for_end, daemon=True).start()
    await serve(
        upstream=upstream,
        listen=listen,
        limits=load_limits(Path(path)),
        ready=lambda url: print(url, flush=True),
        stop=stop,
    )


if __name__ == "__main__":
    try:
        run(_serve(*sys.argv[1:4]))
    except SetupError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
