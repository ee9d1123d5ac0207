"""Answers to requests that cannot be executed, with the service's error code if there is one."""

from __future__ import annotations

import datetime as dt

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer
from harness.gateway.messages import Defect, Request
from harness.gateway.requests import read_request
from harness.model.operation import Kind

_METHODS = "DELETE, GET, HEAD, MERGE, OPTIONS, PATCH, POST, PUT"
_UPDATES = (Kind.UPSERT_REPLACE, Kind.UPSERT_MERGE, Kind.UPDATE_REPLACE, Kind.UPDATE_MERGE)
_TOO_LARGE = "The request body is too large and exceeds the maximum permissible limit."
_ENTITY_TOO_LARGE = "The entity is larger than the maximum allowed size (1MB)."


def refusal_of(request: Request, now: dt.datetime) -> tuple[str, GatewayAnswer]:
    """Return the rule that a request breaks, and the answer.

    Args:
        request: A request with a defect, or without a path.
        now: UTC.
    """
    headers, defect = request.headers, request.defect
    if defect is Defect.BODY_TOO_LARGE:
        if read_request(request.method, request.target, headers, b"").kind in _UPDATES:
            return "size", answers.error(400, "EntityTooLarge", _ENTITY_TOO_LARGE, headers, now)
        return "size", answers.error(413, "RequestBodyTooLarge", _TOO_LARGE, headers, now)
    if defect is Defect.HEAD_TOO_LARGE:
        message = "The head of the request is larger than 128 KiB."
        return "size", answers.error(431, "RequestHeadTooLarge", message, headers, now)
    if defect is Defect.TOO_SLOW:
        message = "The request did not arrive in time."
        return "slow", answers.error(408, "RequestTimeout", message, headers, now)
    if defect is Defect.UNKNOWN_METHOD or request.method == "CONNECT":
        message = "The resource doesn't support the specified Http Verb."
        answer = answers.error(405, "UnsupportedHttpVerb", message, headers, now)
        return "method", answer._replace(headers={**answer.headers, "Allow": _METHODS})
    message = "The request is not well-formed HTTP."
    return "malformed", answers.error(400, "InvalidInput", message, headers, now)
