"""The form of requests and answers, where a service has its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from harness.gateway import answers, cosmos_answers
from harness.gateway.answers import GatewayAnswer
from harness.gateway.cosmos import RULES
from harness.gateway.model import Decision, Model
from harness.gateway.requests import Asked, weights_in
from harness.model.operation import Kind

_TRANSACTION = Kind.TRANSACTION


class Dialect:
    """That of Table storage, which Azurite speaks: nothing is changed."""

    def read(self, asked: Asked, body: bytes) -> Asked:
        """Return a request with what its limits need besides keys and counts."""
        return asked

    def refusal(
        self, decision: Decision, asked: Asked, headers: Mapping[str, str], now: dt.datetime
    ) -> GatewayAnswer:
        """Return the refusal of a request by a limit."""
        return answers.refusal(
            decision.status,
            decision.scope,
            headers,
            now,
            retry_after_ms=decision.retry_after_ms,
        )

    def body_for_azurite(self, headers: Mapping[str, str], body: bytes) -> bytes:
        """Return the body of a request as Azurite understands it."""
        return body

    async def of_azurite(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer of Azurite with the status that the service has for it.

        Raises:
            UpstreamBroken: the endpoint broke off.
        """
        return answer

    def in_form(self, answer: GatewayAnswer, charged: int) -> GatewayAnswer:
        """Return an answer in the form of the service; ``charged`` is in hundredths of an RU."""
        return answer


class CosmosDialect(Dialect):
    """That of Cosmos DB, which names a charge in each answer; see `cosmos_answers`."""

    def read(self, asked: Asked, body: bytes) -> Asked:
        """Return a request with the sizes of its entities."""
        return asked._replace(weights=weights_in(asked, body))

    def refusal(
        self, decision: Decision, asked: Asked, headers: Mapping[str, str], now: dt.datetime
    ) -> GatewayAnswer:
        """Return the refusal of a request, or of a part of a transaction."""
        return cosmos_answers.refusal(
            RULES[decision.rule],
            decision.retry_after_ms,
            of_transaction=asked.kind is _TRANSACTION,
        )

    def body_for_azurite(self, headers: Mapping[str, str], body: bytes) -> bytes:
        """Return a body whose transaction Azurite understands."""
        return cosmos_answers.for_azurite(headers, body)

    async def of_azurite(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer, whole: the charge is in its head."""
        return cosmos_answers.of_azurite(await _whole(answer))

    def in_form(self, answer: GatewayAnswer, charged: int) -> GatewayAnswer:
        """Return an answer with its charge."""
        return cosmos_answers.in_form(answer, charged)


def dialect_of(model: Model) -> Dialect:
    """The dialect of the service whose limits the model has."""
    return Dialect() if model.units is None else CosmosDialect()


async def _whole(answer: GatewayAnswer) -> GatewayAnswer:
    """Return an answer with all of its body, which is held in memory.

    Raises:
        UpstreamBroken: the endpoint broke off.
    """
    if answer.rest is None:
        return answer
    pieces = [answer.body]
    while piece := await answer.rest.next_piece():
        pieces.append(piece)
    return answer._replace(body=b"".join(pieces), rest=None, length=None)
