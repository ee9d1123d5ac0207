"""Requests to Blob Storage: how they are read, and what the gateway itself answers to them.

    PUT /account/container/name              writes a blob, with comp=block a block of one
    GET /account/container/name              reads it, or a range of it
    GET /account/container?restype=container&comp=list    lists the blobs of a container

The account is in the path, or in the host: ``account.blob.core.windows.net``. A blob is a
partition: its key is "account name + container name + blob name", and "a single blob can only be
served by a single server" (data partitioning strategies, "Partitioning Azure Blob Storage"). No
document names a rate that a blob serves. Bodies are never read. Forms and answers are those of the
REST reference of Blob Storage.
"""

from __future__ import annotations

import email.utils
import uuid
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qs, unquote_to_bytes

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer, Unpassed
from harness.gateway.dialect import XmlDialect, in_xml
from harness.gateway.requests import NOTHING, Asked
from harness.model.operation import Kind
from harness.model.partition import store_beside
from harness.model.services import beside_at
from harness.model.services.blobs import AZURE_BLOBS

_TABLE = AZURE_BLOBS.beside
_ROOT = "$root"
"""The container of a blob whose address names none."""
_OF_ACCOUNT = ("service", "account")
_PUTS = {
    "": Kind.PUT_BLOB,
    "block": Kind.PUT_BLOCK,
    "blocklist": Kind.PUT_BLOCK_LIST,
    "appendblock": Kind.APPEND_BLOCK,
    "page": Kind.PUT_PAGE,
}
_MADE = frozenset(_PUTS.values())
_EMPTY_LIST = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>"


def read_blob_request(method: str, target: str, *, in_path: bool = True) -> Asked:
    """Parse a request; ``target`` is percent-encoded, with the account first if ``in_path``.

    A batch is a request about neither: which blobs it deletes is in its body.
    """
    path, _, query = target.partition("?")
    container, _, name = path[1:].partition("/")
    if in_path:
        container, _, name = name.partition("/")
    given = {key.lower(): texts[0].lower() for key, texts in parse_qs(query).items()}
    kind, comp = given.get("restype", ""), given.get("comp", "")
    if not container or kind in _OF_ACCOUNT or comp == "batch":
        return NOTHING
    container, name = _decoded(container), _decoded(name)
    if kind != "container" and not name:
        # A blob cannot be listed; what is asked so is the account.
        if comp == "list":
            return NOTHING
        container, name = _ROOT, container
    if kind == "container":
        store = store_beside(container)
        if (method, comp) == ("GET", "list"):
            return Asked(Kind.LIST_BLOBS, _TABLE, _TABLE, store, 1)
        return Asked(None, _TABLE, _TABLE, store, drops_table=(method, comp) == ("DELETE", ""))
    found = _kind_of(method, comp)
    return NOTHING if found is None else Asked(found, _TABLE, _TABLE, f"{container}/{name}", 1)


def _kind_of(method: str, comp: str) -> Kind | None:
    if method == "PUT":
        return _PUTS.get(comp, Kind.CHANGE_BLOB)
    if method == "DELETE":
        return Kind.CHANGE_BLOB if comp else Kind.DELETE_BLOB
    if (method, comp) in (("GET", ""), ("POST", "query")):
        return Kind.GET_BLOB
    return Kind.GET_BLOB_PROPERTIES if method in ("GET", "HEAD") else None


def _decoded(text: str) -> str:
    # Clients may send the bytes of UTF-8 as they are.
    return unquote_to_bytes(text.encode("latin-1", "replace")).decode("utf-8", "replace")


class BlobDialect(XmlDialect):
    """That of Blob Storage, whose bodies are contents."""

    server = AZURE_BLOBS.server
    opaque = True
    about_stores: ClassVar = {
        "GET": "GetContainerProperties",
        "HEAD": "GetContainerProperties",
        "PUT": "CreateContainer",
        "DELETE": "DeleteContainer",
    }

    def read(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
        in_path = self._in_path and beside_at(headers.get("Host", "")) is None
        return read_blob_request(method, target, in_path=in_path)

    def acknowledged(self, request: Unpassed) -> GatewayAnswer:
        kind, made = request.asked.kind, answers.usual_headers(request.headers, str(uuid.uuid4()))
        if kind is Kind.DELETE_BLOB:
            return GatewayAnswer(202, made)
        changed = email.utils.format_datetime(request.now, usegmt=True)
        told = {"ETag": f'"0x{uuid.uuid4().hex[:15].upper()}"', "Last-Modified": changed}
        return GatewayAnswer(201 if kind in _MADE else 200, made | told)

    def unstored(self, request: Unpassed) -> GatewayAnswer:
        method, asked, headers = request.method, request.asked, request.headers
        if asked.writes:
            return self.acknowledged(request)
        made = answers.usual_headers(headers, str(uuid.uuid4()))
        if asked.kind is Kind.LIST_BLOBS:
            return in_xml(200, made, _EMPTY_LIST)
        if asked.kind is not None:
            message = "The specified blob does not exist."
            return answers.error(404, "BlobNotFound", message, headers, request.now)
        if asked.partition_key is not None and method in self.about_stores:
            # "Set Container Metadata" and "Set Container ACL" create nothing.
            statuses = {} if "comp=" in request.target else {"PUT": 201, "DELETE": 202}
            return GatewayAnswer(statuses.get(method, 200), made)
        return super().unstored(request)
