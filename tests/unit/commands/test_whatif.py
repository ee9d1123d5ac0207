"""``harness whatif`` refuses what it cannot do, and does not overwrite what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from tests.support.command import Command
from tests.support.traced import trace_of, traced

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("page", ["app.parquet", "mine.toml"])
def test_a_page_does_not_replace_the_trace_or_a_scheme(
    page: str, tmp_path: Path, command: Command
) -> None:
    """A recording cannot be made again."""
    trace, scheme = tmp_path / "app.parquet", tmp_path / "mine.toml"
    trace.write_bytes(b"recorded")
    scheme.write_text("[keys]\n")
    paths = [str(trace), "--keys", str(scheme), "--html", str(tmp_path / page)]
    assert f"{page}: name another file" in command.refused("whatif", *paths)
    assert trace.read_bytes() == b"recorded"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--provisioned-ru-per-s", "0"), "must be a whole number from 1 to 10000000, not '0'"),
        (("--physical-partitions", "many"), "must be a whole number from 1 to 1000, not 'many'"),
    ],
)
def test_what_is_provisioned_is_a_whole_number(
    options: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are whole numbers within bounds."""
    try:
        code: object = main(["whatif", "missing.trace", *options])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ((), "18,000 RU/s over 3 physical partitions with 6,000 each"),
        (
            ("--provisioned-ru-per-s", "25000"),
            "25,000 RU/s over 3 physical partitions with 8,333 each",
        ),
        (("--physical-partitions", "6"), "18,000 RU/s over 6 physical partitions with 3,000 each"),
    ],
)
def test_options_say_what_is_provisioned(
    options: tuple[str, ...], limits: str, command: Command
) -> None:
    """Without them the limits do; the fewest physical partitions have 10,000 RU/s at most."""
    trace = EXAMPLES / "even-spread" / "even-spread.parquet"
    assert limits in command.words("whatif", trace, "--limits", "cosmos", *options)


def test_operations_that_failed_when_recorded_are_named(tmp_path: Path, command: Command) -> None:
    """They count as if served, which the figures do not show."""
    outcomes = [Outcome.SUCCESS, Outcome.THROTTLED]
    rows = [
        traced(Kind.INSERT, "p", f"r{at}", at_ms=at, outcome=outcomes[at % 2]) for at in range(200)
    ]
    trace_of(tmp_path / "app.parquet", rows)
    said = command.words("whatif", tmp_path / "app.parquet")
    assert "100 operations (50%) got an error or no answer when recorded" in said


def test_of_a_trace_without_keys_nothing_is_said(tmp_path: Path, command: Command) -> None:
    """That nothing is throttled would be no finding."""
    trace_of(tmp_path / "app.parquet", [traced(Kind.INSERT, None, "r") for _ in range(200)])
    said = command.words("whatif", tmp_path / "app.parquet")
    assert "the keys of no operation, so nothing can be said" in said
    assert "its share of all entities n/a" in said
    assert "nothing is throttled" not in said
