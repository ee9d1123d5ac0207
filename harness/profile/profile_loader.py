"""Finds a profile by name or path, and validates it."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import pydantic

from harness.model.errors import SetupError, cut, did_you_mean, echoed
from harness.model.files import (
    MOST_DEPTH,
    mistake,
    mistakes_error,
    read_toml,
    read_toml_file,
    shipped,
    too_deep,
    with_tuples,
)
from harness.profile.designs import documented_designs, question_of
from harness.profile.settings.schema import Profile, broken_rules
from harness.workload.scenarios.registry import SCENARIOS

DEFAULT_PROFILE = "single-partition"
_OUTDATED = (
    *("scheme", "prefix", "periods", "row_keys"),
    *("distribution", "theta", "hot_operations", "hot_keys"),
)
_RENAMED = {
    "composite": "composite-key",
    "date": "log-by-date",
    "device": "inverted-timestamp",
    "tenant": "tenants",
}
"""Profiles of schemes that had another name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NamedProfile:
    """A profile, the name of its file without ``.toml``, and the name or path that was given."""

    name: str
    given: str
    profile: Profile


def shipped_directory() -> Path:
    return shipped("profiles")


def shipped_names() -> list[str]:
    return sorted(path.stem for path in shipped_directory().glob("*.toml"))


def shipped_questions() -> dict[str, str]:
    """The question of each shipped profile, by its name."""
    folder = shipped_directory()
    return {
        name: question_of((folder / f"{name}.toml").read_text(encoding="utf-8"))
        for name in shipped_names()
    }


def resolve(
    name: str, overrides: Iterable[str] = (), *, run_time_s: int | None = None, paths: bool = True
) -> NamedProfile:
    """Find, override and validate a profile; a `SetupError` lists every mistake.

    Args:
        name: Name of a shipped profile, or with ``paths`` the path of a TOML file.
        overrides: Values of ``--set``, each ``path.in.profile=value``.
        run_time_s: Length of the measured window, or the time limit of a search; None takes the
            profile's.
        paths: Whether ``name`` may be a path. The web form allows names only.
    """
    path = _find(name, paths)
    text, content = read_toml_file(path, "profile")
    content.setdefault("question", question_of(text))
    _place_files(content, path.parent)
    for override in overrides:
        _override(content, override)
    if run_time_s is not None:
        setting = parse(content, source=path.name).load_model.run_time_setting
        if setting is None:
            raise SetupError(
                f"profile {path.stem} has stages, which set the run time: leave -t out, or change "
                "for_s of the stages"
            )
        _override(content, f"{setting}={run_time_s}")
    profile = parse(content, source=path.name)
    return NamedProfile(name=path.stem, given=name, profile=profile)


def parse(content: Mapping[str, Any], *, source: str) -> Profile:
    """Validate the content of a profile; a `SetupError` lists every mistake with its place."""
    content = with_tuples(dict(content))
    if message := _outdated_keys(content.get("keys"), content.get("scenario")):
        raise mistakes_error(f"profile {source}", [message])
    mistakes: list[str] = []
    wrong: set[str] = set()
    try:
        profile = Profile.model_validate(content)
    except pydantic.ValidationError as error:
        for item in error.errors(include_url=False):
            # A default that depends on another setting is not made if anything is wrong.
            if item["type"] != "default_factory_not_called":
                hint = _hint(item["loc"]) if item["type"] == "extra_forbidden" else ""
                mistakes.append(mistake(item) + hint)
                wrong.add(str(item["loc"][0]))
        right = {name: part for name, part in content.items() if name not in wrong}
        # The other parts are checked against each other; the question is a stand-in.
        profile = Profile.model_validate({"question": "?", **right})
    mistakes += broken_rules(profile, wrong)
    if mistakes:
        raise mistakes_error(f"profile {source}", mistakes)
    return profile


