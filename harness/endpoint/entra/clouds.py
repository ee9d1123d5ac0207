"""The audience of a token and the authority that issues it, which follow from the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.model.target import EndpointKind

AUTHORITY_HOST = "AZURE_AUTHORITY_HOST"
"""The variable that names the authority, as in every Azure SDK."""

_PUBLIC, _US, _CHINA = "com", "us", "cn"
_AUTHORITIES = {
    _PUBLIC: "login.microsoftonline.com",
    _US: "login.microsoftonline.us",
    _CHINA: "login.chinacloudapi.cn",
}
_CLOUDS_OF_HOSTS = {
    ".usgovcloudapi.net": _US,
    ".azure.us": _US,
    ".chinacloudapi.cn": _CHINA,
    ".azure.cn": _CHINA,
    ".windows.net": _PUBLIC,
    ".azure.net": _PUBLIC,
    ".azure.com": _PUBLIC,
}


class Cloud(NamedTuple):
    """What a token is for, and where it comes from.

    Attributes:
        audience: The resource that accepts the token, such as ``https://storage.azure.com``.
        authority: Host name of the authority that issues it.
    """

    audience: str
    authority: str


def cloud_of(kind: EndpointKind, hostname: str, environ: Mapping[str, str]) -> Cloud:
    """The cloud of an endpoint.

    Host names of Azure name their cloud. For other host names, such as custom domains, the
    authority in ``environ`` tells the cloud.
    """
    named = environ.get(AUTHORITY_HOST, "").strip().removeprefix("https://").strip("/")
    cloud = next(
        (cloud for ending, cloud in _CLOUDS_OF_HOSTS.items() if hostname.endswith(ending)), None
    )
    if cloud is None:
        last = named.rpartition(".")[2]
        cloud = last if last in _AUTHORITIES else _PUBLIC
    service = "cosmos" if kind.cosmos else "storage"
    return Cloud(f"https://{service}.azure.{cloud}", named or _AUTHORITIES[cloud])
