"""Copies the user's front door into the wheel; everything else is in pyproject.toml.

Profiles, limits and the locustfile stay in the top-level folders, where users read and change them.
A wheel holds a copy in ``harness/shipped``, which `harness.model.files` finds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("profiles", "limits")
FILES = ("locustfile.py",)


class BuildWithShippedFiles(build_py):
    """Builds the package, and adds the shipped files unless the install is editable."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "harness" / "shipped"
        shutil.rmtree(target, ignore_errors=True)
        for folder in FOLDERS:
            (target / folder).mkdir(parents=True)
            for file in sorted(Path(folder).glob("*.toml")):
                shutil.copy(file, target / folder)
        for name in FILES:
            shutil.copy(name, target)


setup(cmdclass={"build_py": BuildWithShippedFiles})
