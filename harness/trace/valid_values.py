"""The values that the columns of a trace may have. A file can hold anything."""

from __future__ import annotations

from typing import Any

import orjson

from harness.model.operation import Kind
from harness.model.outcome import Outcome, Scope
from harness.trace.head import TraceError
from harness.trace.operations import Answer, TracedShape

LATEST_MS = 4_102_444_800_000
"""The year 2100."""
MOST = {
    "at": LATEST_MS,
    "took": 2**42,
    "entities": 2**31,
    "returned": 2**31,
    "sent": 2**40,
    "received": 2**40,
}
"""Numbers of operations are below these."""
OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_KINDS = {kind.value: kind for kind in Kind}
_SCOPES = frozenset(scope.value for scope in Scope)


def require_numbers(name: str, missing: int, lowest: int, highest: int) -> None:
    """Require that the values of a column are those of operations.

    Raises:
        TraceError: a value is missing, negative or absurd.
    """
    if missing:
        raise TraceError(f"an operation has no {name}")
    if 0 <= lowest <= highest < MOST[name]:
        return
    if name == "at":
        raise TraceError("an instant is before 1970 or after 2099")
    raise TraceError(f"{name} is {lowest} or {highest}")


def shape_of(
    answers: Any,
    kind: Any,
    label: Any,
    outcome: Any,
    estimated: Any,
    client: Any = None,
    table: Any = None,
) -> TracedShape:
    """What operations have in common; ``answers`` is JSON.

    Raises:
        TraceError: it is not what a trace holds.
    """
    try:
        attempts = tuple(
            Answer(answer["status"], answer["error_code"] or "", answer["scope"] or "")
            for answer in orjson.loads(answers)
        )
        if not attempts or not all(
            isinstance(answer.status, int) and answer.scope in _SCOPES for answer in attempts
        ):
            raise TraceError("an operation has no valid attempt")
        return TracedShape(
            client=client or "",
            kind=_KINDS[kind],
            table=table or "",
            label=label or kind,
            outcome=OUTCOMES[outcome],
            estimated=bool(estimated),
            attempts=attempts,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"what an operation is cannot be read ({error!r})") from error
