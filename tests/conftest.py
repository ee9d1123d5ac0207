"""What all tests share. Nothing of the harness is imported here: `swarm` has to patch first."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.parallel import CLAIMS, run_shared
from tests.support.certificates import CertificateFiles, certificate
from tests.support.examples import tried
from tests.support.fork_server import ForkServer

if TYPE_CHECKING:
    from harness.endpoint.azurite.process import AzuriteProcess
    from harness.endpoint.endpoint import Endpoint
    from tests.support.command import Command
    from tests.support.locust_process import Stress

# A busy machine fails no property. With CI=true the library's own profile, from which this one
# takes the rest, is not random either.
hypothesis.settings.register_profile("tests", deadline=None, max_examples=tried(100))
hypothesis.settings.load_profile("tests")
# Tests make many objects, and few cycles: by default Python looks for them every 700 objects.
gc.set_threshold(50_000)
# What a shell or nohup makes a command in the background ignore, all that tests start would ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

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


SLOWEST = (
    # Of the tests with Locust the first four have long tests.
    "tests/swarm/test_faults.py",
    "tests/swarm/test_audit.py",
    "tests/swarm/test_scanned.py",
    "tests/swarm/test_profiles.py",
    "tests/swarm/test_situations.py",
    "tests/browser/test_web_ui.py",
    "tests/browser/test_heat_maps.py",
    "tests/swarm/test_startup.py",
    "tests/swarm/test_dashboards.py",
    "tests/swarm/test_endings.py",
    "tests/swarm/test_client_limited.py",
    "tests/swarm/web/test_web_ui.py",
    "tests/swarm/test_verdicts.py",
    "tests/swarm/test_search.py",
    "tests/swarm/test_gateway.py",
    "tests/swarm/test_compose.py",
    "tests/swarm/test_redaction.py",
    "tests/swarm/test_bad_input.py",
    "tests/swarm/test_housekeeping.py",
    "tests/browser/test_strange_keys.py",
    "tests/browser/test_report_html.py",
    # Of the tests without Locust the first three have long tests.
    "tests/contract/watch/test_tutorial.py",
    "tests/contract/watch/test_endings.py",
    "tests/contract/watch/test_counts.py",
    "tests/unit/trace/whatif/test_screening.py",
    "tests/unit/trace/test_hostile.py",
    "tests/unit/workload/scenarios/test_scenarios.py",
    "tests/contract/sessions/test_scans.py",
    "tests/contract/test_wheel.py",
    "tests/contract/azurite/test_installation.py",
    "tests/contract/azurite/test_process.py",
    "tests/contract/gateway/test_process.py",
    "tests/contract/gateway/test_http.py",
)
"""Files that take longest, which are begun first where several processes share the tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first."""
    order = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Let forks share the tests, where `tests.parallel` started this process."""
    forks = any("fork_server" in getattr(item, "fixturenames", ()) for item in session.items)
    if CLAIMS in os.environ and forks and not session.config.option.collectonly:
        session.config.stash[FORK_SERVER] = ForkServer()
    return run_shared(session) or None


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteProcess]:
    """One real Azurite for all tests of the process."""
    from harness.endpoint.azurite.process import start_azurite

    with start_azurite() as process:
        yield process


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """A certificate for this machine, of an authority that only tests know."""
    return certificate(tmp_path_factory.mktemp("certificate"), "127.0.0.1", "localhost")


FORK_SERVER = pytest.StashKey[ForkServer]()
"""The one of all forks of a process."""


@pytest.fixture(scope="session")
def fork_server(pytestconfig: pytest.Config) -> Iterator[ForkServer]:
    """Forks `locust` processes from one that has imported everything."""
    shared = pytestconfig.stash.get(FORK_SERVER, None)
    server = shared or ForkServer()
    yield server
    if shared is None:
        server.end()


@pytest.fixture(scope="module")
def stress(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[Stress]:
    """Starts `locust` processes, which end with the module at the latest."""
    from tests.support.locust_process import Stress

    started = Stress(tmp_path_factory.mktemp("locust"), fork_server)
    yield started
    started.end()


@pytest.fixture
def endpoint(azurite: AzuriteProcess) -> Endpoint:
    """The endpoint of the real Azurite."""
    return azurite.endpoint


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line of the harness."""
    from tests.support.command import Command

    return Command(capsys)
