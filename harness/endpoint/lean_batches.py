"""The parts of a transaction prepared one after the other.

azure-core opens a pool of threads for each transaction to prepare its parts. Under load a greenlet
waits hundreds of milliseconds for these threads, before anything is sent: time of the generator
that no service latency shows. What is prepared is the same.
"""

from __future__ import annotations

from typing import Any, cast

from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.data.tables import TableClient


def prepare_in_turn(client: TableClient) -> None:
    """Let ``client`` prepare its transactions without threads."""
    pipeline = cast(Any, client)._client._client._pipeline
    pipeline._prepare_multipart_mixed_request = _prepare


def _prepare(request: Any) -> None:
    if not request.multipart_mixed_info:
        return
    parts, policies, _, options = request.multipart_mixed_info
    for part in parts:
        _prepare(part)
        prepared: PipelineRequest[Any] = PipelineRequest(part, PipelineContext(None, **options))
        for policy in policies:
            policy.on_request(prepared)
