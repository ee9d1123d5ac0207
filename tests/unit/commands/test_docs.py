"""``harness docs``: pages, and words in them."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Command

PAGES = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))


def test_the_pages_are_listed(command: Command) -> None:
    """Each with its title; README and changelog are pages too."""
    listed = [line.split()[0] for line in command("docs").splitlines() if "  " in line]
    assert set(listed) >= {path.stem for path in PAGES} - {"whatif-trial"} | {"readme"}


def test_a_page_is_shown_and_names_others_by_their_command(command: Command) -> None:
    """Under its name or that of its file; tables and code keep their lines."""
    shown = command("docs", "docs/commands.md")
    assert shown == command("docs", "commands")
    assert "harness docs trace" in shown
    assert "](" not in shown


def test_words_find_sections(command: Command) -> None:
    """Sections with all of them, those first whose heading has them; a word of no page is said."""
    found = command("docs", "exit", "codes").splitlines()
    assert "Exit codes" in found[0]
    assert "no section has these words" in command.refused("docs", "abracadabra")
