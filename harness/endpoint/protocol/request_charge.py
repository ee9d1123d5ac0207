"""What Cosmos DB charged for a request: the header ``x-ms-request-charge``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from harness.endpoint.http.exchange import CHARGE_HEADER, UNREADABLE, ResponseHeaders
from harness.endpoint.protocol.multipart import part_responses
from harness.model.request_units import hundredths

_NAME = CHARGE_HEADER.encode()
_TRANSACTION = 202


def charge_of(status: int, header: Callable[[str], str | None], body: bytes) -> int:
    """The charge of a response, in hundredths of a request unit.

    It is 0 where the service names none, or none that can be read. For a transaction it is that of
    the whole response, or the sum of the parts if only they name one.

    Args:
        status: HTTP status.
        header: Returns a header by its name in lower case; empty or None if there is none.
        body: The body.
    """
    if text := header(CHARGE_HEADER):
        return hundredths(text) or 0
    if status != _TRANSACTION or _NAME not in body:
        return 0
    with contextlib.suppress(*UNREADABLE):
        parts = part_responses(header("content-type") or "", body)
        texts = [ResponseHeaders.of(part.head).get(CHARGE_HEADER, "") for part in parts]
        return sum(hundredths(text) or 0 for text in texts)
    return 0
