"""Which package may import which, and how long a file may be."""

from __future__ import annotations

import graphlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_tree import FILES, HARNESS, ROOT, import_graph, imported, module_name

MAX_LINES = 500

_CORE = {"model", "workload", "measure"}
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "workload": {"model"},
    "measure": {"model"},
    "profile": {*_CORE, "trace"},
    "endpoint": _CORE,
    "metrics": {"model", "measure"},
    "report": {*_CORE, "profile"},
    "gateway": {"model"},
    "trace": {"model", "workload", "measure", "gateway"},
    "swarm": {
        *_CORE,
        "profile",
        "endpoint",
        "metrics",
        "report",
        "gateway",
        "trace",
        "options",
        "startup",
    },
    "watch": {*_CORE, "profile", "endpoint", "metrics", "report", "gateway", "trace", "startup"},
    "doctor": {*_CORE, "profile", "endpoint", "report", "gateway"},
    "commands": {
        *_CORE,
        "profile",
        "endpoint",
        "metrics",
        "report",
        "gateway",
        "trace",
        "watch",
        "doctor",
        "options",
    },
    "cli": {"model", "commands", "startup"},
    "options": {"model", "measure", "profile"},
    "startup": {"model"},
    "__main__": {"startup", "cli"},
}
"""Which rooms a room may import besides itself."""

OWNERS = {
    "locust": {"swarm"},
    "gevent": {"swarm", "endpoint"},
    "azure": {"endpoint"},
    "httptools": {"endpoint", "gateway"},
    "uvloop": {"gateway"},
    "prometheus_client": {"metrics"},
}
"""Which rooms may know a library."""

STANDARD_LIBRARY_ONLY = {"model", "workload"}


def room_of(file: Path) -> str:
    """The room a file is in; the package itself has none."""
    first = file.relative_to(HARNESS).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


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


def test_no_file_imports_itself_in_a_circle() -> None:
    """There is an order in which every file comes after all that it imports."""
    try:
        graphlib.TopologicalSorter(import_graph()).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_every_file_is_in_a_known_room() -> None:
    """A new room has to be drawn into the arrows first."""
    unknown = {room_of(file) for file in FILES} - set(ROOMS) - {""}
    assert not unknown


def test_the_core_leaves_the_heavy_libraries_alone() -> None:
    """Importing every module of these rooms brings in no locust, gevent, azure, prometheus_client.

    Nor does it bring in what the gateway is served with, of whose model `trace` makes use.
    """
    rooms = ("model", "workload", "measure", "report", "trace")
    modules = [module_name(file) for file in FILES if room_of(file) in rooms]
    script = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "heavy = ('locust', 'gevent', 'azure', 'prometheus_client', 'httptools', 'uvloop')\n"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_a_file_is_short_enough_to_be_read() -> None:
    """A file that does one thing has at most 500 lines."""
    lines = {str(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {file: count for file, count in lines.items() if count > MAX_LINES} == {}
