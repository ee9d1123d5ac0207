"""The base of everything in a profile."""

from __future__ import annotations

import pydantic


class Part(pydantic.BaseModel):
    """A part of a profile: frozen, of the types that are written, without unknown settings."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)
