"""Queries read page by page, whatever sends the requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from harness.endpoint.attempts import OperationAttempts
from harness.endpoint.protocol.odata import Token
from harness.model.outcome import Outcome
from harness.workload.budget import BudgetSpent

Entity = Mapping[str, object]
Page = tuple[Sequence[Entity], Token | None]
"""The entities of a page and where the next page begins; None after the last page."""

_SHORTEST_PAGE = 100
"""The fewest entities in a page of an expected range, on average. A full page has 1,000."""
LOOP = "ContinuationLoop"
"""Error code of a response whose continuation token leads back to an earlier page."""


class Pace(Protocol):
    """Delays the further pages of queries until the schedule of the load allows them."""

    def walked(self, entities: int) -> None:
        """Charge the schedule for entities that a query scanned beyond its expected number."""

    def wait_page(self) -> None:
        """Wait until the schedule allows an unexpected page; `GreenletExit` if it ends before."""


class _Unpaced:
    def walked(self, entities: int) -> None:
        pass

    def wait_page(self) -> None:
        pass


UNPACED = _Unpaced()
"""Lets every page leave at once."""


def drain(
    attempts: OperationAttempts,
    send: Callable[[Token | None, int], tuple[Outcome, object]],
    pace: Pace,
    *,
    keep: bool,
) -> tuple[Outcome, list[Entity], int, bool]:
    """Read all pages of a query.

    Pages within the expected number of entities leave at once, as those of an application do, and
    so does one further page, which is often empty. Every other page waits for the schedule. Each of
    them counts as at least one entity, so that many small pages are paced too.

    Args:
        attempts: The attempts of the query; those of a page are reported before the next page.
        send: Sends the request for the page that begins at a token, with its retries. The second
            argument is the number of entities that earlier pages returned.

    Returns:
        Outcome, kept entities, number of returned entities, and whether the end was reached. A
        query that runs out of budget between two pages is a success.

    Raises:
        BudgetSpent: the budget was used up before the first page; nothing was sent.
        GreenletExit: the schedule ended before a page could leave.
    """
    query = attempts.operation
    found: list[Entity] = []
    returned = pages = 0
    whole = False
    charged = query.entities_asked
    # Pages that are not counted: those of the expected range, and one behind it.
    uncounted = charged // _SHORTEST_PAGE + 2 - charged
    token: Token | None = None
    # An earlier token, replaced at every power of two: any loop comes back to it (Brent).
    marked, mark_again = token, 1
    while True:
        try:
            outcome, value = send(token, returned)
        except BudgetSpent:
            if not pages:
                raise
            outcome = Outcome.SUCCESS
            break
        if outcome is not Outcome.SUCCESS:
            break
        entities, token = cast(Page, value)
        returned += len(entities)
        pages += 1
        if keep:
            found += entities
        whole = token is None or (query.top is not None and returned >= query.top)
        if whole:
            break
        if token == marked:
            attempts.attempts[-1] = dataclasses.replace(
                attempts.attempts[-1],
                error_code=LOOP,
                message="the continuation token leads back to an earlier page",
            )
            outcome = Outcome.UNEXPECTED
            break
        if pages == mark_again:
            marked, mark_again = token, 2 * mark_again
        attempts.report()
        used = max(returned, pages - uncounted)
        if used > charged:
            pace.walked(used - charged)
            charged = used
            pace.wait_page()
    if (used := max(returned, pages - uncounted)) > charged:
        pace.walked(used - charged)
    return outcome, found, returned, whole
