"""Options of a run come from the command line, the environment or locust.conf."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
from locust.argument_parser import get_empty_argument_parser, setup_parser_arguments

from harness.options import add_run_options
from harness.swarm.command_line import CommandLine

GIVEN = {
    # Variable: (its value, the option's place among the parsed ones, what is parsed)
    "STRESS_PROFILE": ("mine.toml", "profile", "mine.toml"),
    "STRESS_SET": ("[seed=2, conditions=[]]", "overrides", ["seed=2", "conditions=[]"]),
    "STRESS_SESSION": ("wire", "session", "wire"),
    "STRESS_REPEAT": ("3", "repeat", 3),
    "STRESS_REMOTE_OK": ("myaccount", "remote_ok", "myaccount"),
    "STRESS_TABLE": ("mine", "table", "mine"),
    "STRESS_THROTTLING": ("demo", "throttling", "demo"),
    "STRESS_OUT": ("/results", "out", "/results"),
    "STRESS_STREAM": ("seconds.jsonl", "stream", "seconds.jsonl"),
    "STRESS_REDACT_KEYS": ("true", "redact_keys", True),
    "STRESS_METRICS_PORT": ("0", "metrics_port", 0),
    "STRESS_METRICS_HOST": ("0.0.0.0", "metrics_host", "0.0.0.0"),
    "STRESS_METRICS_LINGER": ("30", "metrics_linger", 30.0),
    "STRESS_METRICS_PUSH": ("http://push:9091", "metrics_push", "http://push:9091"),
    "STRESS_SWARM": ("ours", "swarm", "ours"),
    "LOCUST_WEB_ALLOWED_HOST": ("stress.example", "web_allowed_host", ["stress.example"]),
}


def parsed(given: str = "") -> argparse.Namespace:
    """The options of a process that only lists its user classes."""
    parser = get_empty_argument_parser()
    setup_parser_arguments(parser)
    CommandLine().on_parser(parser)
    options: argparse.Namespace = parser.parse_args(shlex.split(f"--list {given}"))
    return options


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder without locust.conf, and none of the variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in GIVEN:
        monkeypatch.delenv(variable, raising=False)


def test_every_option_has_a_variable() -> None:
    """The help of each ends in its variable, which is no other option's."""
    parser = argparse.ArgumentParser(add_help=False)
    add_run_options(parser, locust=False)
    variables = [re.search(r" \[([A-Z]+(?:_[A-Z]+)+)\]$", str(one.help)) for one in parser._actions]
    assert all(variables)
    shown = [found[1] for found in variables if found]
    assert len(set(shown)) == len(shown)
    assert set(GIVEN) - {"STRESS_PROFILE"} <= set(shown)


def test_variables_set_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sets its option, and the command line comes first."""
    for variable, (value, _, _) in GIVEN.items():
        monkeypatch.setenv(variable, value)
    options = vars(parsed())
    assert {name: options[name] for _, name, _ in GIVEN.values()} == {
        name: value for _, name, value in GIVEN.values()
    }
    options = vars(parsed("--profile upsert --metrics-port 9000 --set seed=3"))
    assert (options["profile"], options["metrics_port"]) == ("upsert", 9000)
    assert options["overrides"] == ["seed=3"]


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files for containers pass variables on that have no value."""
    unset = vars(parsed())
    for variable in GIVEN:
        if variable.startswith("STRESS_"):
            monkeypatch.setenv(variable, "")
    assert vars(parsed()) == unset


def test_the_configuration_file_sets_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Locust's own file holds options of the harness too; a variable comes before it."""
    (tmp_path / "locust.conf").write_text(
        "profile = profile.toml\nremote-ok = theirs\nset = [seed=2, load.users=5]\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("STRESS_REMOTE_OK", "mine")
    options = parsed()
    assert (options.profile, options.remote_ok) == ("profile.toml", "mine")
    assert options.overrides == ["seed=2", "load.users=5"]
