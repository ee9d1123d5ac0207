"""Which audience a token has, and which authority issues it."""

from __future__ import annotations

import pytest

from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.entra.token import Cloud, cloud_of


@pytest.mark.parametrize(
    ("host", "named", "audience", "authority"),
    [
        ("a.table.core.windows.net", "", "storage.azure.com", "login.microsoftonline.com"),
        ("a.z01.table.storage.azure.net", "", "storage.azure.com", "login.microsoftonline.com"),
        ("a.table.core.usgovcloudapi.net", "", "storage.azure.us", "login.microsoftonline.us"),
        ("a.table.core.chinacloudapi.cn", "", "storage.azure.cn", "login.chinacloudapi.cn"),
        ("a.table.cosmos.azure.com", "", "cosmos.azure.com", "login.microsoftonline.com"),
        ("a.table.cosmos.azure.us", "", "cosmos.azure.us", "login.microsoftonline.us"),
        ("a.table.cosmos.azure.cn", "", "cosmos.azure.cn", "login.chinacloudapi.cn"),
        ("127.0.0.1:10002/orders", "", "storage.azure.com", "login.microsoftonline.com"),
        ("tables.example.com/orders", "", "storage.azure.com", "login.microsoftonline.com"),
        (
            "tables.example.com/orders",
            "https://login.microsoftonline.us/",
            "storage.azure.us",
            "login.microsoftonline.us",
        ),
        (
            "tables.example.com/orders",
            "login.partner.microsoftonline.cn",
            "storage.azure.cn",
            "login.partner.microsoftonline.cn",
        ),
        ("a.table.core.windows.net", "login.contoso.us", "storage.azure.com", "login.contoso.us"),
        ("tables.example.com/orders", "adfs.contoso.org", "storage.azure.com", "adfs.contoso.org"),
    ],
)
def test_the_cloud_follows_from_the_host(
    host: str, named: str, audience: str, authority: str
) -> None:
    """The host decides the audience; AZURE_AUTHORITY_HOST decides the authority where it is set."""
    address = address_of(f"https://{host}")
    kind, _ = kind_and_account(address)
    found = cloud_of(kind, address.hostname or "", {"AZURE_AUTHORITY_HOST": named})
    assert found == Cloud(f"https://{audience}", authority)
