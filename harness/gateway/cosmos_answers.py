"""Answers in the form of Azure Cosmos DB for Table, and requests in a form that Azurite accepts.

Source: answers of the service that the tests of azure-data-tables for Python keep (recorded in 2020
and 2021): errors have a code and a message, which ends with the request's id, and no header of
Storage such as ``x-ms-error-code``; a wrong signature is 401 Unauthorized. Those answers show no
``x-ms-request-charge``; the stand-in states it in every answer, as other APIs of Azure Cosmos DB
do. No answer with 429 is kept there: its message, and that a transaction is answered with 202 whose
part has the 429, follow from reports of users (azure-sdk-for-net, issue 26960; Streamstone, issue
41); its code, and where the wait is stated, are assumed.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from http import HTTPStatus

from harness.gateway.answers import GatewayAnswer
from harness.gateway.cosmos import CosmosRule
from harness.gateway.headers import Headers
from harness.model.request_units import charge_text

_JSON = "application/json;odata=minimalmetadata"
_SERVER = "Microsoft-HTTPAPI/2.0"
_REFUSED_CREDENTIALS = ("AuthenticationFailed", "AuthorizationFailure")
_XML_ERROR = re.compile(rb"<Code>(\w+)</Code>\s*<Message>([^<\n]*)")
_PART_ERROR = re.compile(rb'\{"odata\.error":[^\r\n]*\}')
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


def refusal(rule: CosmosRule, wait_ms: int = 0, *, of_transaction: bool = False) -> GatewayAnswer:
    """Return the refusal of a request by a rule."""
    answer = _error(rule.status, rule.error_code, rule.message)
    wait = {"x-ms-retry-after-ms": str(wait_ms)} if wait_ms else {}
    answer = answer._replace(headers={**answer.headers, **wait})
    if not of_transaction or not rule.of_part:
        return answer
    batch, changeset = (f"{name}_{uuid.uuid4()}" for name in ("batchresponse", "changesetresponse"))
    head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    line = f"HTTP/1.1 {rule.status} {HTTPStatus(rule.status).phrase}"
    text = (
        f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changeset}\r\n\r\n"
        f"--{changeset}\r\nContent-Type: application/http\r\n"
        f"Content-Transfer-Encoding: binary\r\n\r\n{line}\r\n{head}\r\n"
        f"{answer.body.decode()}--{changeset}--\r\n--{batch}--\r\n"
    )
    content_type = {"Content-Type": f"multipart/mixed; boundary={batch}"}
    return GatewayAnswer(status=202, headers={**content_type, **wait}, body=text.encode())


def of_azurite(answer: GatewayAnswer) -> GatewayAnswer:
    """Return an answer of Azurite with the status that Cosmos DB has for it."""
    if answer.status == 403 and answer.rest is None:
        code, message = _code_and_message(answer)
        if code in _REFUSED_CREDENTIALS:
            return _error(401, "Unauthorized", message)
    return answer


def in_form(answer: GatewayAnswer, charged: int) -> GatewayAnswer:
    """Return an answer in the form of Cosmos DB.

    Args:
        charged: Request units in hundredths.
    """
    if answer.status >= 400 and answer.rest is None:
        code, message = _code_and_message(answer)
        if code:
            own = _error(answer.status, code, message)
            kept = _fields(answer.headers, _STORAGE_ONLY)
            answer = own._replace(headers=Headers([*kept, *Headers.of(own.headers).fields]))
    elif answer.status == 202 and answer.rest is None:
        answer = answer._replace(body=_PART_ERROR.sub(_part_error, answer.body))
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
    return GatewayAnswer(
        status=status,
        headers={"Content-Type": _JSON},
        body=_document(code, message) + b"\r\n",
    )


def _document(code: str, message: str) -> bytes:
    text = f"{message}\nRequestID:{uuid.uuid4()}\n"
    document = {"odata.error": {"code": code, "message": {"lang": "en-us", "value": text}}}
    return json.dumps(document, separators=(",", ":")).encode()


def _part_error(found: re.Match[bytes]) -> bytes:
    code, message = _of_document(found[0])
    return _document(code, message) if code else found[0]


def _code_and_message(answer: GatewayAnswer) -> tuple[str, str]:
    """Code and first line of the message of an error; empty texts if there are none."""
    if (xml := _XML_ERROR.search(answer.body)) is not None:
        return xml[1].decode(), xml[2].decode("utf-8", "replace")
    return _of_document(answer.body)


def _of_document(body: bytes) -> tuple[str, str]:
    try:
        error = json.loads(body)["odata.error"]
        return str(error["code"]), str(error["message"]["value"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def _fields(headers: Mapping[str, str], unwanted: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    return [field for field in Headers.of(headers).fields if field[0].lower() not in unwanted]
