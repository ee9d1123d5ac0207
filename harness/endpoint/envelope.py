"""The one pipeline policy of the tuned SDK session: date, name and signature on every attempt.

The SDK's own list of thirteen policies costs as much as building the request. What the list does
and this does not: retry, log, trace, redirect. The first is done outside, where it is counted.
"""

from __future__ import annotations

import json
from typing import Any

from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy
from azure.core.rest import HttpRequest

from harness.endpoint.connection import Sas, SharedKey
from harness.endpoint.exchange import Exchange, ResponseFault
from harness.endpoint.transport import Answer
from harness.endpoint.wire.signing import ServiceDate, signer_of
from harness.model.outcome import Fault


class Envelope(HTTPPolicy[HttpRequest, Answer]):
    """Completes and signs requests, and decodes the JSON of successful answers.

    The call has to bring its `Exchange` as the pipeline option ``exchange``.

    Args:
        credential: What signs the requests.

    Raises:
        ValueError: an account key that is no base64.
    """

    def __init__(self, credential: SharedKey | Sas) -> None:
        super().__init__()
        self._signer = signer_of(credential)
        self._date = ServiceDate()

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, Answer]:
        """Complete the request, send it, decode the answer.

        Raises:
            ResponseFault: a success whose body is no JSON object.
        """
        http = request.http_request
        exchange: Exchange = request.context.options["exchange"]
        headers = http.headers
        headers["x-ms-date"] = date = self._date.now()
        headers["x-ms-client-request-id"] = exchange.client_request_id
        url, signer = http.url, self._signer
        path = url[url.index("/", url.index("//") + 2) :].partition("?")[0]
        content_type = headers.get("Content-Type", "")
        if signature := signer.authorization(http.method, content_type, date, path):
            headers["Authorization"] = signature
        if signer.query:
            http.url = f"{url}{'&' if '?' in url else '?'}{signer.query}"
        response = self.next.send(request)
        # The SDK's pager expects what its retry policy leaves here.
        request.context["location_mode"] = "primary"
        if exchange.status in (200, 201):
            request.context["deserialized_data"] = _decoded(exchange.body)
        return response


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise ResponseFault(Fault.BAD_ANSWER, f"the answer is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ResponseFault(Fault.BAD_ANSWER, "the answer is no JSON object")
    return document
