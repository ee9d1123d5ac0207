"""What holds the data of a run, a table or a container: how it is created and deleted.

All of these raise `SetupError` where the service refuses or does not respond, and `BudgetSpent`
where the budget is used up. A container has one request for each step; for tables see
`harness.endpoint.admin.tables`.
"""

from __future__ import annotations

from harness.endpoint.admin.tables import AdminTransport, create_table, delete_table, explained
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.sessions.blob import container_client
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


_CREATE = {"table": create_table, "container": create_container}
_DELETE = {"table": delete_table, "container": delete_container}


def create_store(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Create what the service of ``endpoint`` holds its data in; one that exists is refused."""
    _CREATE[endpoint.kind.store](endpoint, name, budget)


def delete_store(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Delete it, with everything in it."""
    _DELETE[endpoint.kind.store](endpoint, name, budget)
