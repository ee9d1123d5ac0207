"""``harness docs``: the documentation in the terminal."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Container, Iterator
from pathlib import Path

from rich.markdown import Markdown
from rich.text import Text

from harness.model.errors import SetupError, echoed
from harness.model.files import shipped
from harness.report.terminal.page import Page, grid

_MOST_WIDTH = 100
_MOST_FOUND = 20
_MOST_LINE = 90
_HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([\w./-]*?)([\w-]+)\.md(?:#[\w-]+)?\)")
_SOURCES = re.compile(r"`(?:tests|benchmarks|harness|\.github)/|(?:ARCHITECTURE|CONTRIBUTING)\.md")
_MARKS = re.compile(r"[*`|]|\]\([^)]*\)|\[")


@dataclasses.dataclass(frozen=True, slots=True)
class _Section:
    """A heading of a page, and the text up to the next."""

    page: str
    title: str
    text: str


class Docs:
    """Shows a page of the documentation, or finds the sections with some words.

    Without PAGE it lists the pages. A page that cites another one names its file: the page
    `docs/trace.md` is `harness docs trace`.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "words", nargs="*", metavar="PAGE|WORD", help="a page, or words that a section has"
        )

    def run(self, args: argparse.Namespace) -> int:
        pages = _pages()
        page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
        words = list(args.words)
        named = Path(words[0]).stem.casefold() if len(words) == 1 else ""
        if named in pages:
            text = pages[named].read_text(encoding="utf-8")
            text = _LINK.sub(lambda link: _command(link, pages), text)
            print(page.render(Markdown(text, hyperlinks=False)))
            if _SOURCES.search(text):
                print(page.render(Text("Paths of sources and tests are of the repository", "dim")))
            return 0
        sections = [one for name, path in pages.items() for one in _sections(name, path)]
        if not words:
            rows = [(one.page, one.title) for one in sections if one.text.startswith("# ")]
            print(page.render(grid(rows), Text("\nharness docs PAGE shows one", "dim")))
            return 0
        folded = [word.casefold() for word in words]
        found = [one for one in sections if all(word in one.text.casefold() for word in folded)]
        if not found:
            raise SetupError(
                f"no page is called {echoed(' '.join(words))}, and no section has these words; "
                "`harness docs` lists the pages"
            )
        found.sort(key=lambda one: -sum(word in one.title.casefold() for word in folded))
        for one in found[:_MOST_FOUND]:
            print(f"{one.page}: {one.title}\n    {_line(one, words[0])}")
        if len(found) > _MOST_FOUND:
            print(f"and {len(found) - _MOST_FOUND} more sections: add a word")
        return 0


def _pages() -> dict[str, Path]:
    """The file of each page by its name, which is that of the file."""
    files = [shipped("README.md"), *sorted(shipped("docs").rglob("*.md")), shipped("CHANGELOG.md")]
    return {path.stem.casefold(): path for path in files}


def _command(link: re.Match[str], pages: Container[str]) -> str:
    """The command that shows the page to which a link leads; its words if it is none."""
    words, folder, name = link.groups()
    if folder not in ("", "docs/", "../") or name.casefold() not in pages:
        return words
    command = f"`harness docs {name}`"
    return command if words.endswith(".md") else f"{words} ({command})"


def _sections(name: str, path: Path) -> Iterator[_Section]:
    text = path.read_text(encoding="utf-8")
    # In a block of code, # begins a comment.
    outside = _CODE.sub(lambda code: code[0].replace("#", " "), text)
    starts = [*_HEADING.finditer(outside)]
    ends = [found.start() for found in starts[1:]] + [len(text)]
    for found, end in zip(starts, ends, strict=True):
        yield _Section(name, _MARKS.sub("", found[1]), text[found.start() : end])


def _line(section: _Section, word: str) -> str:
    """The part of a line with the word."""
    plain = " ".join(_MARKS.sub("", section.text.partition("\n")[2] or section.text).split())
    start = max(0, plain.casefold().find(word.casefold()) - _MOST_LINE // 2)
    return f"{'...' if start else ''}{plain[start : start + _MOST_LINE]}..."
