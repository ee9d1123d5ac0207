"""Two SDKs, directly at an Azurite and through a gateway to another: every answer is the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from http.client import HTTPException
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables import aio as async_tables

from tests.support.differential import (
    Recorder,
    SyncTransport,
    azurite_and_gateway,
    gateway_counts,
    own_counts,
    played_through,
)
from tests.support.npm_packages import JS_SDK
from tests.support.python_script import TABLE, steps
from tests.support.sdk import named_key

pytestmark = [
    pytest.mark.azurite,
    pytest.mark.long,
    # Of aiohttp, about a body of 3 MB.
    pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning"),
]

NO_RETRIES = {"retry_total": 0}
RAISED = (AzureError, HTTPException, ValueError, TypeError)
"""What the SDK raises; of `http.client`, where Azurite's answer to a transaction is malformed."""


class AsyncTransport(AioHttpTransport):  # type: ignore[misc]
    """The same of the asynchronous SDK."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    async def send(self, request: Any, **said: Any) -> Any:
        response = await super().send(request, **said)
        if said.get("stream"):
            await response.read()
        self._recorder.note(request, response)
        return response


def read_whole(result: Any) -> Any:
    """The pages of a query; any other result as it is."""
    return [list(page) for page in result.by_page()] if isinstance(result, ItemPaged) else result


def run_sync(script: Recorder) -> None:
    """Run the script with the synchronous clients."""
    endpoint, credential = script.endpoint, named_key(script.endpoint)
    said: dict[str, Any] = {**NO_RETRIES, "credential": credential}
    with contextlib.ExitStack() as stack:
        service, table, missing = (
            stack.enter_context(client)
            for client in (
                TableServiceClient(endpoint.url, transport=SyncTransport(script), **said),
                TableClient(endpoint.url, TABLE, transport=SyncTransport(script), **said),
                TableClient(endpoint.url, "missing", transport=SyncTransport(script), **said),
            )
        )
        script.play(steps(service, table, missing), RAISED, read_whole)


async def run_async(script: Recorder) -> None:
    """Run the script with the asynchronous clients."""
    endpoint, credential = script.endpoint, named_key(script.endpoint)
    said: dict[str, Any] = {**NO_RETRIES, "credential": credential}
    async with contextlib.AsyncExitStack() as stack:
        service = async_tables.TableServiceClient(
            endpoint.url, transport=AsyncTransport(script), **said
        )
        table, missing = (
            async_tables.TableClient(endpoint.url, name, transport=AsyncTransport(script), **said)
            for name in (TABLE, "missing")
        )
        for client in (service, table, missing):
            await stack.enter_async_context(client)
        todo, result = steps(service, table, missing), None
        with contextlib.suppress(StopIteration):
            while True:
                script.step = todo.send(result)
                try:
                    result = script.step.call()
                    if isinstance(result, Coroutine):
                        result = await result
                    elif hasattr(result, "by_page"):
                        pages = result.by_page()
                        result = [[row async for row in page] async for page in pages]
                except RAISED as error:
                    result = error
                script.result(result)


SDKS: dict[str, Callable[[Recorder], None]] = {
    "python": run_sync,
    "python-aio": lambda script: asyncio.run(run_async(script)),
    "javascript": lambda script: script.play_in_javascript(JS_SDK),
}


@pytest.mark.parametrize(
    "sdk", ["python", pytest.param("python-aio", marks=pytest.mark.thorough), "javascript"]
)
def test_an_sdk_gets_the_same_answers_through_the_gateway(sdk: str) -> None:
    """Status, headers, body and result of each call are equal, and the counts are the client's.

    Bounds: some hundred requests, about half a minute.
    """
    if sdk == "javascript" and not JS_SDK.installed:
        pytest.skip("the SDK for JavaScript is not installed: run `make dev`")
    with azurite_and_gateway() as (endpoint, gateway):
        answers = played_through(endpoint, gateway, SDKS[sdk])
        assert own_counts(answers) == gateway_counts(gateway.counters())
    assert len(answers) > 250
