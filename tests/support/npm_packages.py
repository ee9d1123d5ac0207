"""Packages for Node that tests use: installs them into the Python environment from lock files.

`make dev` runs this file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.endpoint.azurite.process import node


class NpmPackages:
    """The packages that the lock file in the folder ``name``, beside this file, names."""

    def __init__(self, name: str) -> None:
        self.folder = Path(__file__).with_name(name)
        self._home = Path(sys.prefix) / name.replace("_", "-")
        self.modules = self._home / "node_modules"

    @property
    def installed(self) -> bool:
        """Whether the packages are there, in the versions of the lock file."""
        lock = "package-lock.json"
        pins = self._home / lock
        return pins.is_file() and pins.read_bytes() == (self.folder / lock).read_bytes()

    def install(self) -> None:
        """Install the packages, unless they are installed already."""
        if self.installed:
            return
        npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        with tempfile.TemporaryDirectory(prefix="npm.", dir=sys.prefix) as made:
            folder = Path(made) / "packages"
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(self.folder / name, folder / name)
            command = [str(node()), "--use-system-ca", str(npm), "ci", "--ignore-scripts"]
            command += ["--no-audit", "--no-fund", "--no-update-notifier", f"--cache={made}/cache"]
            path = os.pathsep.join((str(node().parent), os.environ.get("PATH", "")))
            subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)
            shutil.rmtree(self._home, ignore_errors=True)
            # The folder with the final name is always complete.
            folder.rename(self._home)


JS_SDK = NpmPackages("js_sdk")
"""The table SDK for JavaScript."""
JS_QUEUE_SDK = NpmPackages("js_queue_sdk")
"""The queue SDK for JavaScript."""
WEB_APPLICATION = NpmPackages("web_application")
"""A small web application that keeps its data in tables: the blog in Microsoft's ``azure``."""

if __name__ == "__main__":
    for packages in (JS_SDK, JS_QUEUE_SDK, WEB_APPLICATION):
        packages.install()
