"""``harness whatif`` does not overwrite what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


@pytest.mark.parametrize("page", ["app.trace", "mine.toml"])
def test_a_page_does_not_replace_the_trace_or_a_scheme(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording cannot be made again."""
    trace, scheme = tmp_path / "app.trace", tmp_path / "mine.toml"
    trace.write_bytes(b"recorded")
    scheme.write_text("[keys]\n")
    paths = [str(trace), "--keys", str(scheme), "--html", str(tmp_path / page)]
    assert main(["whatif", *paths]) == 2
    assert f"{page}: name another file" in capsys.readouterr().err
    assert trace.read_bytes() == b"recorded"
