"""Run tests in several pytest processes at once: `python -m tests.parallel -j 4 -- tests/swarm`.

One pytest collects the tests and forks; each fork runs the files, and the tests marked `apart`,
that no other fork has claimed. So collecting and importing, which takes seconds, happens once.
pytest-xdist cannot run `tests/swarm`: Locust patches the locks that its workers wait with. What
follows `--` goes to pytest.

Several groups of arguments, each after a `--`, are for tests that must not share a process. Each
group has a pytest of its own, and the forks of all of them take turns: `-j` of them run tests at
any time. So tests that wait leave the processor to tests that compute. A group may begin with
variables of its environment: `-- TEST_SESSION=wire tests/swarm`.

A test that fails beside others runs once more, alone, and the last lines name it: most tests are
about real processes and real seconds, and a machine that had no time for them proves nothing. The
exit code is 0 where every test passed, beside others or alone.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import re
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
TURNS = "TEST_TURNS"
"""The two ends of a pipe with a byte for each process that may run tests now."""
APART = "apart"
"""Marks tests that may run in another process than the rest of their file."""
FAILED = "failed.txt"
"""File beside the claims with the ids of the tests that failed, one a line."""
MOST_REPEATED = 5
"""Failures in more files than these have another cause than a busy machine."""
_OPTIONS = ("-q", "-p", "no:cacheprovider", "-o", "console_output_style=classic")
_VARIABLE = re.compile(r"[A-Z_]+=")
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
    turns = _Turns(*map(int, os.environ.pop(TURNS).split()))
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
                # Several that clean up one folder for all fail at what another has taken away.
                output.with_suffix("").mkdir()
                os.environ["PYTEST_DEBUG_TEMPROOT"] = str(output.with_suffix(""))
                _redirect(session.config, output)
                _run_claimed(session, folder, turns)
                return True
            forks[pid] = output
        code = _joined(forks, turns)
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


class _Turns:
    """Lets as many processes run tests as there are bytes in a pipe."""

    def __init__(self, taking: int, giving: int) -> None:
        self.ends = (taking, giving)

    def __enter__(self) -> None:
        os.read(self.ends[0], 1)

    def __exit__(self, *error: object) -> None:
        self.give()

    def give(self, count: int = 1) -> None:
        os.write(self.ends[1], b"." * count)


def _joined(forks: dict[int, Path], turns: _Turns) -> int:
    """The exit code of all forks together; each is printed and taken out when it ends."""
    started = time.monotonic()
    codes = []
    while forks:
        pid, status = _waitpid(-1, 0)
        if (output := forks.pop(pid, None)) is None:
            continue
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            # Killed in a test, most probably: its turn goes on.
            turns.give()
        # A negative code names the signal that killed the fork; shells count it from 128.
        codes.append(code if code >= 0 else 128 - code)
        sys.stdout.write(output.read_text(encoding="utf-8", errors="replace"))
        sys.stdout.flush()
    print(f"{len(codes)} processes, {time.monotonic() - started:.0f} s: exit codes {codes}")
    sys.stdout.flush()
    return next((code for code in codes if code not in (0, _TESTS_FAILED)), max(codes))


def _run_claimed(session: pytest.Session, folder: Path, turns: _Turns) -> None:
    """Run what is claimed of a session, one file after the other, as pytest would."""
    session.config.pluginmanager.register(_Failures(folder))
    items: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        items.setdefault(_claimed_as(item), []).append(item)
    left = iter(items)
    while True:
        # The turn comes first: what is claimed runs at once.
        with turns:
            claimed = next((name for name in left if _claim(folder, name)), None)
            if claimed is None:
                return
            _run(session, items[claimed])


def _run(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
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
    options, *groups = _split(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m tests.parallel",
        usage="%(prog)s [-j JOBS] -- PYTEST_ARGUMENT... [-- PYTEST_ARGUMENT...]...",
        description=__doc__,
    )
    parser.add_argument("-j", "--jobs", type=int, default=4, help="how many processes run tests")
    chosen = parser.parse_args(options)
    # Ended by SIGTERM it ends its processes too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    turns = _Turns(*os.pipe())
    turns.give(chosen.jobs)
    # What a test started may write a little longer than the test.
    temporary = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
    with temporary as name, contextlib.ExitStack() as stack:
        shared = [
            _Shared(group, Path(name) / str(number), chosen.jobs, turns)
            for number, group in enumerate(groups or [[]])
        ]
        for group in shared:
            stack.callback(_end, group.process)
        for group in shared:
            group.process.wait()
        return next(filter(None, [group.code() for group in shared]), 0)


def _split(arguments: Sequence[str]) -> list[list[str]]:
    """The parts between the arguments that are `--`."""
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--":
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


class _Shared:
    """A pytest whose forks share the tests that its arguments choose."""

    def __init__(self, group: Sequence[str], folder: Path, jobs: int, turns: _Turns) -> None:
        variables = list(itertools.takewhile(_VARIABLE.match, group))
        self._arguments = group[len(variables) :]
        self._environ = dict(one.split("=", 1) for one in variables)
        self._claims = folder / "claims"
        self._claims.mkdir(parents=True)
        environ = {
            **self._environ,
            CLAIMS: str(self._claims),
            JOBS: str(jobs),
            TURNS: " ".join(map(str, turns.ends)),
        }
        self.process = _started(self._arguments, environ, pass_fds=turns.ends)

    def code(self) -> int:
        """The exit code, once the process has ended; 0 if what failed passes alone."""
        code = self.process.wait()
        failed = self._claims / FAILED
        if code != _TESTS_FAILED or not failed.exists():
            return code
        tests = sorted(set(failed.read_text(encoding="utf-8").splitlines()))
        if len({test.partition("::")[0] for test in tests}) > MOST_REPEATED:
            return code
        print(f"again, alone: {', '.join(tests)}", flush=True)
        options = [one for one in self._arguments if not (ROOT / one).exists()]
        process = _started([*options, *tests], self._environ)
        try:
            code = process.wait()
        finally:
            _end(process)
        if code == 0:
            print(f"passed alone, after failing beside other tests: {', '.join(tests)}")
        return code


def _started(
    arguments: Sequence[str], environ: dict[str, str], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    environ = {**os.environ, **environ}
    # Tests start interpreters by the hundred, which compile the harness where nothing is kept.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        pass_fds=pass_fds,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
