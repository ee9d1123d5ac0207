"""What tests need to use the service's own SDK beside the harness."""

from __future__ import annotations

from azure.core.credentials import AzureNamedKeyCredential

from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint


def account_key(endpoint: Endpoint) -> str:
    """The key of the endpoint's account."""
    assert isinstance(endpoint.credential, SharedKey)
    return endpoint.credential.key


def named_key(endpoint: Endpoint) -> AzureNamedKeyCredential:
    """The account and its key as the SDK takes them."""
    return AzureNamedKeyCredential(endpoint.account, account_key(endpoint))
