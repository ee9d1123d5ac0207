"""ARCHITECTURE.md leads to files that exist."""

from __future__ import annotations

import re

import pytest

from tests.support.source_tree import HARNESS, ROOT

_CODE = re.compile(r"```.*?```", re.DOTALL)
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")


def paths_in(text: str) -> list[str]:
    """What the text names in backticks and is written as a file or a folder.

    That is a name that ends in `.py` or `/`, or begins with a folder of the repository or of
    `harness/`. What follows a colon is a name inside the file.
    """
    named = {quoted.partition(":")[0] for quoted in _QUOTED.findall(_CODE.sub("", text))}
    return sorted(
        name
        for name in named
        if _PATH.fullmatch(name)
        and (name.endswith((".py", "/")) or ("/" in name and _is_folder(name.split("/")[0])))
    )


def _is_folder(name: str) -> bool:
    return any((base / name).is_dir() for base in (ROOT, HARNESS))


def _exists(path: str) -> bool:
    """Whether the path is there; a name alone may be anywhere in `harness/`."""
    path = path.rstrip("/")
    if "/" not in path and any(HARNESS.rglob(path)):
        return True
    return any(any(base.glob(path)) for base in (ROOT, HARNESS))


def test_paths_are_found_in_a_text() -> None:
    """Files, folders and patterns are paths; rates, options and names in code are not."""
    text = (
        "`a/b.py: f` `model/` `gateway/rules` `profiles/*.toml` `entities/s` `--set` `Ledger.add`"
    )
    assert paths_in(text) == ["a/b.py", "gateway/rules", "model/", "profiles/*.toml"]


@pytest.mark.parametrize("path", paths_in((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
def test_a_path_of_the_document_exists(path: str) -> None:
    """It is written from the root of the repository, from `harness/`, or as a name alone."""
    assert _exists(path)


def test_what_is_inside_a_package_is_on_the_map() -> None:
    """Each folder of a package is named in the document."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {name.rstrip("/").rpartition("/")[2] for name in paths_in(text)}
    inside = [path.parent for path in HARNESS.glob("*/*/__init__.py")]
    assert [str(path) for path in inside if path.name not in named] == []


def test_a_name_that_the_document_says_is_in_a_file_is_there() -> None:
    """Written as `NAME` in `FILE`, also where several names are."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    said = re.findall(r"((?:`\w+`(?:, | and )?)+) in `([\w/]+\.py)`", text)
    assert len(said) > 10
    for names, path in said:
        [file] = [base / path for base in (ROOT, HARNESS) if (base / path).is_file()] or [
            *HARNESS.rglob(path)
        ]
        for name in _QUOTED.findall(names):
            assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), (name, path)
