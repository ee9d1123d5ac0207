"""The optional library for blobs, azure-storage-blob."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.endpoint.endpoint import Endpoint
from harness.model.errors import SetupError

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient


def container_client(endpoint: Endpoint, name: str, **options: Any) -> ContainerClient:
    """A client of a container, which takes the place of a table, without retries of its own.

    Raises:
        SetupError: the library is not installed.
    """
    try:
        from azure.storage.blob import ContainerClient
    except ModuleNotFoundError:
        raise SetupError(
            "session blob needs the package azure-storage-blob: run `pip install "
            "azure-storage-blob`, or install the harness with its extra [blob]"
        ) from None
    return ContainerClient(
        endpoint.url,
        name,
        **endpoint.credential.for_sdk(),
        retry_total=0,
        permit_redirects=False,
        **options,
    )
