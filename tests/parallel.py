"""Run tests in several pytest processes at once: `python -m tests.parallel -j 4 -- tests/swarm`.

Each process is a plain pytest that collects everything, and runs the files that no other process
has claimed. pytest-xdist cannot run `tests/swarm`: Locust patches the locks that its workers wait
with. What follows `--` goes to pytest. The exit code is 0 where every process ended with 0 or
without a test of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

CLAIMS = "TEST_CLAIMS"
"""Names the folder in which the processes of one call claim files. Without it all tests run."""
_OPTIONS = ("-q", "-p", "no:cacheprovider", "-o", "console_output_style=classic")
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)
ROOT = Path(__file__).parents[1]


def claim(folder: Path, file: Path) -> bool:
    """Whether this process is the first to ask for the file."""
    name = "-".join(file.relative_to(ROOT).parts)
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run_claimed(session: pytest.Session, folder: Path) -> None:
    """Run the files of a session that are claimed, one after the other, as pytest would."""
    by_file = itertools.groupby(session.items, key=lambda item: item.path)
    for file, items in [(file, list(items)) for file, items in by_file]:
        if not claim(folder, file):
            continue
        for item, following in itertools.zip_longest(items, items[1:]):
            # After the last test of a file everything but the session's fixtures is torn down.
            following = following or session
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parallel", description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=4, help="how many processes")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    chosen = parser.parse_args(arguments)
    # Ended by SIGTERM it ends its processes too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tests-") as name:
        folder = Path(name)
        (folder / "claims").mkdir()
        running = [_started(chosen.pytest, folder, number) for number in range(chosen.jobs)]
        try:
            codes = list(_ended(running))
        finally:
            for process, _ in running:
                process.terminate()
                process.wait()
    print(f"{chosen.jobs} processes, {time.monotonic() - started:.0f} s: exit codes {codes}")
    failed = [code for code in codes if code not in (0, NO_TESTS)]
    return failed[0] if failed else 0


def _started(
    arguments: Sequence[str], folder: Path, number: int
) -> tuple[subprocess.Popen[bytes], Path]:
    said = folder / f"process{number}.txt"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
            cwd=ROOT,
            env={**os.environ, CLAIMS: str(folder / "claims")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    return process, said


def _ended(running: Sequence[tuple[subprocess.Popen[bytes], Path]]) -> Iterator[int]:
    """The exit code of each process in the order of their ends, after its output."""
    left = list(running)
    while left:
        for process, said in left:
            if process.poll() is not None:
                sys.stdout.write(said.read_text(encoding="utf-8", errors="replace"))
                sys.stdout.flush()
                left.remove((process, said))
                yield process.returncode
                break
        else:
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
