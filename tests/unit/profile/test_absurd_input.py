"""What is too deep, too long or too large is refused in one sentence, with exit code 2."""

from __future__ import annotations

import copy
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.gateway.limits import load_limits
from harness.model.errors import SetupError
from harness.model.services.storage import STORAGE
from harness.profile.build.plan import plan_of
from harness.profile.checks.observed import observe
from harness.profile.practices.checklist import findings_of
from harness.profile.profile_loader import parse, resolve, shipped_directory
from harness.profile.settings.schema import Profile
from harness.report.terminal.page import Page
from harness.report.terminal.plan import plan_text

LONG = "x" * 100_000
DEEP = "[" * 5000 + "]" * 5000
MOST_CHARACTERS = 600
SAMPLE = 500
"""Operations of a profile: what fails does so in the first ones, or in none."""
DEEP_OR_LARGE = {
    "a = " + DEEP: "more than 20 levels deep",
    "a = " + "[" * 25 + "]" * 25: "more than 20 levels deep",
    "a = " + "{a = " * 2000 + "1" + "}" * 2000: "more than 20 levels deep",
    ".".join("a" * 3000) + " = 1": "more than 20 levels deep",
    "seed = " + "9" * 5000: "more than 64 bits",
    "seed = 0x" + "f" * 5000: "more than 64 bits",
    "seed = " + "9" * 30: "more than 64 bits",
}


@pytest.mark.parametrize(("text", "words"), DEEP_OR_LARGE.items(), ids=range(len(DEEP_OR_LARGE)))
def test_toml_that_is_too_deep_or_too_large_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    """In a profile, in a file of limits and in --set, in a sentence that repeats little of it."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    for read in (
        lambda: resolve(str(path)),
        lambda: resolve("single-partition", [text]),
        lambda: load_limits(path),
    ):
        with pytest.raises(SetupError, match=words) as caught:
            read()
        assert len(str(caught.value)) < MOST_CHARACTERS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "upsert", "--set", LONG), "not of the form"),
        (("plan", "upsert", "--set", f"fields.key.prefix={LONG}"), "at most 1,024"),
        (("plan", "upsert", "--set", f"{LONG}=1"), "no such setting"),
        (("plan", "upsert", "--set", f"conditions=['{LONG}']"), "is not a condition"),
        (("plan", "upsert", "--set", "keys.rows_per_partition=[" + "0," * 999 + "]"), "and 97"),
        (("plan", "upsert", "--set", "load.users=3\nload.settle_s=9"), "several lines"),
        (("plan", "upsert", "--set", "load.users=3\rseed"), "several lines"),
        (("plan", "upsert", "--set", "load.spawn_rate_per_s=5e-324"), "must be 0.001 or more"),
        (("plan", "upsert", "--set", "load.max_entities_per_s=5e-324"), "must be 0.001 or more"),
        (("plan", "upsert", "-u", "9" * 30), "more than 64 bits"),
        (("plan", "upsert", "-t", "9" * 5000), "is not a duration"),
        (("plan", "upsert", "-t", "999999999999h"), "must be 1209600 or less"),
        (("plan", LONG), "there is no profile"),
        (("plan", f"{LONG}.toml"), "there is no profile file"),
        (("report", LONG), "cannot be read"),
        (("compare", LONG, LONG), "cannot be read"),
        (("compare", "a", "b", "--fail-if", LONG), "cannot be read as a regression"),
        (("schemes", LONG), "unknown name"),
        (("gateway", "--limits", LONG), "there are no limits"),
        (("gateway", "--listen", "127.0.0.1:" + "9" * 5000), "not of the form"),
    ],
    ids=range(20),
)
def test_absurd_arguments_are_refused_in_short(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and what was typed is repeated shortened."""
    try:
        code: object = main(arguments)
    except SystemExit as refused:
        code = refused.code
    assert code == 2
    said = capsys.readouterr().err
    assert words in said
    # All names of profiles or schemes, or twenty mistakes, may be listed.
    assert len(said) < 2500


ODD: tuple[Any, ...] = (
    True, 0, 1, 2, 3, 7, 50, 99, 1000, 10**6, 10**7, -1, 2**31, 2**63 - 1, -(2**63),
    1e-320, 1e-9, 0.01, 0.5, 1.5, 1e308, float("inf"), float("nan"),
    "", "x", "\x00", "\ud800", "k" * 5000, "p99(service) < 1ms", "spread", "zipfian", "random",
    (), (1,), ("x",), ((),), {}, {"x": 1},
)  # fmt: skip


def settings(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where every setting that a profile may have stands."""
    for name, field in part.model_fields.items():
        yield (*path, name)
        if hasattr(field.annotation, "model_fields"):
            yield from settings(field.annotation, (*path, name))


def test_mistakes_are_told_in_words_of_toml() -> None:
    """Each setting, with values of every wrong type: no message is one of a Python library."""
    said = set()
    for place in settings(Profile):
        for odd in (True, -1, float("nan"), "", ("x",), {"x": 1}):
            content: dict[str, Any] = {"question": "?"}
            part = content
            for name in place[:-1]:
                part = part.setdefault(name, {})
            part[place[-1]] = odd
            try:
                parse(content, source="odd.toml")
            except SetupError as error:
                said.update(str(error).splitlines()[1:])
    assert len(said) > 100
    foreign = ("Input", "valid ", "String", "Tuple", "tuple", "dictionary", "Field", "pattern")
    assert [line for line in said if any(word in line for word in foreign)] == []


def changed(content: dict[str, Any], places: list[tuple[str, ...]], chance: random.Random) -> Any:
    """A profile with a few settings that are something odd."""
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 1, 2))):
        *inside, last = chance.choice(places)
        parent = content
        for name in inside:
            parent = parent.setdefault(name, {})
            if not isinstance(parent, dict):
                break
        else:
            parent[last] = chance.choice(ODD)
    return content


def used(seeds: range, most_used: int) -> tuple[int, int]:
    """How many odd profiles are refused, and of how many others a plan and a check were made."""
    read = [tomllib.loads(path.read_text()) for path in sorted(shipped_directory().glob("*"))]
    # A replay needs its trace, which `resolve` looks for.
    shipped = [content for content in read if "replay" not in content]
    places = [place for place in settings(Profile) if place[0] != "replay"]
    refused = planned = 0
    for seed in seeds:
        chance = random.Random(seed)
        content = {"question": "?", **changed(chance.choice(shipped), places, chance)}
        try:
            profile = parse(content, source="odd.toml")
        except SetupError:
            refused += 1
            continue
        if planned == most_used:
            continue
        planned += 1
        try:
            findings_of(observe(profile, SAMPLE).seen())
            plan = plan_of(profile, STORAGE)
            plan_text("odd", profile.question, plan, Page(width=90, colour=False, ascii_only=False))
        except SetupError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"profile of seed {seed} was taken, and fails") from error
    return refused, planned


def test_an_odd_profile_is_refused_or_can_be_planned() -> None:
    """Whatever its settings are, a profile that is taken can be checked and planned."""
    refused, planned = used(range(100), 6)
    assert refused > 30
    assert planned == 6


@pytest.mark.long
@pytest.mark.thorough
def test_many_odd_profiles() -> None:
    """The same for more of them; some minutes."""
    refused, planned = used(range(1000, 4000), 300)
    assert refused > 1000
    assert planned == 300
