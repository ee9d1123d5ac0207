"""Chooses the load model of a profile, or of the settings in a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, TypeVar

from harness.profile.load.closed import ClosedLoad
from harness.profile.load.constant import ConstantRate
from harness.profile.load.model import Load, LoadModel, Replay
from harness.profile.load.replay import ReplayAtInstants, ReplayAtRate
from harness.profile.load.search import Search, SearchedRate
from harness.profile.load.stages import Stage, StagesOfRates, StagesOfUsers
from harness.profile.settings.parts import Part

_P = TypeVar("_P", bound=Part)


def asked_for(
    load: Load, stages: tuple[Stage, ...], search: Search | None, replay: Replay | None
) -> Iterator[LoadModel]:
    """Every load model that the settings ask for; the first is that of the run."""
    if search is not None:
        yield SearchedRate(load, replay, search)
    if stages:
        of_users = stages[0].unit == "to_users"
        yield (StagesOfUsers if of_users else StagesOfRates)(load, replay, stages)
    if load.rate_per_s is not None:
        yield ConstantRate(load) if replay is None else ReplayAtRate(load, replay)
    if replay is not None:
        yield ReplayAtInstants(load, replay)
    yield ClosedLoad(load)


def recorded_load(profile: Mapping[str, Any]) -> LoadModel:
    """The load model of the settings in a record, whose types were checked when it was read."""
    load, search, replay = profile.get("load") or {}, profile.get("search"), profile.get("replay")
    stages = tuple(_settings(Stage, stage) for stage in profile.get("stage") or ())
    if len(units := {stage.unit for stage in stages}) > 1 or None in units:
        stages = ()
    return next(
        asked_for(
            _settings(Load, with_caps(load)),
            stages,
            None if search is None else _settings(Search, search),
            None if replay is None else _settings(Replay, replay),
        )
    )


def with_caps(load: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a load in a record, with the infinite caps that JSON does not have.

    An emulator whose cap is not there has none. An account without one has the default, unless the
    load was ``uncapped``.
    """
    known = {**load, "emulator_max_entities_per_s": load.get("emulator_max_entities_per_s") or inf}
    if known.pop("uncapped", False):
        known["max_entities_per_s"] = inf
    return known


def _settings(part: type[_P], content: Mapping[str, Any]) -> _P:
    """The settings without validation; those that a record does not hold are as by default."""
    known = {name: value for name, value in content.items() if name in part.model_fields}
    return part.model_construct(**known)
