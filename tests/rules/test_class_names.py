"""A class name means one thing in the harness."""

from __future__ import annotations

import collections
import re

from tests.support.source_tree import FILES, module_name

COMMANDS = {"Watch"}
"""A subcommand is named as what it makes."""


def test_class_names_are_unique() -> None:
    """No two modules define a public class of one name, but for those that are allowed to."""
    defined = collections.defaultdict(set)
    for file in FILES:
        for name in re.findall(r"^class ([A-Z]\w*)", file.read_text(encoding="utf-8"), re.M):
            defined[name].add(module_name(file))
    twice = {name: sorted(modules) for name, modules in defined.items() if len(modules) > 1}
    assert {name: twice[name] for name in twice.keys() - COMMANDS} == {}
