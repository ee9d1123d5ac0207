"""A budget of billable transactions, from which each request is taken before it is sent."""

from __future__ import annotations

from collections.abc import Iterable


class BudgetSpent(Exception):
    """The budget of billable transactions is used up."""


class Budget:
    """Requests that may still be sent. Every request counts, answered or not; None is no limit."""

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.spent = 0

    def take(self) -> bool:
        """Take one request; False, and nothing is taken, if none is left."""
        if self.limit is not None and self.spent >= self.limit:
            return False
        self.spent += 1
        return True

    @property
    def left(self) -> int | None:
        """Requests that may still be sent; None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.spent)

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


class Budgets:
    """A budget of each account; ``each`` is in the order of the accounts.

    The first one that is used up ends the load: without that account it would be another load.
    """

    __slots__ = ("each",)

    def __init__(self, limits: Iterable[int | None] = (None,)) -> None:
        self.each = tuple(map(Budget, limits))

    def grant(self, limits: Iterable[int | None]) -> None:
        for budget, limit in zip(self.each, limits, strict=True):
            budget.limit = limit

    @property
    def exhausted(self) -> bool:
        # Asked before every operation: a generator would take longer.
        for budget in self.each:
            if budget.limit is not None and budget.spent >= budget.limit:
                return True
        return False

    @property
    def spent(self) -> tuple[int, ...]:
        """The requests of each account."""
        return tuple(budget.spent for budget in self.each)


def equal_parts(amount: int, count: int) -> list[int]:
    """``amount`` in ``count`` whole parts that add up to it and differ by 1 at most."""
    part, more = divmod(amount, count)
    return [part + (1 if rank < more else 0) for rank in range(count)]
