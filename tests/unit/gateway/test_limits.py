"""The files of limits, and the mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gateway.limits import GatewayLimits, limits_path, load_limits, shipped_directory
from harness.model.errors import SetupError


def test_the_published_limits_are_the_defaults() -> None:
    """The shipped file says what holds where a file says nothing."""
    assert load_limits(limits_path("published")) == GatewayLimits()


@pytest.mark.parametrize("path", sorted(shipped_directory().glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_limits_are_valid(path: Path) -> None:
    """Every shipped file can be loaded."""
    load_limits(path)


def test_all_mistakes_are_shown_at_once(tmp_path: Path) -> None:
    """A file with several mistakes names each with its place."""
    file = tmp_path / "mine.toml"
    file.write_text(
        "[partition]\nentities_per_s = -1\n[servers]\ncount = 0\ncolour = 'red'\n"
        "[faults]\nreset = 0.7\nslow_answer = 0.7\nstalls = [{ at_s = 1 }]\n",
        encoding="utf-8",
    )
    with pytest.raises(SetupError) as caught:
        load_limits(file)
    said = str(caught.value)
    assert said.startswith("limits file mine.toml: 4 mistakes:")
    for place in ("partition.entities_per_s", "servers.count", "servers.colour", "stalls.0.for_s"):
        assert place in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[faults]\nreset = 0.7\nlost_answer = 0.7\n", "the shares add up to 1.4"),
        ("[partition\n", ": invalid TOML: "),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """Shares that are more than everything, and invalid TOML, are reported."""
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError, match=sentence):
        load_limits(file)


def test_unknown_limits_are_told_with_the_known_ones() -> None:
    """A name that is neither shipped nor a file is answered by what there is."""
    with pytest.raises(
        SetupError, match="the shipped limits are: cosmos, cosmos-demo, demo, none, published"
    ):
        limits_path("imaginary")
