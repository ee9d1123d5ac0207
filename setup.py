"""Copies the user's front door into the wheel; everything else is in pyproject.toml.

Profiles, limits, documentation, examples, dashboards and the locustfile stay in the top-level
folders, where users read and change them. A wheel holds a copy in ``harness/shipped``, which
`harness.model.files` finds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = {
    "profiles": ("*.toml",),
    "limits": ("*.toml",),
    "docs": ("**/*.md",),
    "examples": ("**/*.*",),
    "dashboards": ("*.yml", "*.json", "provisioning/**/*.yml"),
}
FILES = ("locustfile.py", "README.md", "CHANGELOG.md")


class BuildWithShippedFiles(build_py):
    """Builds the package, and adds the shipped files unless the install is editable."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "harness" / "shipped"
        shutil.rmtree(target, ignore_errors=True)
        patterns = (f"{folder}/{end}" for folder, ends in FOLDERS.items() for end in ends)
        found = (path for pattern in patterns for path in Path().glob(pattern) if path.is_file())
        for path in (*map(Path, FILES), *found):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path)


def addresses() -> dict[str, str]:
    """Where the project is, as the job that builds a release knows it; elsewhere nothing."""
    server, repository = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY"))
    if not server or not repository:
        return {}
    source = f"{server}/{repository}"
    documentation = f"{source}/tree/main/docs"
    return {"Source": source, "Issues": f"{source}/issues", "Documentation": documentation}


setup(cmdclass={"build_py": BuildWithShippedFiles}, project_urls=addresses())
