"""What every file of a kind has to be like."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_ADDRESSES = re.compile(
    r'"resolved"\s*:|--(?:extra-)?index-url|--find-links|@\s*(?:https?|file)://'
    r"|https?://\S+\.(?:tgz|whl|tar\.gz)|https?://(?:\S*registry|\S*pypi|files\.pythonhosted)\S*",
    re.IGNORECASE,
)
LOCKS = [
    *ROOT.glob("requirements*.txt"),
    *(
        file
        for folder in ("harness", "tests")
        for name in ("package-lock.json", ".npmrc")
        for file in (ROOT / folder).rglob(name)
    ),
    ROOT / "pyproject.toml",
]


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.name)
def test_lock_files_name_no_download_address(file: Path) -> None:
    """Where packages come from is the machine's business: locks hold names and versions."""
    found = _ADDRESSES.search(file.read_text(encoding="utf-8"))
    assert found is None, found


def test_every_python_package_is_pinned_by_version_alone() -> None:
    """Each line is name==version, a comment, or the other lock; CI has the hashes of the same."""
    pinned = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+|#.*|-r requirements\.txt|")
    pins = set()
    for file in (ROOT / "requirements.txt", ROOT / "requirements-dev.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert pinned.fullmatch(line), f"{file.name}: {line}"
            pins |= {re.sub("[_.](?=.*==)", "-", line.casefold())} if "==" in line else set()
    hashed = (ROOT / "requirements-hashed.txt").read_text(encoding="utf-8").replace(" \\\n", "")
    entry = re.compile(r"^(\S+==\S+)(?: +--hash=sha256:[0-9a-f]{64})+$", re.MULTILINE)
    assert set(entry.findall(hashed)) == pins


def test_every_test_says_in_a_sentence_what_holds() -> None:
    """A test opens with a docstring, and so does its module."""
    silent = [
        f"{file}: {getattr(node, 'name', 'the module')}"
        for file in (ROOT / "tests").rglob("test_*.py")
        for tree in [ast.parse(file.read_text(encoding="utf-8"))]
        for node in (tree, *tree.body)
        if isinstance(node, ast.Module)
        or (isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
        if not ast.get_docstring(node)
    ]
    assert silent == []
