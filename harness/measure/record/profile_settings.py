"""The profile as a record holds it: of any version, so that little is known of it.

What outputs read of it has a type here; everything else is shown as it is.
"""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
from pydantic import Strict

from harness.measure.record.findings import RecordPart

# What a profile calls no cap is infinity, in a record that was not read.
_Rate = Annotated[float, Strict()]
_Users = Annotated[int, Strict(), pydantic.Field(ge=0, le=10**9)]
_Text = Annotated[str, Strict()]


class _Load(RecordPart):
    users: _Users = 0
    max_entities_per_s: _Rate | None = None
    emulator_max_entities_per_s: _Rate | None = None
    entities_per_s: _Rate | None = None
    operations_per_s: _Rate | None = None
    arrivals: _Text = ""


class _Stage(RecordPart):
    to_entities_per_s: _Rate | None = None
    to_operations_per_s: _Rate | None = None
    to_users: _Users | None = None


class _Search(RecordPart):
    start_per_s: _Rate
    max_per_s: _Rate


class _Read(RecordPart):
    """What outputs read of a profile."""

    load: _Load = _Load()
    stage: tuple[_Stage, ...] | None = None
    search: _Search | None = None


def _readable(profile: dict[str, Any]) -> dict[str, Any]:
    """``profile`` itself, as it is.

    Raises:
        ValueError: outputs could not read it.
    """
    _Read.model_validate(profile)
    return profile


Settings = Annotated[dict[str, Any], pydantic.AfterValidator(_readable)]
