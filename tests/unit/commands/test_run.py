"""`harness run`: the arguments that Locust gets."""

from __future__ import annotations

import pytest

from harness.commands.run import locust_arguments
from harness.model.files import shipped
from tests.support.command import Command

SHIPPED = ["-f", str(shipped("locustfile.py"))]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["upsert"], [*SHIPPED, "--profile", "upsert", "--headless"]),
        (
            ["upsert", "-t", "3s", "--set", "seed=2"],
            [*SHIPPED, "--profile", "upsert", "--headless", "-t", "3s", "--set", "seed=2"],
        ),
        (["mine.toml", "--ui", "-u", "5"], [*SHIPPED, "--profile", "mine.toml", "-u", "5"]),
        (["upsert", "-f", "my.py"], ["--profile", "upsert", "--headless", "-f", "my.py"]),
        (["-f", "my.py", "-t", "3s"], ["--headless", "-f", "my.py", "-t", "3s"]),
        (["upsert", "-fmy.py"], ["--profile", "upsert", "--headless", "-fmy.py"]),
        (["--worker", "--master-host", "h"], [*SHIPPED, "--worker", "--master-host", "h"]),
    ],
)
def test_locust_gets_the_profile_and_every_other_option(
    given: list[str], expected: list[str]
) -> None:
    """Headless unless --ui is given; the shipped locustfile unless another is named."""
    assert locust_arguments(given) == expected


def test_the_help_shows_every_option_of_the_harness(command: Command) -> None:
    """In groups, wherever -h stands."""
    said = command("run", "upsert", "-h")
    for option in (
        *("--set", "--session", "--repeat", "--remote-ok", "--table", "--throttling", "--out"),
        *("--trace", "--stream", "--redact-keys", "--keep-prefixes"),
        *("--metrics-port", "--metrics-host", "--metrics-linger"),
        *("--metrics-push", "--web-allowed-host", "--swarm", "--ui"),
    ):
        assert f"\n  {option} " in said, option


def test_shipped_files_are_there() -> None:
    """Profiles, limits and the locustfile are found from the installed package."""
    assert (shipped("profiles") / "single-partition.toml").is_file()
    assert (shipped("limits") / "published.toml").is_file()
    assert shipped("locustfile.py").is_file()
