"""The README and the pages of docs/ lead somewhere, and show commands that exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generator.reference import pages
from docs.generator.site import navigation
from harness.cli import COMMANDS, command
from harness.profile.practices.checklist import PRACTICES
from harness.profile.profile_loader import shipped_names
from tests.support.source_tree import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("examples/*.md")])
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_INDENTED = re.compile(r"^ {4}(?:\.venv/bin/)?harness ((?:.*\\\n)*.*)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The name that a page gives to a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(text: str) -> Iterator[tuple[str, str]]:
    """The file and the heading of each link that stays in the repository."""
    for link in _LINK.findall(_FENCED.sub("", text)):
        if not link.startswith("http"):
            file, _, heading = link.partition("#")
            yield file, heading


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    """A link of a document names a file of the repository, and a heading that it has."""
    for file, heading in links(document.read_text(encoding="utf-8")):
        target = document.parent / file if file else document
        assert target.exists(), file
        if heading:
            headings = _HEADING.findall(target.read_text(encoding="utf-8"))
            assert heading in map(anchor, headings), f"{file}#{heading}"


def test_the_index_leads_to_every_page_once() -> None:
    """A page that docs/index.md does not name is not found; the README leads to the index."""
    parts = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    named = [page for pages in parts.values() for page in pages.values()]
    there = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert sorted([*named, "index.md", "questions.md"]) == sorted(there)
    assert ("docs/index.md", "") in links((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "text"), pages().items(), ids=list(pages()))
def test_a_generated_page_is_up_to_date(name: str, text: str) -> None:
    """Where this fails, `make reference` writes the page again."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text


def test_every_command_is_listed() -> None:
    """A subcommand stands in docs/commands.md with what it does."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`harness {name}" not in page] == []


def test_every_shipped_profile_is_listed() -> None:
    """A profile stands in docs/profiles.md beside its question."""
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    assert [name for name in shipped_names() if f"`{name}`" not in page] == []


def cited_sections() -> Iterator[tuple[str, str]]:
    """The document of this repository and the section of every practice that cites one."""
    for practice in PRACTICES:
        for source in practice.sources:
            if source.document.endswith(".md"):
                yield source.document, source.section


def test_advice_cites_sections_that_exist() -> None:
    """A document of the repository that a practice names has a section of that name."""
    cited = set(cited_sections())
    assert len(cited) > 2
    for document, section in cited:
        assert section in _HEADING.findall((ROOT / document).read_text(encoding="utf-8"))


def shown_commands() -> Iterator[tuple[str, str]]:
    """Every indented command line of `harness` in a document."""
    for document in DOCUMENTS:
        for line in _INDENTED.findall(document.read_text(encoding="utf-8")):
            yield document.name, line.replace("\\\n", " ")


def options_of(name: str) -> set[str]:
    parser = ArgumentParser()
    command(name).options(parser)
    known = set(parser.format_help().replace(",", " ").split())
    if name == "run":
        # Locust is not imported here, because it patches the standard library.
        spec = importlib.util.find_spec("locust")
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).with_name("argument_parser.py").read_text(encoding="utf-8")
        known |= set(re.findall(r'"(--?[\w-]+)"', source))
    return known


@pytest.mark.parametrize(("document", "line"), sorted(set(shown_commands())))
def test_shown_commands_exist(document: str, line: str) -> None:
    """The subcommand, its options and a shipped profile that it runs are there."""
    words = shlex.split(re.split(r" -- | \|", line)[0], comments=True)
    if words[0].startswith("-"):
        return
    name = next(name for name in COMMANDS if words[: len(name.split())] == name.split())
    rest = words[len(name.split()) :]
    used = {word.partition("=")[0] for word in rest if word.startswith("-")}
    assert used <= options_of(name), document
    if name in {"run", "plan", "check"} and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        assert rest[0] in {*shipped_names(), "replay"}, document
