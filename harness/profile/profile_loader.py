"""From a name or a path to a profile, or to the list of all that is wrong with it."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pydantic

from harness.model.errors import SetupError
from harness.profile.fitting import misfits
from harness.profile.schema import Profile

DEFAULT_PROFILE = "single-partition"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NamedProfile:
    """A profile and the name it was asked for by."""

    name: str
    profile: Profile


def shipped_directory() -> Path:
    """Where the shipped profiles are."""
    return Path(__file__).resolve().parents[2] / "profiles"


def shipped_names(directory: Path) -> list[str]:
    """Names of the profiles of a directory, in order."""
    return sorted(path.stem for path in directory.glob("*.toml"))


def question_of(text: str) -> str:
    """The question of a profile: its first line, a comment."""
    first = text.split("\n", 1)[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


def resolve(
    name: str,
    overrides: Iterable[str] = (),
    *,
    run_time_s: int | None = None,
    directory: Path,
    paths: bool = True,
) -> NamedProfile:
    """The profile called ``name``.

    Args:
        name: Name of a profile in ``directory``, or with ``paths`` the path of a TOML file.
        overrides: ``path.in.profile=value`` each, as of ``--set``.
        run_time_s: Length of the measured window, or the most that a search may take; None is
            the profile's.
        directory: Where the shipped profiles are.
        paths: Whether a path is taken. The web form takes names only.

    Raises:
        SetupError: there is no such profile, or it is wrong; every mistake is named. Or there is
            a run time, and the profile has stages, which have their own.
    """
    path = _find(name, directory, paths)
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SetupError(f"profile {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"profile {path.name} is no text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"profile {path.name} is no TOML: {error}") from error
    content.setdefault("question", question_of(text))
    scenario = content.get("scenario")
    if isinstance(scenario, str) and ":" in scenario:
        # A file is beside the profile that names it, wherever that is run from.
        content["scenario"] = str(path.parent / scenario)
    for override in overrides:
        _override(content, override)
    if run_time_s is not None:
        if content.get("stage"):
            raise SetupError(
                f"a run time (-t) does not go with profile {path.stem}: its stages say how long it "
                "takes; leave the run time out, or change for_s of the stages"
            )
        bound = "search.most_s" if "search" in content else "load.run_time_s"
        _override(content, f"{bound}={run_time_s}")
    return NamedProfile(name=path.stem, profile=parse(content, source=path.name))


def parse(content: Mapping[str, Any], *, source: str) -> Profile:
    """The profile with this content.

    Raises:
        SetupError: it is wrong; every mistake is named with its place.
    """
    # TOML has arrays; a profile is frozen and has tuples. JSON mode takes one for the other.
    content = _frozen(dict(content))
    mistakes: list[str] = []
    wrong: set[str] = set()
    try:
        profile = Profile.model_validate(content)
    except pydantic.ValidationError as error:
        for item in error.errors(include_url=False):
            # A default that follows from another setting is not made where anything is wrong.
            if item["type"] != "default_factory_not_called":
                mistakes.append(_mistake(item))
                wrong.add(str(item["loc"][0]))
        right = {name: part for name, part in content.items() if name not in wrong}
        # Only to see how the other parts go together; nothing is asked by it.
        profile = Profile.model_validate({"question": "?", **right})
    mistakes += misfits(profile, wrong)
    if not mistakes:
        return profile
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    listed = "\n".join(f"  {line}" for line in mistakes)
    raise SetupError(f"profile {source} has {count}:\n{listed}")


def _find(name: str, directory: Path, paths: bool) -> Path:
    names = shipped_names(directory)
    if name in names:
        return directory / f"{name}.toml"
    looks_like_path = name.endswith(".toml") or "/" in name
    if paths and looks_like_path:
        path = Path(name)
        if path.is_file():
            return path
        raise SetupError(f"there is no profile file {name}")
    listed = ", ".join(names)
    if looks_like_path:
        raise SetupError(f"a profile is chosen here by its name; there are: {listed}")
    raise SetupError(
        f"there is no profile {name!r}; there are: {listed}. A file of your own is given by its "
        "path, ending in .toml"
    )


def _override(content: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise SetupError(f"--set {override!r} is not of the form load.users=20")
    place = content
    for part in parts[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise SetupError(f"--set {override!r}: {part} is a value and has no parts")
    place[parts[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    """``text`` as a TOML value; what is none is a string, so that quotes can be left out."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value


def _mistake(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    # TOML knows no tuples.
    message = item["msg"].removeprefix("Value error, ").replace("valid tuple", "valid list")
    if item["type"] == "extra_forbidden":
        message = "there is no such setting"
    elif item["type"] == "missing":
        message = "is missing"
    elif item["type"] == "tuple_type" and isinstance(item["input"], dict):
        message = f"should be a list: [[{place}]] in place of [{place}]"
    elif not place or isinstance(item["input"], dict):
        return f"{place}: {message}" if place else message
    else:
        message = f"{message} (it is {item['input']!r})"
    return f"{place}: {message}"
