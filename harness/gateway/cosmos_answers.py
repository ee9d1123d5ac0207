"""Answers in the form of Azure Cosmos DB for Table, and requests in a form that Azurite accepts.

Source: answers of the service that the tests of azure-data-tables for Python keep (recorded in 2020
and 2021): errors have a code and a message, which ends with the request's id, and no header of
Storage such as ``x-ms-error-code``. Those answers show no ``x-ms-request-charge``; the stand-in
states it in every answer, as other APIs of Azure Cosmos DB do. No answer with 429 is kept there:
its code and message are assumed.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.model.request_units import charge_text

_JSON = "application/json;odata=minimalmetadata"
_SERVER = "Microsoft-HTTPAPI/2.0"
_REFUSALS = {
    "throughput": (
        "TooManyRequests",
        "The request rate is too large. Please retry after the time in x-ms-retry-after-ms.",
    ),
    "key_length": ("KeyValueTooLarge", "A key of the entity is longer than is allowed."),
    "verb": ("MethodNotAllowed", "PATCH is not supported: send POST with X-HTTP-Method: MERGE."),
}
_STORAGE_ONLY = frozenset(
    (
        b"x-ms-error-code",
        b"x-ms-request-id",
        b"x-ms-version",
        b"server",
        b"content-type",
        b"content-length",
    )
)
_CHARGE = "x-ms-request-charge"
_PART_HEAD = re.compile(
    rb"^POST(?=[ \t][^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*?X-HTTP-Method:[ \t]*(\w+))",
    re.MULTILINE | re.IGNORECASE,
)


def refusal(rule: str, status: int, wait_ms: int = 0) -> GatewayAnswer:
    """Return the refusal of a request by a rule of `harness.gateway.cosmos`."""
    answer = _error(status, *_REFUSALS[rule])
    if not wait_ms:
        return answer
    return answer._replace(headers={**answer.headers, "x-ms-retry-after-ms": str(wait_ms)})


def in_form(answer: GatewayAnswer, charged: int) -> GatewayAnswer:
    """Return an answer in the form of Cosmos DB.

    Args:
        answer: An answer of Azurite, or of the gateway.
        charged: Request units in hundredths.
    """
    if answer.status >= 400 and answer.rest is None:
        code, message = _code_and_message(answer)
        if code:
            own = _error(answer.status, code, message)
            kept = _fields(answer.headers, _STORAGE_ONLY)
            answer = own._replace(headers=Headers([*kept, *Headers.of(own.headers).fields]))
    fields = _fields(answer.headers, frozenset((b"server",)))
    stated = ((b"Server", _SERVER.encode()), (_CHARGE.encode(), charge_text(charged).encode()))
    return answer._replace(headers=Headers([*fields, *stated]))


def for_azurite(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a body whose transaction Azurite understands.

    SDKs send a merge in a transaction as POST with X-HTTP-Method to Cosmos DB. Azurite reads that
    header of whole requests only.
    """
    if b"X-HTTP-Method" not in body:
        return body
    if not headers.get("Content-Type", "").startswith("multipart/mixed"):
        return body
    return _PART_HEAD.sub(lambda found: found[1].upper(), body)


def _error(status: int, code: str, message: str) -> GatewayAnswer:
    text = f"{message}\nRequestID:{uuid.uuid4()}\n"
    document = {"odata.error": {"code": code, "message": {"lang": "en-us", "value": text}}}
    return GatewayAnswer(
        status=status,
        headers={"Content-Type": _JSON},
        body=json.dumps(document, separators=(",", ":")).encode() + b"\r\n",
    )


def _code_and_message(answer: GatewayAnswer) -> tuple[str, str]:
    """Code and first line of the message of an error; empty texts if there are none."""
    try:
        error = json.loads(answer.body)["odata.error"]
        return str(error["code"]), str(error["message"]["value"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def _fields(headers: Mapping[str, str], unwanted: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    return [field for field in Headers.of(headers).fields if field[0].lower() not in unwanted]
