"""Installs the table SDK for JavaScript into the Python environment, from the committed lock file.

`make dev` runs this file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.endpoint.azurite.installation import node

_PINS = Path(__file__).parent
_HOME = Path(sys.prefix) / "js-sdk"
MODULES = _HOME / "node_modules"
"""Where Node finds the SDK."""


def installed() -> bool:
    """Whether the SDK is there, in the version of the lock file."""
    pins = _HOME / "package-lock.json"
    return pins.is_file() and pins.read_bytes() == (_PINS / "package-lock.json").read_bytes()


def install() -> None:
    """Install the SDK, unless it is installed already."""
    if installed():
        return
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with tempfile.TemporaryDirectory(prefix="js-sdk.", dir=sys.prefix) as made:
        folder = Path(made) / "sdk"
        folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_PINS / name, folder / name)
        command = [str(node()), "--use-system-ca", str(npm), "ci", "--ignore-scripts"]
        command += ["--no-audit", "--no-fund", "--no-update-notifier", f"--cache={made}/cache"]
        path = os.pathsep.join((str(node().parent), os.environ.get("PATH", "")))
        subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)
        shutil.rmtree(_HOME, ignore_errors=True)
        # The folder with the final name is always complete.
        folder.rename(_HOME)


if __name__ == "__main__":
    install()
