"""When a token is renewed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.entra.token import REFUSALS_APART_S, Identity, Renewal, Token

HOUR_S = 3600.0


def token(life_s: float, *, fetched_s: float = 1000.0, refresh_s: float | None = None) -> Token:
    return Token(
        value="t",
        fetched_s=fetched_s,
        expires_s=fetched_s + life_s,
        refresh_s=refresh_s,
        identity=Identity(),
    )


@pytest.mark.parametrize(
    ("life_s", "refresh_s", "after_s"),
    [
        (HOUR_S, None, HOUR_S - 290),
        (HOUR_S, 1000.0 + 1800, 1800),
        (HOUR_S, 1000.0 + HOUR_S, HOUR_S - 290),
        (600, None, 360),
        (10, None, 6),
        (0.5, None, 1),
    ],
)
def test_a_token_is_renewed_ahead_of_its_end(
    life_s: float, refresh_s: float | None, after_s: float
) -> None:
    """Five minutes ahead, or when the issuer recommends it; for a short life a part of it."""
    renewal = Renewal()
    renewal.taken(token(life_s, refresh_s=refresh_s))
    assert renewal.due_s == pytest.approx(1000 + after_s)


def test_a_failed_renewal_is_tried_again_with_longer_waits() -> None:
    """1, 2, 4 s and so on, at most 30 s; a new token ends that."""
    renewal = Renewal()
    renewal.taken(token(HOUR_S))
    assert [renewal.failed(2000.0) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert (renewal.due_s, renewal.failures) == (2030, 8)
    renewal.taken(token(HOUR_S, fetched_s=2030))
    assert (renewal.due_s, renewal.failures) == (2030 + HOUR_S - 290, 0)


def test_a_cache_that_returns_the_same_token_is_asked_again_later() -> None:
    """After a tenth of the time that is left, which is no failure."""
    renewal, current = Renewal(), token(24 * HOUR_S)
    renewal.taken(current)
    renewal.unchanged(current, 1000.0 + 12 * HOUR_S)
    assert renewal.due_s == 1000 + 13.2 * HOUR_S
    renewal.unchanged(current, current.expires_s + 5)
    assert renewal.due_s == current.expires_s + 6
    assert renewal.failures == 0


def test_refused_requests_renew_a_token_once() -> None:
    """Many requests that are refused with one token are followed by one renewal."""
    renewal = Renewal()
    assert renewal.may_follow_refusal(50.0)
    assert not renewal.may_follow_refusal(50.1)
    assert not renewal.may_follow_refusal(50.0 + REFUSALS_APART_S - 0.1)
    assert renewal.may_follow_refusal(50.0 + REFUSALS_APART_S)


@given(
    life_s=st.floats(min_value=1, max_value=1e6),
    refresh=st.none() | st.floats(min_value=-1, max_value=2),
)
def test_a_renewal_is_never_late(life_s: float, refresh: float | None) -> None:
    """It is due after the fetch, and not later than the end of the token by more than a second."""
    renewal = Renewal()
    refresh_s = None if refresh is None else 1000 + refresh * life_s
    renewal.taken(token(life_s, refresh_s=refresh_s))
    assert 1000 < renewal.due_s <= 1001 + life_s
