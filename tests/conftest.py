"""What all tests share. Nothing of the harness is imported here: `swarm` has to patch first."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from harness.endpoint.azurite import AzuriteProcess
    from harness.endpoint.connection import Endpoint

# A busy machine fails no property; with CI=true the library takes a profile that is not random
# either.
hypothesis.settings.register_profile("patient", deadline=None)
if os.environ.get("CI") != "true":
    hypothesis.settings.load_profile("patient")

ALLOWED_SKIP = "allowed: "
"""A skip whose reason begins so is no lack of the machine, and passes in CI too."""


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With CI=true a test that is skipped for lack of something has failed."""
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(ALLOWED_SKIP):
        report.outcome = "failed"
        report.longrepr = f"skipped although CI=true: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failure in CI."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failure in CI."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteProcess]:
    """One real Azurite for all tests of the process."""
    from harness.endpoint.azurite import start_azurite

    with start_azurite() as process:
        yield process


@pytest.fixture
def endpoint(azurite: AzuriteProcess) -> Endpoint:
    """The endpoint of the real Azurite."""
    return azurite.endpoint
