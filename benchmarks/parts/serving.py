"""Starts the processes of a benchmark, and ends them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PARTS = Path(__file__).resolve().parent
ROOT = PARTS.parents[1]
NULL_SERVER = str(ROOT / "harness" / "doctor" / "null_server.py")
_BEGINS_WITHIN_S = 30.0
_ENDS_WITHIN_S = 15.0


class CannotMeasure(Exception):
    """Why there is no figure."""


@contextlib.contextmanager
def serving(part: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """A server of `benchmarks/parts`, or `NULL_SERVER`: the port that it prints, its process id."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, str(PARTS / part), *arguments], env=environ(), stdout=output
        )
        try:
            deadline = time.monotonic() + _BEGINS_WITHIN_S
            while not (said := os.pread(output.fileno(), 100, 0)).endswith(b"\n"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise CannotMeasure(f"{part} did not start")
                time.sleep(0.05)
            yield int(said), process.pid
        finally:
            process.terminate()
            try:
                process.wait(timeout=_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def point_requests(
    port: int, *, connections: int, seconds: float, rate: float = 0.0, keys: int = 5000
) -> tuple[int, float]:
    """Send upserts to ``port``: how many were answered, and their median in milliseconds.

    Args:
        port: A port of this machine.
        connections: Number of connections.
        seconds: How long.
        rate: Requests per second; 0 sends as answers come.
        keys: Number of PartitionKeys, which are used in turn.
    """
    numbers = [str(port), str(connections), str(seconds), str(rate), str(keys)]
    done = subprocess.run(
        [sys.executable, str(PARTS / "point_requests.py"), *numbers],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=seconds + _BEGINS_WITHIN_S,
        check=False,
    )
    if done.returncode != 0:
        raise CannotMeasure(f"the generator failed: {done.stderr[-500:].strip()}")
    answers, median_ms = done.stdout.split()
    return int(answers), float(median_ms)


def environ() -> dict[str, str]:
    """A bare environment: no credential and no proxy reaches what is started."""
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)}
