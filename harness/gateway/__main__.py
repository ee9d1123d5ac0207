"""The gateway as a child process: ``python -m harness.gateway UPSTREAM HOST:PORT LIMITS RU``.

RU is a `harness.model.target.Throughput` in JSON: what is provisioned at a stand-in for Cosmos DB.
The gateway writes its URL as one line. It ends when its standard input ends: the parent process
holds this pipe, so the gateway never outlives the parent.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness.gateway.limits import load_limits
from harness.gateway.server import run, serve, stopped_by_parent
from harness.model.errors import SetupError
from harness.model.target import Throughput


async def _serve(upstream: str, listen: str, path: str, throughput: str) -> None:
    await serve(
        upstream=upstream,
        listen=listen,
        limits=load_limits(Path(path)).provisioned(Throughput(**json.loads(throughput))),
        ready=lambda url: print(url, flush=True),
        stop=stopped_by_parent(),
    )


if __name__ == "__main__":
    try:
        run(_serve(*sys.argv[1:5]))
    except SetupError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
