"""When a token is renewed: ahead of its end, and after a failure again. Time is an argument."""

from __future__ import annotations

from harness.endpoint.entra.token import Token

AHEAD_S = 290.0
"""How long before its end a token is renewed. Azure CLI and other caches return the old token
until five minutes before its end (MSAL)."""
_SHARE_AHEAD = 0.4
"""The share of a short lifetime that is left when the token is renewed."""
_SHARE_UNCHANGED = 0.1
"""Of the time to its end, how long to wait after the current token was returned once more."""
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
REFUSALS_APART_S = 30.0
"""Refused requests renew the token at most so often: they may have another cause."""


class Renewal:
    """The time of the next renewal of one token. All times are UTC seconds.

    Attributes:
        due_s: When to try next; infinite without a token.
        failures: Tries in a row that failed.
    """

    def __init__(self) -> None:
        self.due_s = float("inf")
        self.failures = 0
        self._refused_s = -float("inf")

    def taken(self, token: Token) -> None:
        """A new token was fetched."""
        self.failures = 0
        life_s = token.expires_s - token.fetched_s
        due_s = token.expires_s - min(AHEAD_S, _SHARE_AHEAD * life_s)
        if token.refresh_s is not None:
            due_s = min(due_s, token.refresh_s)
        self.due_s = max(due_s, token.fetched_s + _FIRST_DELAY_S)

    def unchanged(self, token: Token, now_s: float) -> None:
        """A try at ``now_s`` returned ``token``, which is the current one, from a cache."""
        self.failures = 0
        self.due_s = now_s + max(_SHARE_UNCHANGED * (token.expires_s - now_s), _FIRST_DELAY_S)

    def failed(self, now_s: float) -> float:
        """A try failed at ``now_s``. Returns the seconds until the next one."""
        delay_s = min(_FIRST_DELAY_S * 2.0**self.failures, _LONGEST_DELAY_S)
        self.failures += 1
        self.due_s = now_s + delay_s
        return delay_s

    def may_follow_refusal(self, now_s: float) -> bool:
        """Whether a request that was refused at ``now_s`` renews the token; True marks the time."""
        if now_s - self._refused_s < REFUSALS_APART_S:
            return False
        self._refused_s = now_s
        return True
