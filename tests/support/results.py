"""Results of operations, made by hand, and ledgers that counted them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.measure.counts.ledger import Ledger
from harness.model.operation import Operation
from harness.model.outcome import Attempt, Outcome, Result


def done(operation: Operation, sent_s: float, took_s: float = 0.01, **more: Any) -> Result:
    """A result: success at the first attempt, with one entity, unless ``more`` says otherwise."""
    attempt = Attempt(status=204, sent_s=sent_s, latency_s=took_s)
    said: dict[str, Any] = {"outcome": Outcome.SUCCESS, "attempts": (attempt,), "entities": 1}
    return Result(operation=operation, sent_s=sent_s, done_s=sent_s + took_s, **{**said, **more})


def add_all(ledger: Ledger, results: Iterable[Result]) -> Ledger:
    """The ledger, after these results were due, sent and counted."""
    for result in results:
        ledger.note_due()
        ledger.note_sent()
        for attempt in result.attempts[: result.reported]:
            ledger.add_attempt(result.operation, attempt)
        ledger.add(result)
    return ledger
