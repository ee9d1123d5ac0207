"""The service takes what every shipped profile sends."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.azurite.process import AzuriteProcess
from harness.endpoint.endpoint import Endpoint
from harness.model.outcome import Outcome
from harness.model.sessions import TABLE_SESSIONS
from harness.profile.build.workload import source_of
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.workload.operation_source import next_operation, steps_of
from tests.support.profiles import shipped, without_trace
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

NAMES = [name for name in without_trace() if shipped(name).session.kind in TABLE_SESSIONS]
LOADED, TASKS = 5, 20
ANSWERED = {Outcome.SUCCESS, Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.PRECONDITION}


@pytest.fixture(scope="module")
def tables(azurite: AzuriteProcess) -> Iterator[Callable[[str, tuple[str, ...]], None]]:
    """Creates the tables of a profile, whose names begin so."""
    endpoint = azurite.endpoint
    made: list[str] = []
    with TableServiceClient(endpoint.url, credential=named_key(endpoint)) as service:

        def create(begin: str, endings: tuple[str, ...]) -> None:
            for ending in endings:
                service.create_table(begin + ending)
                made.append(begin + ending)

        yield create
        for name in made:
            service.delete_table(name)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_profile_is_refused(
    name: str,
    endpoint: Endpoint,
    tables: Callable[[str, tuple[str, ...]], None],
    open_to: Callable[..., Any],
) -> None:
    """The first operations of its loading, and its first tasks, with the results of the service."""
    profile = shipped(name)
    source = source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0)
    table = f"profile{NAMES.index(name)}"
    tables(table, source.tables)
    session, rng = open_to("wire", endpoint, table), random.Random(1)
    loading = list(itertools.islice(source.loading(), LOADED))
    for task in (*loading, *(source.next_task(rng) for _ in range(TASKS))):
        steps, result = steps_of(task), None
        while (operation := next_operation(steps, result)) is not None:
            result = session.execute(operation)
            assert result.outcome in ANSWERED, (operation, result.attempts)
