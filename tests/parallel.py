"""Run tests in several pytest processes at once: `python -m tests.parallel -j 4 -- tests/swarm`.

One pytest collects the tests and forks; each fork runs the files, and the tests marked `apart`,
that no other fork has claimed. So collecting and importing, which takes seconds, happens once.
pytest-xdist cannot run `tests/swarm`: Locust patches the locks that its workers wait with. What
follows `--` goes to pytest.

A test that fails beside others runs once more, alone, and the last lines name it: most tests are
about real processes and real seconds, and a machine that had no time for them proves nothing. The
exit code is 0 where every test passed, beside others or alone.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

CLAIMS = "TEST_CLAIMS"
"""Names the folder in which the forks of one pytest claim files. Without it nothing forks."""
JOBS = "TEST_JOBS"
"""How many processes the pytest forks."""
APART = "apart"
"""Marks tests that may run in another process than the rest of their file."""
FAILED = "failed.txt"
"""File beside the claims with the ids of the tests that failed, one a line."""
MOST_REPEATED = 5
"""Failures in more files than these have another cause than a busy machine."""
_OPTIONS = ("-q", "-p", "no:cacheprovider", "-o", "console_output_style=classic")
_TESTS_FAILED = int(pytest.ExitCode.TESTS_FAILED)
ROOT = Path(__file__).parents[1]
# Those of Python: Locust replaces them by gevent's, which need a loop in this process.
_fork, _waitpid = os.fork, os.waitpid


def run_shared(session: pytest.Session) -> bool:
    """Whether forks run the tests of a session, which returns in each fork and nowhere else."""
    # Taken out, so that a pytest that a test starts runs all it is given.
    name = os.environ.pop(CLAIMS, None)
    if name is None or session.config.option.collectonly:
        return False
    if session.testsfailed:
        raise session.Interrupted("a file could not be collected")
    folder = Path(name)
    gc.freeze()
    sys.stdout.flush()
    forks: dict[int, Path] = {}
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        for number in range(int(os.environ.pop(JOBS))):
            output = folder.parent / f"process{number}.txt"
            pid = _fork()
            if pid == 0:
                forks.clear()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _redirect(session.config, output)
                _run_claimed(session, folder)
                return True
            forks[pid] = output
        code = _joined(forks)
    finally:
        for pid in forks:
            os.kill(pid, signal.SIGTERM)
            _waitpid(pid, 0)
    # The summary of this process would be one of no tests.
    os._exit(code)


def _redirect(config: pytest.Config, output: Path) -> None:
    """Let this process write to a file, and capture what tests write in files of its own."""
    if "gevent" in sys.modules:
        sys.modules["gevent"].reinit()
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    opened = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(opened, number)
    os.close(opened)
    capture.start_global_capturing()
    capture.suspend_global_capture()


def _joined(forks: dict[int, Path]) -> int:
    """The exit code of all forks together; each is printed and taken out when it ends."""
    started = time.monotonic()
    codes = []
    while forks:
        pid, status = _waitpid(-1, 0)
        if (output := forks.pop(pid, None)) is None:
            continue
        code = os.waitstatus_to_exitcode(status)
        # A negative code names the signal that killed the fork; shells count it from 128.
        codes.append(code if code >= 0 else 128 - code)
        sys.stdout.write(output.read_text(encoding="utf-8", errors="replace"))
        sys.stdout.flush()
    print(f"{len(codes)} processes, {time.monotonic() - started:.0f} s: exit codes {codes}")
    sys.stdout.flush()
    return next((code for code in codes if code not in (0, _TESTS_FAILED)), max(codes))


def _run_claimed(session: pytest.Session, folder: Path) -> None:
    """Run what is claimed of a session, one file after the other, as pytest would."""
    session.config.pluginmanager.register(_Failures(folder))
    claimed: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        claimed.setdefault(_claimed_as(item), []).append(item)
    for name, items in claimed.items():
        if not _claim(folder, name):
            continue
        for item, following in itertools.zip_longest(items, items[1:]):
            # After the last test of a file everything but the session's fixtures is torn down.
            following = following or session
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


def _claimed_as(item: pytest.Item) -> str:
    """What a process claims to run the test: its file, or the test itself if it is `apart`."""
    file = str(item.path.relative_to(ROOT))
    return item.nodeid if item.get_closest_marker(APART) else file


def _claim(folder: Path, name: str) -> bool:
    """Whether this process is the first to ask for a file or a test."""
    try:
        (folder / urllib.parse.quote(name, safe="")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


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
    with tempfile.TemporaryDirectory(prefix="tests-") as name:
        claims = Path(name) / "claims"
        claims.mkdir()
        code = _run(chosen.pytest, {CLAIMS: str(claims), JOBS: str(chosen.jobs)})
        if code != _TESTS_FAILED:
            return code
        tests = sorted(set((claims / FAILED).read_text(encoding="utf-8").splitlines()))
        if len({test.partition("::")[0] for test in tests}) > MOST_REPEATED:
            return code
    print(f"again, alone: {', '.join(tests)}", flush=True)
    options = [one for one in chosen.pytest if not (ROOT / one).exists()]
    code = _run([*options, *tests], {})
    if code == 0:
        print(f"passed alone, after failing beside other tests: {', '.join(tests)}")
    return code


def _run(arguments: Sequence[str], environ: dict[str, str]) -> int:
    """The exit code of pytest, which is not left behind."""
    environ = {**os.environ, **environ}
    # Tests start interpreters by the hundred, which compile the harness where nothing is kept.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        return process.wait()
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
