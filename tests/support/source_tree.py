"""The source files of the harness, and what each imports, read from their syntax trees."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness"
FILES = sorted(HARNESS.rglob("*.py"))


def module_name(file: Path) -> str:
    """The name by which a file is imported; a package for its `__init__.py`."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@functools.cache
def imported(file: Path) -> list[tuple[int, str]]:
    """Line and full name of everything a file imports, under TYPE_CHECKING and in functions too."""
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    found: list[tuple[int, str]] = []
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            found += ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
    return found


def import_graph() -> dict[str, set[str]]:
    """The modules of the harness that each of its modules imports.

    To import `a.b.c` runs the `__init__.py` of `a` and `a.b` too, unless the importing module is
    inside these packages: then they are being imported already.
    """
    modules = {module_name(file): file for file in FILES}
    graph: dict[str, set[str]] = {}
    for module, file in modules.items():
        graph[module] = {
            loaded
            for _, name in imported(file)
            for loaded in _prefixes(name)
            if loaded in modules and not f"{module}.".startswith(f"{loaded}.")
        }
    return graph


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))
