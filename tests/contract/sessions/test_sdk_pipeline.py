"""The seam between azure-data-tables and the tuned session: the pipeline that is handed over."""

from __future__ import annotations

import concurrent.futures
import platform
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from harness.endpoint.sessions.sdk import LeanPipeline
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome


def of(kind: Kind, row: str = "r") -> Operation:
    return Operation(kind=kind, partition_key="p", row_key=row, properties={"A": 1})


def test_a_transaction_is_prepared_without_threads(
    service: Any, open_to: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where azure-core prepares the parts of a transaction itself, it opens a pool of threads."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a thread is used")

    session = open_to("sdk", service.endpoint)
    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", opened)
    done = b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n"
    service.script = [service.transaction_answer(done, done)]
    result = session.execute(transaction((of(Kind.INSERT, "a"), of(Kind.UPSERT_MERGE, "b"))))
    assert result.outcome is Outcome.SUCCESS


def test_an_operation_starts_no_process(
    service: Any, open_to: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK names the platform, which Python asks `uname` for once: that is when a session is
    opened, and not in the first operation of every user.
    """

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a process is started")

    monkeypatch.setattr(platform, "_uname_cache", None)
    monkeypatch.setattr(platform, "_platform_cache", {})
    session = open_to("sdk", service.endpoint)
    monkeypatch.setattr(subprocess, "Popen", started)
    service.script = [service.transaction_answer(b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n")]
    result = session.execute(transaction((of(Kind.INSERT, "a"),)))
    assert result.outcome is Outcome.SUCCESS


@pytest.mark.parametrize("kind", [Kind.POINT_QUERY, Kind.QUERY, Kind.INSERT, Kind.DELETE])
def test_every_request_goes_through_the_pipeline(
    service: Any, open_to: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    """An SDK that took no pipeline any more would send over a transport of its own."""
    runs: list[str] = []
    run = LeanPipeline.run

    def noted(self: LeanPipeline, request: Any, **options: Any) -> Any:
        runs.append(request.method)
        return run(self, request, **options)

    monkeypatch.setattr(LeanPipeline, "run", noted)
    page = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"value":[]}'
    answers = {Kind.POINT_QUERY: service.entity_answer(RowKey="r"), Kind.QUERY: page}
    service.script = [answers.get(kind, service.no_content)]
    operation = Operation(kind=Kind.QUERY, partition_key="p") if kind is Kind.QUERY else of(kind)
    assert open_to("sdk", service.endpoint).execute(operation).outcome is Outcome.SUCCESS
    assert (len(runs), len(service.requests)) == (1, 1)
