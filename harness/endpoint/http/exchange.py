"""One HTTP exchange: what an attempt sent and received, and the faults that can end it."""

from __future__ import annotations

import email.errors
import traceback
from collections.abc import Callable
from typing import Any

from azure.core.exceptions import ServiceRequestError, ServiceResponseError

from harness.model.outcome import Fault

LIBRARY_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    email.errors.MessageError,
)
"""What the SDK and the standard library's parser of mail raise for a response that they do not
expect. To be caught only where such a library reads a response: in code of the harness the same
errors are defects."""


def by_library(error: BaseException | None) -> bool:
    """Whether an error is one of `LIBRARY_ERRORS`, and no code of the harness raised it.

    That code calls the library, and the library calls it: the innermost frame decides. Only the
    headers of a response, of which the library asks for what is not there, are no such code.
    """
    if not isinstance(error, LIBRARY_ERRORS):
        return False
    modules = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = [name for name in modules if name != __name__][-1:]
    return not any(name.startswith("harness.") for name in raised_in)


CHARGE_HEADER = "x-ms-request-charge"
"""Cosmos DB names in it what a request cost, in request units."""


class RequestFault(ServiceRequestError):
    """The request did not leave; ``fault`` says why."""

    def __init__(self, fault: Fault, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.fault = fault


class ResponseFault(ServiceResponseError):
    """The request may have been executed, but has no usable response; ``fault`` says why."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def bad_answer(message: str) -> ResponseFault:
    """The fault of a response that the table service does not give."""
    return ResponseFault(Fault.BAD_ANSWER, message)


class PartRefused(Exception):
    """The service refused one part of a transaction with this response, and executed none."""

    def __init__(self, status: int, headers: ResponseHeaders, body: bytes) -> None:
        super().__init__(f"a part was refused with {status}")
        self.status = status
        self.headers = headers
        self.body = body


class ResponseHeaders(dict[str, str]):
    """Headers of a response. Names are found in any case."""

    __slots__ = ()

    @classmethod
    def of(cls, head: bytes) -> ResponseHeaders:
        """The headers in a head, whose first line is the status line.

        ``Date`` is left out: nothing reads it, and the SDK would parse it every time.
        """
        headers = cls()
        for line in head.split(b"\r\n")[1:]:
            name, colon, value = line.partition(b":")
            if colon:
                headers.add(name.decode("latin-1"), value.strip().decode("latin-1"))
        headers.pop("date", None)
        return headers

    def add(self, name: str, value: str) -> None:
        self[name.lower()] = value

    def get(self, name: str, default: Any = None) -> Any:
        return dict.get(self, name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return dict.__getitem__(self, name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and dict.__contains__(self, name.lower())


class Exchange:
    """The request and response of one attempt. The channel fills it in.

    Attributes:
        sent_s: When the request had a place in the pool; None if it never had. Waiting for a place
            is the generator's time, connecting is the service's.
        queued_s: How long it waited for that place.
        done_s: When the response was whole, or the fault was seen.
        status: 0 where no whole response came.
        head: Head of the response; ``headers`` are parsed from it when asked for.
        bytes_sent: Bytes of head and body, without TLS.
        bytes_received: The same, as far as they came.
    """

    # Class-level defaults, because an exchange is made for every attempt and sets few of them.
    sent_s: float | None = None
    queued_s: float = 0.0
    done_s: float = 0.0
    status: int = 0
    head: bytes = b""
    body: bytes = b""
    bytes_sent: int = 0
    bytes_received: int = 0
    _headers: ResponseHeaders | None = None

    def __init__(self, client_request_id: str) -> None:
        self.client_request_id = client_request_id

    @property
    def headers(self) -> ResponseHeaders:
        """Headers of the response; empty for a bare 204, of which nothing but a charge is read."""
        if self._headers is None:
            self._headers = ResponseHeaders.of(self.head)
        return self._headers

    @headers.setter
    def headers(self, headers: ResponseHeaders) -> None:
        self._headers = headers

    def header(self, name: str) -> str:
        """One header, by its name in lower case; empty if there is none. Others stay unparsed."""
        if self._headers is not None:
            return self._headers.get(name, "")  # type: ignore[no-any-return]
        at = self.head.lower().find(b"\r\n%s:" % name.encode("ascii"))
        if at < 0:
            return ""
        line = self.head[at + 2 :].partition(b"\r\n")[0]
        return line.partition(b":")[2].strip().decode("latin-1")


Clock = Callable[[], float]
"""Returns UTC seconds; see `harness.model.process.SteadyClock`."""
