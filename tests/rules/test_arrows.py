"""The rooms of the house: who may import whom, how long a file may be."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness"
MAX_LINES = 320

_CORE = {"model", "workload", "measure"}
ROOMS = {
    "model": set(),
    "workload": {"model"},
    "measure": {"model"},
    "profile": _CORE,
    "endpoint": {*_CORE, "profile"},
    "metrics": {*_CORE, "profile"},
    "report": {*_CORE, "profile"},
    "gateway": {"model"},
    "swarm": {*_CORE, "profile", "endpoint", "metrics", "report", "gateway"},
    "commands": {*_CORE, "profile", "endpoint", "metrics", "report", "gateway"},
    "cli": {"model", "commands"},
}
"""Which rooms a room may import besides itself."""

OWNERS = {
    "locust": {"swarm"},
    "gevent": {"swarm", "endpoint"},
    "geventhttpclient": {"endpoint"},
    "azure": {"endpoint"},
    "aiohttp": {"gateway"},
    "prometheus_client": {"metrics"},
}
"""Which rooms may know a library."""

STANDARD_LIBRARY_ONLY = {"model", "workload"}

FILES = sorted(HARNESS.rglob("*.py"))


def room_of(file: Path) -> str:
    """The room a file is in; the package itself has none."""
    first = file.relative_to(HARNESS).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, under TYPE_CHECKING and in functions too."""
    package = ("harness", *file.relative_to(HARNESS).with_suffix("").parts)[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def breaches(file: Path) -> Iterator[str]:
    """Every import of a file that no arrow allows."""
    room = room_of(file)
    for line, name in imported(file):
        top, _, rest = name.partition(".")
        where = f"{file.relative_to(ROOT)}:{line} imports {name}"
        if top == "harness":
            other = rest.partition(".")[0]
            if other in ROOMS and other != room and other not in ROOMS.get(room, set()):
                yield f"{where}: {room or 'the package'} may not know {other}"
        elif top in OWNERS and room not in OWNERS[top]:
            yield f"{where}: only {', '.join(sorted(OWNERS[top]))} may know {top}"
        elif room in STANDARD_LIBRARY_ONLY and top not in sys.stdlib_module_names:
            yield f"{where}: {room} uses the standard library alone"


def test_rooms_import_only_along_the_arrows() -> None:
    """No file imports against the arrows, type-checking imports and function bodies included."""
    found = [breach for file in FILES for breach in breaches(file)]
    assert not found, "\n".join(found)


def test_every_file_is_in_a_known_room() -> None:
    """A new room has to be drawn into the arrows first."""
    unknown = {room_of(file) for file in FILES} - set(ROOMS) - {""}
    assert not unknown


@pytest.mark.parametrize("room", ["model", "workload", "measure", "report"])
def test_the_core_leaves_the_heavy_libraries_alone(room: str) -> None:
    """Importing every module of the room brings in no locust, gevent, azure, prometheus_client."""
    modules = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in FILES
        if room_of(file) == room
    ]
    script = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "heavy = ('locust', 'gevent', 'azure', 'prometheus_client')\n"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HARNESS)))
def test_a_file_is_short_enough_to_be_read(file: Path) -> None:
    """A file that does one thing has at most 320 lines."""
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
