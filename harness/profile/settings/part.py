"""The base of everything in a profile."""

from __future__ import annotations

import pydantic

EXAMPLE_RUN_ID = "00000000T000000Z-00000000"
"""A run id for sizes that are computed before a run: every run id has this length."""


class Part(pydantic.BaseModel):
    """A part of a profile: frozen, of the types that are written, without unknown settings."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)
