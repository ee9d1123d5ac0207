"""The profiles, limits and locustfile that come with the harness.

In a checkout they are the top-level folders, which users read and change. A wheel holds a copy in
the package, made by `setup.py`.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

_IN_A_WHEEL = "shipped"


def shipped(name: str) -> Path:
    """The path of a shipped folder or file: ``profiles``, ``limits`` or ``locustfile.py``."""
    package = Path(str(importlib.resources.files("harness")))
    packed = package / _IN_A_WHEEL
    return (packed if packed.is_dir() else package.parent) / name
