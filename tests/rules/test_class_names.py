"""A class name means one thing in the harness."""

from __future__ import annotations

import ast
import collections

from tests.support.source_tree import FILES, module_name, parsed

PROFILE = {"Limits", "Mix", "Search", "Stage"}
"""A table of a profile has the name of what is made of it."""
GATEWAY = {"Action", "Answer", "Fault", "KeyRange", "Refusal"}
"""The gateway stands for a service: it shares no code with the client that it is held against."""
COMMANDS = {"Report", "Run", "Watch"}
"""A subcommand is named as what it makes."""
LOCAL = {
    *("Found", "Moment", "Phase", "Rows", "Source", "Spread", "Stop", "Tally", "Verdict", "Write"),
}
"""Names of different things in packages that do not meet. No name may be added."""


def test_class_names_are_unique() -> None:
    """No two modules define a public class of one name, but for those that are allowed to."""
    defined = collections.defaultdict(set)
    for file in FILES:
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].add(module_name(file))
    twice = {name: sorted(modules) for name, modules in defined.items() if len(modules) > 1}
    allowed = PROFILE | GATEWAY | COMMANDS | LOCAL
    assert {name: twice[name] for name in twice if name not in allowed} == {}
