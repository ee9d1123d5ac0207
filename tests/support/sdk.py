"""What tests need to use the service's own SDK beside the harness."""

from __future__ import annotations

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint


def account_key(endpoint: Endpoint) -> str:
    """The key of the endpoint's account."""
    assert isinstance(endpoint.credential, SharedKey)
    return endpoint.credential.key


def named_key(endpoint: Endpoint) -> AzureNamedKeyCredential:
    """The account and its key as the SDK takes them."""
    return AzureNamedKeyCredential(endpoint.account, account_key(endpoint))


def table_names(endpoint: Endpoint) -> set[str]:
    """The tables that there are."""
    with TableServiceClient(endpoint.url, credential=named_key(endpoint)) as service:
        return {table.name for table in service.list_tables()}
