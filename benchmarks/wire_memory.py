"""Whether a long run with the session on the wire grows: memory after a million operations.

The whole harness, one process with ten users, sends upserts to a server that only answers. Its
resident memory after a million of them is held against that after the first 200,000.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import CannotMeasure
from benchmarks.parts.turns import Started, entities, folder_of_its_own, harness, server, started

FIRST, LAST = 200_000, 1_000_000
WANTED_MB = 20.0
_BOUND_S = 400.0
_LOOK_EVERY_S = 0.5


def main() -> int:
    """Measure twice in one run and say the difference; fail where it grows without end."""
    try:
        with folder_of_its_own() as folder, server(folder) as (_, (port, *_rest)):
            url = f"http://127.0.0.1:{port}"
            arguments = harness(url, folder, "--session", "wire", "-t", f"{_BOUND_S:.0f}s")
            with started("wire", ["-m", "locust", "--headless", *arguments], folder) as generator:
                first, last = (memory_mb(generator, port, count) for count in (FIRST, LAST))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    print(
        f"memory after {LAST:,} operations / after {FIRST:,}: {last / first:.2f} times "
        f"({last:.0f} against {first:.0f} MB; wanted: at most {WANTED_MB:g} MB more)"
    )
    return 0 if last - first <= WANTED_MB else 1


def memory_mb(generator: Started, port: int, count: int) -> float:
    """Resident memory of a generator when the server has answered so many operations, in MB.

    Raises:
        CannotMeasure: it did not come that far.
    """
    deadline = time.monotonic() + _BOUND_S
    while entities(port) < count:
        generator.require()
        if time.monotonic() > deadline:
            raise CannotMeasure(f"{count:,} operations took longer than {_BOUND_S:g} s")
        time.sleep(_LOOK_EVERY_S)
    return float(psutil.Process(generator.process.pid).memory_info().rss) / 1e6


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
