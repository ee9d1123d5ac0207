"""How keys and other names from outside are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.model.errors import printable
from harness.model.operation import WHOLE_TABLE
from harness.report.names import partition_name, shortened


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (partition_name(WHOLE_TABLE), "(table)"),
        (partition_name("Index//"), "Index/(table)"),
        (partition_name("Index/p"), "Index/p"),
        (partition_name(""), "(empty)"),
        (printable("a\x1b[31m\u202e\ud83e"), "a\\u001b[31m\\u202e\\ud83e"),
        (printable("é🦊", ascii_only=True), "\\xe9\\U0001f98a"),
        (shortened("partition", 9), "partition"),
        (shortened("partition", 5), "pa…on"),
        (shortened("日本語日本語", 7), "日…本語"),
    ],
)
def test_names_are_written_alike(shown: str, expected: str) -> None:
    """Special keys have names, controls are escaped, long names lose their middle."""
    assert shown == expected


@given(st.text(max_size=30), st.integers(1, 40))
def test_shortened_text_fits(content: str, width: int) -> None:
    """A shortened text never takes more columns than there are."""
    assert cell_len(shortened(content, width)) <= max(width, 1)
