"""Real `locust` processes. Locust patches this one too, and has to be the first to be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import locust  # noqa: F401
import pytest

from harness.endpoint.azurite.process import AzuriteProcess
from harness.endpoint.endpoint import Endpoint
from tests.support.proxy import Proxy


@pytest.fixture(scope="session")
def endpoint(azurite: AzuriteProcess) -> Endpoint:
    """The real Azurite, for fixtures of a whole module too."""
    return azurite.endpoint


@pytest.fixture(scope="session")
def host(azurite: AzuriteProcess) -> str:
    """What -H takes to reach the real Azurite."""
    return f"http://{azurite.endpoint.host}"


@pytest.fixture(scope="module")
def proxy_to(azurite: AzuriteProcess) -> Iterator[Callable[..., Proxy]]:
    """Makes proxies in front of the real Azurite."""
    made: list[Proxy] = []

    def make(**said: Any) -> Proxy:
        made.append(Proxy(azurite.endpoint.port, **said))
        return made[-1]

    yield make
    for proxy in made:
        proxy.stop()
