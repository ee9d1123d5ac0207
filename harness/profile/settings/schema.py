"""What a profile may say. Units are in the names; what is not here is an error.

The defaults are those of the shipped profiles, so that a profile says only what is special to it.
"""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
from pydantic import Field

from harness.measure.verdict.conditions import parse_condition
from harness.profile.settings.load_settings import (
    Audit,
    Limits,
    Load,
    Loading,
    Retry,
    Search,
    Session,
    Stage,
)
from harness.profile.settings.part import Part
from harness.profile.settings.workload_settings import Entity, Keys, Mix, Query, Transaction, Weight
from harness.workload.keys.schemes import SCHEMES


def _condition(text: str) -> str:
    parse_condition(text)
    return text


def _default_mix(parts: dict[str, Any]) -> Mix:
    """What is sent where a profile does not say it: half is read, as far as the scheme can."""
    if SCHEMES[parts["keys"].scheme].one_row:
        return Mix(point_query=50, upsert_merge=50)
    return Mix(point_query=50, upsert_merge=40, transaction=10)


class Profile(Part):
    """One question, and the load that answers it.

    Whether its parts go together is not told here: `harness.profile.profile_loader`
    looks at it.
    """

    question: Annotated[str, Field(min_length=1)] = Field(
        description="what the profile answers; a file says it in its first line, a comment"
    )
    user_class: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = Field(
        default="ProfileUser", description="the Locust user class that sends"
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        default=1, description="the same seed gives the same list of operations"
    )
    conditions: tuple[Annotated[str, pydantic.AfterValidator(_condition)], ...] = Field(
        default=(), description="what must hold for the run to pass; exit code 1 otherwise"
    )
    scenario: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a whole application instead of a mix: a shipped one's name, or file.py:Class "
        "of a file in the profile's folder",
    )
    actions: dict[str, Weight] = Field(
        default={}, description="weights of what the scenario does, where they differ from its own"
    )
    keys: Keys = Keys()
    entity: Entity = Entity()
    mix: Mix = Field(
        default_factory=_default_mix,
        description="Default: point_query 50, upsert_merge 40, transaction 10; or, where the "
        "scheme gives each entity a partition of its own, point_query 50, upsert_merge 50",
    )
    query: Query = Query()
    transaction: Transaction = Transaction()
    loading: Loading = Loading()
    load: Load = Load()
    stage: tuple[Stage, ...] = Field(
        default=(), description="in place of one rate: one after the other"
    )
    search: Search | None = Field(default=None, description="look for the highest sustainable rate")
    retry: Retry = Retry()
    session: Session = Session()
    limits: Limits = Limits()
    audit: Audit = Audit()
    fail_fast: bool = Field(
        default=False, description="end the run as soon as a condition cannot be met any more"
    )