def _outdated_keys(keys: Any, scenario: Any) -> str:
    """What to write instead of ``[keys]`` as before fields had names; empty if they are not so."""
    if not isinstance(keys, dict):
        return ""
    found = [name for name in _OUTDATED if name in keys]
    templates = not {"partition_key", "row_key"}.isdisjoint(keys)
    if "partitions" in keys and (scenario is not None or (found and not templates)):
        found.append("partitions")
    if not found:
        return ""
    scheme = keys.get("scheme", "spread")
    names = (scheme, f"compare-{scheme}", _RENAMED.get(scheme, ""), "compare-spread")
    designs = {one.name: one.toml for one in documented_designs()}
    form = next(designs[name] for name in names if name in designs)
    if scenario is not None:
        known = SCENARIOS.get(scenario) if isinstance(scenario, str) else None
        field = known.field if known is not None else "partition"
        form = f'[fields.{field}]\nvalues = 50\ndistribution = "zipfian"'
    named = ", ".join(f"keys.{one}" for one in found)
    return (
        f"{named}: not in use any more. Name the fields of the data, and the keys made of them, as "
        "here (`harness schemes` explains them):\n    " + form.replace("\n", "\n    ")
    )


def _place_files(content: dict[str, Any], folder: Path) -> None:
    """The paths of a scenario and of values are relative to the profile."""
    scenario = content.get("scenario")
    if isinstance(scenario, str) and ":" in scenario:
        content["scenario"] = str(folder / scenario)
    fields = content.get("fields")
    for field in fields.values() if isinstance(fields, dict) else ():
        if isinstance(field, dict) and isinstance(field.get("from"), str) and field["from"]:
            field["from"] = str(folder / field["from"])


def _hint(place: tuple[int | str, ...]) -> str:
    """The setting that may have been meant by an unknown one at ``place``."""
    part: Any = Profile
    # The number of a stage, and the name of a field, are no settings.
    names = [name for name in place[:-1] if isinstance(name, str)]
    for name in names[:1] if names[:1] == ["fields"] else names:
        field = part.model_fields.get(name)
        annotations = () if field is None else (field.annotation, *get_args(field.annotation))
        part = next((one for one in annotations if hasattr(one, "model_fields")), None)
        if part is None:
            return ""
    return did_you_mean(str(place[-1]), part.model_fields)


def _find(name: str, paths: bool) -> Path:
    names = shipped_names()
    if name in names:
        return shipped_directory() / f"{name}.toml"
    looks_like_path = name.endswith(".toml") or "/" in name
    if paths and looks_like_path:
        if os.path.isfile(name):
            return Path(name)
        raise SetupError(f"there is no profile file {cut(name)}")
    if looks_like_path:
        raise SetupError(f"only shipped profiles can be chosen here: {', '.join(names)}")
    raise unknown_profile(name, "a file of your own is named by its path, which ends in .toml")


def unknown_profile(name: str, more: str = "") -> SetupError:
    """The error for the name of no shipped profile; ``more`` is a further hint."""
    near = did_you_mean(name, shipped_names()) or "."
    hints = f"`harness profiles` lists them{more and f'; {more}'}"
    return SetupError(f"there is no profile {echoed(name)}{near} {hints}")


def _override(content: dict[str, Any], override: str) -> None:
    """Apply one ``--set``."""
    path, equals, text = override.partition("=")
    parts = path.strip().split(".")
    shown = f"--set {echoed(override)}"
    if not equals or not all(parts):
        raise SetupError(f"{shown} is not of the form load.users=20")
    if len(override.strip().splitlines()) > 1:
        raise SetupError(f"{shown} has several lines; use one --set for each value")
    try:
        if len(parts) > MOST_DEPTH:
            raise too_deep()
        place = content
        for part in parts[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise SetupError(f"{shown}: {cut(part)} is a value and has no parts")
        place[parts[-1]] = _value(text.strip())
    except ValueError as error:
        raise SetupError(f"{shown}: {error}") from error


def _value(text: str) -> Any:
    """``text`` as a TOML value, or as a string if it is not one: quotes can be left out."""
    try:
        return read_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
