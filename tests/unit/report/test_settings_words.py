"""How many users there are, in words."""

from __future__ import annotations

from typing import Any

import pytest

from harness.profile.profile_loader import parse
from harness.report.load import users_words

USERS = (
    {"for_s": 2, "to_users": 2},
    {"for_s": 3, "to_users": 1200},
    {"for_s": 4, "to_users": 3, "jump": True},
)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"load": {"users": 1}}, "1 user"),
        ({"load": {"users": 20}}, "20 users"),
        ({"load": {"users": 4}, "stage": USERS}, "2 to 1,200 users (3 stages)"),
        ({"load": {"users": 1}, "stage": USERS[1:2]}, "1 to 1,200 users (1 stage)"),
        ({"load": {"users": 7}, "stage": ({"for_s": 5, "to_entities_per_s": 9},)}, "7 users"),
    ],
)
def test_stages_of_users_are_a_range(parts: dict[str, Any], said: str) -> None:
    """The number before the first stage counts too; rates of stages say nothing of users."""
    profile = parse({"question": "Why?", **parts}, source="a test")
    assert users_words(profile.model_dump(), profile.load.users) == said
