"""The queue session: puts, gets, peeks, updates and deletes of messages, built as bytes."""

from __future__ import annotations

import re

from harness.endpoint.attempts import OperationAttempts, Page
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.queues import QueueRequestWriter, read_messages
from harness.endpoint.protocol.requests import Token
from harness.endpoint.retrying import RetryingSession
from harness.endpoint.session import SessionOptions
from harness.model.operation import MESSAGE_TEXT, Message, Operation
from harness.model.outcome import SUCCESS, Outcome, Result
from harness.model.services.queues import MAX_MESSAGE_BYTES, MAX_MESSAGES
from harness.model.services.service import store_of

_not_xml = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
"""Characters that no XML 1.0 document can hold, and so no message that is not encoded."""


def queue_problem(operation: Operation) -> str | None:
    """Why ``operation`` cannot be one on messages of a queue; None where it can."""
    if not operation.kind.on_messages:
        return (
            f"the operation {operation.label!r} is not one on messages: use put_message, "
            "get_messages, peek_messages, update_message and delete_message"
        )
    if operation.top is not None and not 1 <= operation.top <= MAX_MESSAGES:
        return f"one request gets 1 to {MAX_MESSAGES} messages, not {operation.top}"
    text = str((operation.properties or {}).get(MESSAGE_TEXT, ""))
    if _not_xml(text):
        return "a message has a character that XML cannot hold: encode its text, as with Base64"
    if (size := len(text.encode())) > MAX_MESSAGE_BYTES:
        return (
            f"a message has {size:,} bytes, and the service takes at most {MAX_MESSAGE_BYTES:,}, "
            "after Base64 if the text is encoded: lower entity.size_bytes, or keep large contents "
            "elsewhere"
        )
    return None


class QueueSession(RetryingSession):
    """Sends operations on messages, each as one request.

    The partition of an operation is its queue, whose name begins with that of the run. A message
    counts as an entity.

    A put whose answer was lost is not sent again, because that could put the message twice; it is
    ambiguous. A get whose answer was lost is sent again: its messages are visible again after their
    time. A delete or an update that is refused after its answer was lost is ambiguous.
    """

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._requests = QueueRequestWriter(options.endpoint)
        self._run = options.table

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        attempts, kind = OperationAttempts(operation, self._on_attempt), operation.kind
        outcome, value = self._attempt(
            attempts, operation, self._send, resend_lost=not kind.doubles
        )
        if kind.doubles and attempts.attempts[-1].ambiguous:
            outcome = Outcome.AMBIGUOUS
        messages = value if outcome is SUCCESS and isinstance(value, list) else []
        received = messages if kind.receives else ()
        return attempts.result(
            outcome,
            messages,
            due_s,
            len(received),
            oldest_s=max((message.age_s for message in received), default=0.0),
        )

    def _send(self, operation: Operation, exchange: Exchange) -> list[Message]:
        queue = store_of(self._run, operation.partition_key)
        message = self._requests.single(operation, queue, exchange.client_request_id)
        self._channel.send(message, exchange)
        return read_messages(operation, exchange)

    def _page(self, query: Operation, exchange: Exchange, token: Token | None, found: int) -> Page:
        raise TypeError("queues have no queries")
