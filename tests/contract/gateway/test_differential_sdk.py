"""Two SDKs, directly at an Azurite and through a gateway to another: every answer is the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from http.client import HTTPException
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables import aio as async_tables

from harness.endpoint.azurite.process import AzuriteProcess, node, start_azurite
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.gateway.limits import limits_path
from harness.gateway.process import GatewayProcess, start_gateway
from tests.support.differential import (
    Answer,
    Recorder,
    SyncTransport,
    differences,
    gateway_counts,
    own_counts,
    plain,
)
from tests.support.npm_packages import JS_SDK
from tests.support.python_script import TABLE, steps
from tests.support.sdk import account_key, named_key

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
        todo, result = steps(service, table, missing), None
        with contextlib.suppress(StopIteration):
            while True:
                script.step = todo.send(result)
                try:
                    result = script.step.call()
                    if isinstance(result, ItemPaged):
                        result = [list(page) for page in result.by_page()]
                except RAISED as error:
                    result = error
                script.result(result)


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


def run_in_javascript(script: Recorder) -> None:
    """Run the script of the SDK for JavaScript."""
    endpoint = script.endpoint
    told = {"url": endpoint.url, "account": endpoint.account, "key": account_key(endpoint)}
    ran = subprocess.run(
        [str(node()), str(JS_SDK.folder / "script.cjs"), json.dumps(told)],
        env={"NODE_PATH": str(JS_SDK.modules)},
        capture_output=True,
        timeout=120.0,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    for line in ran.stdout.splitlines():
        content = json.loads(line)
        if "result" in content:
            result = plain(content["result"], endpoint.host)
            script.results.append(f"{content['label']}: {result}")
        else:
            script.answers.append(Answer.from_json(content))


SDKS: dict[str, Callable[[Recorder], None]] = {
    "python": run_sync,
    "python-aio": lambda script: asyncio.run(run_async(script)),
    "javascript": run_in_javascript,
}


@pytest.fixture
def both() -> Iterator[tuple[Endpoint, GatewayProcess]]:
    """A fresh Azurite, and a gateway before another one."""
    with start_azurite() as direct, start_azurite() as behind, gateway_before(behind) as gateway:
        yield direct.endpoint, gateway


def gateway_before(behind: AzuriteProcess) -> GatewayProcess:
    """A gateway that refuses nothing and cuts no page."""
    return start_gateway(upstream=f"http://{behind.endpoint.host}", limits=limits_path("none"))


@pytest.mark.parametrize(
    "sdk", ["python", pytest.param("python-aio", marks=pytest.mark.thorough), "javascript"]
)
def test_an_sdk_gets_the_same_answers_through_the_gateway(
    both: tuple[Endpoint, GatewayProcess], sdk: str
) -> None:
    """Status, headers, body and result of each call are equal, and the counts are the client's.

    Bounds: some hundred requests, about half a minute.
    """
    if sdk == "javascript" and not JS_SDK.installed:
        pytest.skip("the SDK for JavaScript is not installed: run `make dev`")
    endpoint, gateway = both
    direct, through = Recorder(endpoint), Recorder(emulator_endpoint(gateway.url))
    for script in (direct, through):
        SDKS[sdk](script)
    assert [answer.label for answer in through.answers] == [
        answer.label for answer in direct.answers
    ]
    found = differences(direct.answers, endpoint.host, through.answers, through.endpoint.host)
    assert not found, "\n".join(found[:20])
    assert through.results == direct.results
    assert own_counts(through.answers) == gateway_counts(gateway.counters())
    assert len(through.answers) > 250
