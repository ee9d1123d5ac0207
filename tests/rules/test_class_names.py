"""A class name means one thing in the harness."""

from __future__ import annotations

import ast
import collections

from tests.support.source_tree import FILES, module_name, parsed

COMMANDS = {"Watch"}
"""A subcommand is named as what it makes."""


def test_class_names_are_unique() -> None:
    """No two modules define a public class of one name, but for those that are allowed to."""
    defined = collections.defaultdict(set)
    for file in FILES:
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].add(module_name(file))
    twice = {name: sorted(modules) for name, modules in defined.items() if len(modules) > 1}
    assert {name: twice[name] for name in twice.keys() - COMMANDS} == {}
