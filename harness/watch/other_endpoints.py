"""Variables that lead an application to other endpoints of tables or queues than the gateway.

Names and values are looked at, because applications name their variables as they like. A variable
that is not recognized reaches the application as it is.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from harness.endpoint.address import is_account_name, is_table_host
from harness.gateway.queue_requests import is_queue_host

_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_RUN_TOGETHER = re.compile(r"(?i)storage(?=account|key|name)|account(?=name|key)")
_SERVICES = {"STORAGE", "TABLE", "TABLES", "COSMOS", "COSMOSDB"}
_NAMES = (["STORAGE", "NAME"], ["COSMOS", "NAME"], ["COSMOSDB", "NAME"])
_HOSTS = re.compile(r"[a-z0-9.-]+")
_EMULATOR = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):1000([12])\b")
"""Its usual ports: the first is that of queues."""
_CONNECTION = re.compile(r"(?i)(?:AccountKey|SharedAccessSignature|UseDevelopmentStorage) *=")
_KEY = re.compile(r"[A-Za-z0-9+/]{86}==")
"""The 64 bytes of an account key, of Storage or Cosmos DB, in base64."""
_SECRETS = (
    re.compile(r"(?i)(AccountKey *= *)[^;\"'\s]+"),
    re.compile(r"(?i)\b(sig=)[^&;\"'\s]+"),
)


class Lead(enum.Enum):
    """What a variable holds of an endpoint of tables or queues."""

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
    if _EMULATOR.search(lowered) or any(is_table_host(one) or is_queue_host(one) for one in hosts):
        is_url = lowered.startswith(("http://", "https://")) and not re.search(r"[\s?]", value)
        return Lead.URL if is_url else Lead.TEXT
    if _is_sas(value):
        return Lead.SAS
    words = _words(name)
    return _of_name(words, value) if value and words else None


def leads_to_queue(value: str) -> bool:
    """Whether the URL of an endpoint is that of queues."""
    emulator = _EMULATOR.search(value.lower())
    if emulator is not None:
        return emulator[1] == "1"
    return any(map(is_queue_host, _HOSTS.findall(value.lower())))


def _words(name: str) -> list[str]:
    return [word.upper() for word in _WORDS.findall(_RUN_TOGETHER.sub(r"\g<0>_", name))]


def _of_connection(value: str) -> Lead | None:
    fields = [part.partition("=")[::2] for part in value.split(";") if part.strip()]
    names = {name.strip().lower() for name, _ in fields}
    if not all(re.fullmatch(r"\w+", name) for name in names):
        return Lead.TEXT
    known = {"accountname", "tableendpoint", "queueendpoint", "usedevelopmentstorage"} & names
    return Lead.CONNECTION_STRING if known else None


def _is_sas(value: str) -> bool:
    """Whether a value is a SAS token for tables or queues."""
    if "sig=" not in value or "://" in value:
        return False
    fields = parse_qs(value.lstrip("?"))
    return "sv" in fields and ("tn" in fields or not {"t", "q"}.isdisjoint(*fields.get("ss", [""])))


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
