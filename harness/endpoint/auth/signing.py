"""What signs requests: one `Signer` for each type of credential.

Shared Key is that of the Table service: verb, MD5, type, date, and the account before the path. A
shared access signature is part of the address and signs nothing more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from email.utils import formatdate
from typing import Never, Protocol

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from harness.endpoint.auth.credential import Credential, Sas, SharedKey

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Signer(Protocol):
    """Authenticates requests.

    Attributes:
        query: The end of every request's query; empty where the credential is not in the address.
    """

    query: str

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        """The ``Authorization`` header of one request; empty where it gets none.

        Args:
            method: The verb.
            content_type: The ``Content-Type`` header; empty where there is none.
            date: The ``x-ms-date`` header.
            path: The path as it is sent, without the query.
        """


class SharedKeySigner:
    """Signs with an account key.

    Args:
        credential: The account and its key.

    Raises:
        ValueError: the key is not base64.
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
        # HMAC's two hashes (RFC 2104), fed with the key once: `hmac` would feed it every time.
        self._inner = hashlib.sha256(key.translate(_INNER))
        self._outer = hashlib.sha256(key.translate(_OUTER))

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        inner = self._inner.copy()
        inner.update(f"{method}\n\n{content_type}\n{date}\n{self._resource}{path}".encode())
        outer = self._outer.copy()
        outer.update(inner.digest())
        signature = binascii.b2a_base64(outer.digest(), newline=False).decode("ascii")
        return self._begin + signature


class SasSigner:
    """Appends a shared access signature to every address."""

    __slots__ = ("query",)

    def __init__(self, credential: Sas) -> None:
        self.query = credential.token

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        return ""


def signer_of(credential: Credential) -> Signer:
    """The signer for a credential.

    Raises:
        ValueError: the account key is not base64.
        TypeError: the credential is of an unknown type.
    """
    match credential:
        case SharedKey():
            return SharedKeySigner(credential)
        case Sas():
            return SasSigner(credential)
    raise _unknown(credential)


def sdk_credential(credential: Credential) -> AzureNamedKeyCredential | AzureSasCredential:
    """A credential in the type that azure-data-tables takes.

    Raises:
        TypeError: the credential is of an unknown type.
    """
    match credential:
        case SharedKey():
            return AzureNamedKeyCredential(credential.account, credential.key)
        case Sas():
            return AzureSasCredential(credential.token)
    raise _unknown(credential)


def _unknown(credential: Never) -> TypeError:
    # Only the name of its type is shown: the rest may be secret.
    return TypeError(f"no signer for a credential of type {type(credential).__name__}")


class ServiceDate:
    """The current date as the service expects it, formatted once a second."""

    __slots__ = ("_date", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._date = ""

    def now(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True)
        return self._date
