"""What an error response says: code, message, and the wait that the service asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_MESSAGE_CHARACTERS = 200
_LONGEST_NUMBER = 15
_ERROR_BYTES = 16 * 1024
"""How much of an error is read. Errors of the service are much shorter."""
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A code becomes a name in counts and metrics, so text that does not look like one is dropped."""
_CODE_ELEMENT = re.compile(r"<(?:\w+:)?code(?:\s[^<>]*)?>\s*([^<\s][^<]*)<", re.IGNORECASE)
_MESSAGE_ELEMENT = re.compile(r"<(?:\w+:)?message(?:\s[^<>]*)?>([^<]*)<", re.IGNORECASE)
_NO_ERROR = (ValueError, LookupError, TypeError, RecursionError)


def read_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """The service's error code and message, each empty where the response holds none.

    The table service responds in JSON; front ends and gateways before it respond in XML. Nothing
    that a response can hold raises an error. Names of headers are found in any case.
    """
    code = headers.get("x-ms-error-code") or ""
    message = ""
    text = body[:_ERROR_BYTES].decode("utf-8", "replace")
    try:
        error = json.loads(text)["odata.error"]
        code = code or str(error["code"])
        message = str(error["message"]["value"])
    except _NO_ERROR:
        if (element := _CODE_ELEMENT.search(text)) is not None:
            code = code or element[1].rstrip()
        message = element[1] if (element := _MESSAGE_ELEMENT.search(text)) is not None else text
    return (code if _CODE.fullmatch(code) else ""), shorten(message)


def shorten(message: str) -> str:
    """The first line of a message, at most 200 characters; unprintable ones become question marks.

    Further lines of the service repeat the request id and the time, which attempts record.
    """
    line = message.strip().partition("\n")[0].strip()[:_MESSAGE_CHARACTERS]
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The wait that the service asks for, in seconds; 0 for none."""
    for name, unit_s in (("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name) or ""
        if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER:
            return int(value) * unit_s
    return 0.0
