"""Run tests in several pytest processes at once: `python -m tests.parallel -j 4 -- tests/swarm`.

Each process is a plain pytest that collects everything, and runs the files that no other process
has claimed. pytest-xdist cannot run `tests/swarm`: Locust patches the locks that its workers wait
with. What follows `--` goes to pytest.

A test that fails beside others runs once more, alone, and the last lines name it: most tests are
about real processes and real seconds, and a machine that had no time for them proves nothing. The
exit code is 0 where every test passed, beside others or alone.
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
FAILED = "failed.txt"
"""File beside the claims with the ids of the tests that failed, one a line."""
MOST_REPEATED = 10
"""More failures than these have another cause than a busy machine."""
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
    if session.testsfailed:
        raise session.Interrupted("a file could not be collected")
    session.config.pluginmanager.register(_Failures(folder))
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


class _Failures:
    """Notes the tests that fail."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FAILED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parallel", description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=4, help="how many processes")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    chosen = parser.parse_args(arguments)
    # Ended by SIGTERM it ends its processes too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tests-") as name:
        claims = Path(name) / "claims"
        claims.mkdir()
        codes = _run([_started(chosen.pytest, claims, number) for number in range(chosen.jobs)])
        print(f"{chosen.jobs} processes, {time.monotonic() - started:.0f} s: exit codes {codes}")
        failed = [code for code in codes if code not in (0, NO_TESTS)]
        if set(failed) != {int(pytest.ExitCode.TESTS_FAILED)}:
            return failed[0] if failed else 0
        tests = sorted(set((claims / FAILED).read_text(encoding="utf-8").splitlines()))
        if len(tests) > MOST_REPEATED:
            return failed[0]
        print(f"again, alone: {', '.join(tests)}")
        options = [one for one in chosen.pytest if not (ROOT / one).exists()]
        alone = Path(name) / "alone"
        alone.mkdir()
        again = _run([_started([*options, *tests], alone, chosen.jobs)])
    if again == [0]:
        print(f"passed alone, after failing beside other tests: {', '.join(tests)}")
    return again[0]


def _run(running: Sequence[tuple[subprocess.Popen[bytes], Path]]) -> list[int]:
    """The exit codes of the processes, none of which is left behind."""
    try:
        return list(_ended(running))
    finally:
        for process, _ in running:
            process.terminate()
            process.wait()


def _started(
    arguments: Sequence[str], claims: Path, number: int
) -> tuple[subprocess.Popen[bytes], Path]:
    said = claims.parent / f"process{number}.txt"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
            cwd=ROOT,
            env={**os.environ, CLAIMS: str(claims)},
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
