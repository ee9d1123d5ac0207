"""Which files know a concrete service: all others ask a `Service` for the trait that they need."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from harness.model.services import SERVICES
from tests.support.source_tree import FILES, HARNESS, parsed

HOME = HARNESS / "model" / "services"
MOST_FILES = 24
KNOW = {
    # Answers and libraries that tell one service from another.
    "endpoint/admin/probe.py",
    "endpoint/sessions/__init__.py",
    "endpoint/sessions/sdk.py",
    # What only one service has.
    "endpoint/admin/stores.py",
    "endpoint/sessions/blob.py",
    "endpoint/sessions/queue.py",
    "endpoint/protocol/queues.py",
    "profile/settings/parts.py",
    "gateway/blob_requests.py",
    "gateway/cosmos.py",
    "gateway/queue_requests.py",
    "model/operation.py",
    "profile/practices/cosmos.py",
    # Practices of it, and their documents.
    "profile/practices/checklist.py",
    "profile/practices/keys.py",
    "profile/practices/partitions.py",
    "profile/practices/practice.py",
    "profile/practices/queries.py",
    # Names that users write, and the choice by them.
    "gateway/dialect.py",
    "gateway/limits.py",
    "gateway/model.py",
    "gateway/proxy.py",
    "model/sessions.py",
}
NAME = re.compile(r"cosmos|blob|queues", re.IGNORECASE)
CONSTANTS = {
    name
    for file in HOME.glob("*.py")
    for node in parsed(file).body
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    if any(part.arg == "described" for part in node.value.keywords)
    for name in (target.id for target in node.targets if isinstance(target, ast.Name))
}
ALONE = {"cosmos", "blob", "cosmos-emulator", "azure-blobs", "azurite-blobs", "azurite-queues"}
"""Texts that mean a service wherever they are; the other names are subcommands and labels too."""
KINDS = re.compile(r"(^|_)(kind|service|name)$")


def known_in(tree: ast.Module) -> Iterator[str]:
    """What in a file names a concrete service, comments, docstrings and sentences aside."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=names):
                yield from filter(NAME.search, [module or "", *(alias.name for alias in names)])
                if (module or "").startswith("harness.model.services"):
                    yield from (alias.name for alias in names if alias.name in CONSTANTS)
            case ast.Import(names=names):
                yield from (alias.name for alias in names if NAME.search(alias.name))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                if NAME.search(name):
                    yield name
            case ast.keyword(arg=str(name)):
                if NAME.search(name):
                    yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if NAME.search(name):
                    yield name
            case ast.ClassDef(name=name):
                if NAME.search(name):
                    yield name
            case ast.Constant(value=str(text)) if text in ALONE:
                yield text
            case ast.Compare(left=left, comparators=others):
                yield from _compared([left, *others])


def _compared(sides: list[ast.expr]) -> Iterator[str]:
    """Names of services that a kind is compared with."""
    names = {getattr(side, "attr", getattr(side, "id", "")) for side in sides}
    if any(KINDS.search(name) for name in names):
        texts = (node for side in sides for node in ast.walk(side))
        for text in texts:
            if isinstance(text, ast.Constant) and text.value in _NAMES:
                yield str(text.value)


_NAMES = {service.name for service in SERVICES}


def _relative(file: Path) -> str:
    return file.relative_to(HARNESS).as_posix()


def test_few_files_know_a_concrete_service() -> None:
    """A file that is not listed asks for a trait; a listed one that no longer needs it goes."""
    found = {
        _relative(file): sorted({*NAME.findall(file.name), *known_in(parsed(file))})
        for file in FILES
        if not file.is_relative_to(HOME)
    }
    knowing = {name: what for name, what in found.items() if what}
    assert {name: what for name, what in knowing.items() if name not in KNOW} == {}
    assert KNOW - knowing.keys() == set()
    assert len(KNOW) <= MOST_FILES


def test_each_way_to_know_a_service_is_found() -> None:
    """Imports, names, parameters, conditions and comparisons count; prose does not."""
    for line in (
        "from harness.model.services.storage import GATEWAY",
        "from harness.model.services import AZURITE",
        "import azure.storage.blob",
        "def checks(*, cosmos): pass",
        "checks(blobs=True)",
        "if limits.cosmos is not None: pass",
        "if session == 'blob': pass",
        "if record.endpoint.kind == 'azurite': pass",
        "if str(kind) in KNOWN or kind in ('gateway', 'storage'): pass",
        "class CosmosAnswer: pass",
    ):
        assert list(known_in(ast.parse(line))), line
    for line in (
        '"""About Cosmos DB."""',
        "raise SetupError('session blob sends to blobs')",
        "labels = {'gateway': 'the gateway'}",
        "if kind.charges: pass",
        "from harness.model.services import service_named",
    ):
        assert not list(known_in(ast.parse(line))), line


def test_the_rule_knows_all_services() -> None:
    """Each service is a constant that the rule looks for."""
    assert len(CONSTANTS) == len(SERVICES)
