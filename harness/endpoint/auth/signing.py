"""Who sends a request: the date it is sent at, and the proof that it may be.

Shared Key is that of the Table service: verb, MD5, type, date, and the account before the path. A
shared access signature is part of the address and signs nothing more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from email.utils import formatdate
from typing import Protocol

from harness.endpoint.connection import Sas, SharedKey

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Signer(Protocol):
    """What lets requests in. Bearer tokens would be one more of these.

    Attributes:
        query: What the address of every request has to end with; empty for nothing.
    """

    query: str

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        """Value of ``Authorization`` of one request; empty where there is none.

        Args:
            method: Its verb.
            content_type: Its ``Content-Type``; empty where it has none.
            date: Its ``x-ms-date``.
            path: Its path as it is sent, without the query.
        """


class SharedKeySigner:
    """Signs with an account key.

    Args:
        credential: The account and its key.

    Raises:
        ValueError: the key is no base64.
    """

    __slots__ = ("_begin", "_inner", "_outer", "_resource", "query")

    def __init__(self, credential: SharedKey) -> None:
        self.query = ""
        self._resource = f"/{credential.account}"
        self._begin = f"SharedKey {credential.account}:"
        key = base64.b64decode(credential.key, validate=True)
        if len(key) > _BLOCK_BYTES:
            key = hashlib.sha256(key).digest()
        key = key.ljust(_BLOCK_BYTES, b"\0")
        # HMAC's two hashes, fed with the key once (RFC 2104): `hmac` would do it every time.
        self._inner = hashlib.sha256(key.translate(_INNER))
        self._outer = hashlib.sha256(key.translate(_OUTER))

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        """See `Signer`."""
        inner = self._inner.copy()
        inner.update(f"{method}\n\n{content_type}\n{date}\n{self._resource}{path}".encode())
        outer = self._outer.copy()
        outer.update(inner.digest())
        signature = binascii.b2a_base64(outer.digest(), newline=False).decode("ascii")
        return self._begin + signature


class SasSigner:
    """Lets in by a shared access signature.

    Args:
        credential: The signature.
    """

    __slots__ = ("query",)

    def __init__(self, credential: Sas) -> None:
        self.query = credential.token

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        """See `Signer`."""
        return ""


def signer_of(credential: SharedKey | Sas) -> Signer:
    """What signs with this credential.

    Raises:
        ValueError: an account key that is no base64.
    """
    return SasSigner(credential) if isinstance(credential, Sas) else SharedKeySigner(credential)


class ServiceDate:
    """The date for the service: the machine's own clock, formatted once a second."""

    __slots__ = ("_date", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._date = ""

    def now(self) -> str:
        """The date now."""
        second = int(time.time())
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True)
        return self._date
