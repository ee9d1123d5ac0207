"""A figure reads the same in every output: one module rounds."""

from __future__ import annotations

import ast
import re

from tests.support.source_tree import FILES, module_name, parsed

PACKAGES = (
    *("harness.measure.", "harness.report.", "harness.swarm.master."),
    "harness.profile.load.search",
)
ROUNDING = re.compile(r"[0-9]%|\.[1-9]\d*f")
BY_ITSELF = {
    # Figures of no other output.
    "harness.report.export.junit": {".3f"},
    "harness.report.export.run_folder": {".3f"},
    # Sums of hundredths, which are exact.
    "harness.swarm.master.rehearsal": {"12,.2f"},
    # Changes, with a sign.
    "harness.report.compare.outputs": {"+.1%", "+,.0%"},
}


def test_figures_are_rounded_in_one_place() -> None:
    """Outputs write rates, shares, latencies and CPU by its functions, not by formats."""
    found = []
    for file in FILES:
        name = module_name(file)
        if not name.startswith(PACKAGES):
            continue
        for node in ast.walk(parsed(file)):
            if not isinstance(node, ast.JoinedStr):
                continue
            for part, after in zip(node.values, [*node.values[1:], None], strict=True):
                if not isinstance(part, ast.FormattedValue) or part.format_spec is None:
                    continue
                spec = ast.unparse(part.format_spec)[2:-1]
                percent = isinstance(after, ast.Constant) and str(after.value).startswith("%")
                rounds = ROUNDING.search(spec) or (spec == ".0f" and percent)
                if rounds and spec not in BY_ITSELF.get(name, set()):
                    found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
