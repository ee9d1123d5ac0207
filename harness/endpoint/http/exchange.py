"""What one attempt put on the wire, what came back, and the ways in which nothing whole did."""

from __future__ import annotations

from typing import Any

from azure.core.exceptions import ServiceRequestError, ServiceResponseError

from harness.model.outcome import Fault


class RequestFault(ServiceRequestError):
    """The request did not leave. ``fault`` says why."""

    def __init__(self, fault: Fault, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.fault = fault


class ResponseFault(ServiceResponseError):
    """The request may have been done, but no whole answer came. ``fault`` says why."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class PartRefused(Exception):
    """A transaction was answered, and one of its parts was refused, so that none was done.

    Attributes:
        status: Of the part.
        headers: Of the part's answer.
        body: Of the part's answer.
    """

    def __init__(self, status: int, headers: AnswerHeaders, body: bytes) -> None:
        super().__init__(f"a part was refused with {status}")
        self.status = status
        self.headers = headers
        self.body = body


class AnswerHeaders(dict[str, str]):
    """Headers of an answer; names in any case."""

    __slots__ = ()

    @classmethod
    def of(cls, head: bytes) -> AnswerHeaders:
        """Those of a whole head, its first line left out.

        ``Date`` is left out too: nobody reads it, and the SDK would parse it every time.
        """
        headers = cls()
        for line in head.split(b"\r\n")[1:]:
            name, colon, value = line.partition(b":")
            if colon:
                headers.add(name.decode("latin-1"), value.strip().decode("latin-1"))
        headers.pop("date", None)
        return headers

    def add(self, name: str, value: str) -> None:
        """Keep a header."""
        self[name.lower()] = value

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a header, or ``default``."""
        return dict.get(self, name.lower(), default)

    def __getitem__(self, name: str) -> str:
        """The value of a header."""
        return dict.__getitem__(self, name.lower())

    def __contains__(self, name: object) -> bool:
        """Whether the answer has the header."""
        return isinstance(name, str) and dict.__contains__(self, name.lower())


class Exchange:
    """What one attempt put on the wire and got from it. The transport fills it in.

    Attributes:
        client_request_id: What the request is called in the service's logs.
        sent_s: When a connection was free for it; None if none ever was. Waiting for a place in
            the pool is the generator's time, connecting is the service's.
        done_s: When the answer was whole, or the fault was seen.
        status: HTTP status; 0 where no whole answer came.
        reason: The words behind the status.
        head: Of the answer, as it came, where ``headers`` are yet to be read from it.
        body: That of the answer.
        bytes_sent: Head and body; what TLS adds is not seen.
        bytes_received: Head and body, as far as they came.
    """

    # Defaults of the class: one is made for every attempt, and most need few of them.
    sent_s: float | None = None
    done_s: float = 0.0
    status: int = 0
    reason: str = ""
    head: bytes = b""
    body: bytes = b""
    bytes_sent: int = 0
    bytes_received: int = 0
    _headers: AnswerHeaders | None = None

    def __init__(self, client_request_id: str) -> None:
        self.client_request_id = client_request_id

    @property
    def headers(self) -> AnswerHeaders:
        """Those of the answer; not kept of a 204, of which nobody reads any."""
        if self._headers is None:
            self._headers = AnswerHeaders.of(self.head)
        return self._headers

    @headers.setter
    def headers(self, headers: AnswerHeaders) -> None:
        self._headers = headers
