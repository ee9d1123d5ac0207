"""The gateway as a child: ``python -m harness.gateway UPSTREAM HOST:PORT LIMITS``.

It says its URL in a line, and ends when its standard input does: that is a pipe which its parent
holds, so that it outlives nobody.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from harness.gateway.limits import load_limits
from harness.gateway.server import serve
from harness.model.errors import SetupError


async def _serve(upstream: str, listen: str, path: str) -> None:
    stop = asyncio.Event()
    pipe = sys.stdin.fileno()

    def look() -> None:
        if not os.read(pipe, 1024):
            stop.set()

    asyncio.get_running_loop().add_reader(pipe, look)
    await serve(
        upstream=upstream,
        listen=listen,
        limits=load_limits(Path(path)),
        ready=lambda url: print(url, flush=True),
        stop=stop,
    )


if __name__ == "__main__":
    try:
        asyncio.run(_serve(*sys.argv[1:4]))
    except SetupError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
