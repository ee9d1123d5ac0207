"""Variables that lead an application to other endpoints of its account than the gateway.

Names and values are looked at, because applications name their variables as they like. A variable
that is not recognized reaches the application as it is.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from harness.endpoint.address import is_account_name, is_table_host
from harness.model.services import BESIDE, USUAL, beside_at
from harness.model.services.service import Server

_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_RUN_TOGETHER = re.compile(r"(?i)storage(?=account|key|name)|account(?=name|key)")
_SERVICES = {"STORAGE", "TABLE", "TABLES", "COSMOS", "COSMOSDB"}
_NAMES = (["STORAGE", "NAME"], ["COSMOS", "NAME"], ["COSMOSDB", "NAME"])
_HOSTS = re.compile(r"[a-z0-9.-]+")
_SERVERS = {str(one.port): one.server for one in (USUAL, *BESIDE)}
_EMULATOR = re.compile(rf"(?:127\.0\.0\.1|localhost|\[::1\]):({'|'.join(_SERVERS)})\b")
"""Its usual ports."""
_KNOWN = {"accountname", "usedevelopmentstorage", *(one.field.lower() for one in (USUAL, *BESIDE))}
_LETTERS = {one.server[0] for one in (USUAL, *BESIDE)}
"""By which a SAS for an account names its services."""
_CONNECTION = re.compile(r"(?i)(?:AccountKey|SharedAccessSignature|UseDevelopmentStorage) *=")
_KEY = re.compile(r"[A-Za-z0-9+/]{86}==")
"""The 64 bytes of an account key, of Storage or Cosmos DB, in base64."""
_SECRETS = (
    re.compile(r"(?i)(AccountKey *= *)[^;\"'\s]+"),
    re.compile(r"(?i)\b(sig=)[^&;\"'\s]+"),
)


class Lead(enum.Enum):
    """What a variable holds of an endpoint."""

    CONNECTION_STRING = enum.auto()
    URL = enum.auto()
    ACCOUNT = enum.auto()
    KEY = enum.auto()
    SAS = enum.auto()
    TEXT = enum.auto()
    """A text with one of these in it, such as settings in JSON."""


def leads_of(environ: Mapping[str, str]) -> dict[str, Lead]:
    """What each variable holds of an endpoint, without those that hold nothing of one.

    A name such as ``STORAGE_NAME`` says too little alone. Beside a key or a SAS it is the name of
    their account.
    """
    found = {name: lead for name, value in environ.items() if (lead := lead_of(name, value))}
    if not {Lead.KEY, Lead.SAS}.isdisjoint(found.values()):
        for name, value in environ.items():
            named = _words(name)[-2:] in _NAMES and is_account_name(value.strip())
            if named and name not in found:
                found[name] = Lead.ACCOUNT
    return found


def lead_of(name: str, value: str) -> Lead | None:
    """What a variable holds of an endpoint; None for nothing that is recognized."""
    value = value.strip()
    if _CONNECTION.search(value):
        return _of_connection(value)
    lowered = value.lower()
    hosts = _HOSTS.findall(lowered)
    if _EMULATOR.search(lowered) or any(map(server_at, hosts)):
        is_url = lowered.startswith(("http://", "https://")) and not re.search(r"[\s?]", value)
        return Lead.URL if is_url else Lead.TEXT
    if _is_sas(value):
        return Lead.SAS
    words = _words(name)
    return _of_name(words, value) if value and words else None


def server_at(host: str) -> Server | None:
    """The server whose endpoint has a host, in lower case; None for other hosts."""
    if is_table_host(host):
        return USUAL.server
    service = beside_at(host)
    return None if service is None else service.server


def server_of(value: str) -> Server:
    """The server to which the URL of an endpoint leads."""
    emulator = _EMULATOR.search(value.lower())
    if emulator is not None:
        return _SERVERS[emulator[1]]
    return next(filter(None, map(server_at, _HOSTS.findall(value.lower()))), USUAL.server)


def _words(name: str) -> list[str]:
    return [word.upper() for word in _WORDS.findall(_RUN_TOGETHER.sub(r"\g<0>_", name))]


def _of_connection(value: str) -> Lead | None:
    fields = [part.partition("=")[::2] for part in value.split(";") if part.strip()]
    names = {name.strip().lower() for name, _ in fields}
    if not all(re.fullmatch(r"\w+", name) for name in names):
        return Lead.TEXT
    return Lead.CONNECTION_STRING if _KNOWN & names else None


def _is_sas(value: str) -> bool:
    """Whether a value is a SAS token for an account, or for a table."""
    if "sig=" not in value or "://" in value:
        return False
    fields = parse_qs(value.lstrip("?"))
    return "sv" in fields and ("tn" in fields or not _LETTERS.isdisjoint(*fields.get("ss", [""])))


def _of_name(words: list[str], value: str) -> Lead | None:
    """What the name of a variable says, in words; a key has the form of one, or an Azure name."""
    service = not _SERVICES.isdisjoint(words)
    if _KEY.fullmatch(value) and (service or "ACCOUNT" in words):
        return Lead.KEY
    key = words[-1].rstrip("12") == "KEY"
    if key and service and words[0] in ("AZURE", "TABLES"):
        return Lead.KEY
    if service and "SAS" in words:
        return Lead.SAS
    account = words[-1] == "ACCOUNT" or words[-2:] == ["ACCOUNT", "NAME"]
    if account and (service or words == ["ACCOUNT", "NAME"]) and is_account_name(value):
        return Lead.ACCOUNT
    return None


def without_secrets(value: str, key: str) -> str:
    """A text with ``key`` in place of each account key, and an invalid signature in each SAS."""
    value = _SECRETS[0].sub(rf"\g<1>{key}", value)
    return _SECRETS[1].sub(rf"\g<1>{'A' * 43}%3D", value)
