"""What holds the data of a run, a table or a container: how it is created and deleted.

The errors are those of `harness.endpoint.admin.tables` and `harness.endpoint.admin.containers`.
"""

from __future__ import annotations

from harness.endpoint.admin.containers import create_container, delete_container
from harness.endpoint.admin.tables import create_table, delete_table
from harness.endpoint.endpoint import Endpoint
from harness.workload.budget import Budget

_CREATE = {"table": create_table, "container": create_container}
_DELETE = {"table": delete_table, "container": delete_container}


def create_store(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Create what the service of ``endpoint`` holds its data in; one that exists is refused."""
    _CREATE[endpoint.kind.store](endpoint, name, budget)


def delete_store(endpoint: Endpoint, name: str, budget: Budget) -> None:
    """Delete it, with everything in it."""
    _DELETE[endpoint.kind.store](endpoint, name, budget)
