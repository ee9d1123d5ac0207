"""The container of a run whose data goes to blobs: created before the load, deleted at the end.

Those that create and delete send one request and raise `SetupError` where the service refuses or
does not respond, and `BudgetSpent` where the budget is used up.
"""

from __future__ import annotations

from harness.endpoint.admin.tables import AdminTransport, explained
from harness.endpoint.blob_client import container_client
from harness.endpoint.endpoint import Endpoint
from harness.workload.budget import Budget


def require_library(endpoint: Endpoint, name: str) -> None:
    """Raise a `SetupError` where no container can be made, because the library is missing."""
    container_client(endpoint, name).close()


def create_container(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Create a container; one that exists is refused."""
    transport = AdminTransport(endpoint, budget)
    with (
        explained(endpoint, f"the container {name} cannot be created"),
        container_client(endpoint, name, transport=transport) as client,
    ):
        client.create_container()


def delete_container(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Delete a container with its blobs."""
    transport = AdminTransport(endpoint, budget)
    with (
        explained(endpoint, f"the container {name} cannot be deleted"),
        container_client(endpoint, name, transport=transport) as client,
    ):
        client.delete_container()
