"""The compose file as tests read it: services, and values as Compose would put them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
OWN_IMAGE = "table-stress-harness:local"

_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")


def raw() -> dict[str, Any]:
    """The file with its anchors followed and no variable filled in."""
    read: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return read


def services(environ: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Its services by name.

    Args:
        environ: What `.env` holds; None is the example's, where all is empty.
    """
    found: dict[str, dict[str, Any]] = _filled(raw()["services"], environ or {})
    return found


def variables() -> dict[str, str]:
    """The variables that the file fills in, with the operator that says what an empty one does."""
    return {name: operator for name, operator, _ in _VARIABLE.findall(_active(FILE))}


def settings(example: Path) -> dict[str, str]:
    """What a file of the form of `.env` holds."""
    return dict(line.split("=", 1) for line in _active(example).splitlines() if line.strip())


def _active(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _filled(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, environ) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, environ) for inner in value]
    if isinstance(value, str):
        return _VARIABLE.sub(
            lambda match: environ.get(match[1]) or (match[3] if match[2] == ":-" else ""), value
        )
    return value
