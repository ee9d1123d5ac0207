"""Bad input and set-up: one clear sentence, exit code 2, nothing sent, nothing left behind.

A case for each part of the harness that refuses something; what each part refuses, and in which
words, is tested beside it. All processes are started by one fixture, a few at once.
"""

from __future__ import annotations

import base64
import dataclasses
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import gevent
import gevent.pool
import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.endpoint import Endpoint
from tests.support.locust_process import LocustProcess, Stress, forked, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

AT_ONCE = 3
KEY = base64.b64encode(b"some key of sixty-four bytes, which is what an account has......").decode()
STORAGE = "https://acct.table.core.windows.net"

FIVE_MISTAKES = """\
# What is wrong with this profile?
user_class = "SinglePartitionUser"
seed = -1
conditions = ["throttled < 1%"]
colour = "blue"
[query]
rows = 0
[load]
users = "many"
"""
TWO_CLASSES = """\
from locust import events
from harness.swarm import TableUser, wire
class FirstUser(TableUser):
    pass
class SecondUser(TableUser):
    pass
wire(events)
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is started, the words it has to say, and whether the endpoint may have been asked.

    Attributes:
        python: The interpreter of a process that starts anew instead of being forked.
    """

    words: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    locustfile: Path | None = None
    python: str | None = None
    asks: bool = False


NAMES = (
    "five mistakes",
    "prefixes of shown keys",
    "time of a million years",
    "budget too small to load",
    "missing user class",
    "no consent",
    "the key for the account",
    "nothing listens",
    "no answer",
    "keys too long for Azurite",
    "table not empty",
    "no allowed host",
    "no Azurite",
    "two processes",
    "web login without a password",
    "web UI",
)


@pytest.fixture(scope="module")
def occupied() -> Iterator[int]:
    """A port that is taken, by somebody who never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def full_table(endpoint: Endpoint) -> Iterator[str]:
    """A table with an entity in it, which stays."""
    credential = named_key(endpoint)
    with TableServiceClient(endpoint.url, credential=credential) as service:
        with service.create_table("notempty") as table:
            table.create_entity({"PartitionKey": "mine", "RowKey": "precious"})
            yield "notempty"
            assert [row["RowKey"] for row in table.list_entities()] == ["precious"]
        service.delete_table("notempty")


@pytest.fixture(scope="module")
def without_azurite(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python environment with all packages, into which no Azurite was installed."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(packages) / "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def recorder(proxy_to: Callable[..., Proxy]) -> Proxy:
    """A table service that records what it is asked."""
    return proxy_to()


@pytest.fixture(scope="module")
def cases(
    tmp_path_factory: pytest.TempPathFactory,
    recorder: Proxy,
    occupied: int,
    full_table: str,
    without_azurite: str,
) -> dict[str, Case]:
    """Everything that is wrong."""
    folder = tmp_path_factory.mktemp("wrong")
    mistaken = folder / "mistaken.toml"
    mistaken.write_text(FIVE_MISTAKES, encoding="utf-8")
    two_classes = folder / "two_classes.py"
    two_classes.write_text(TWO_CLASSES, encoding="utf-8")
    closed = free_port()
    at = ("-H", recorder.url)

    def setting(*values: str) -> tuple[str, ...]:
        return (*at, *(part for value in values for part in ("--set", value)))

    with_key = {"AZURE_STORAGE_KEY": KEY}
    unknown = (*at, "--profile", "nosuch")
    no_nosuch = ("no profile 'nosuch'", "`harness profiles` lists them")
    made = {
        "five mistakes": Case(
            arguments=(*at, "--profile", str(mistaken)),
            words=("5 mistakes", "seed", "conditions.0", "colour", "query.rows", "load.users"),
        ),
        "prefixes of shown keys": Case(
            arguments=(*at, "--keep-prefixes"), words=("--keep-prefixes needs --redact-keys",)
        ),
        "time of a million years": Case(
            arguments=(*at, "-t", "999999999999h"), words=("-t", "'999999999999h' is too long")
        ),
        "budget too small to load": Case(
            arguments=setting("limits.billable_transactions=5", "keys.rows_per_partition=900"),
            words=("limits.billable_transactions is 5", "16 are needed to make, load and"),
        ),
        "missing user class": Case(
            arguments=at,
            locustfile=two_classes,
            words=("SinglePartitionUser", "FirstUser", "SecondUser"),
        ),
        "no consent": Case(
            arguments=("-H", STORAGE),
            environ=with_key,
            words=("acct.table.core.windows.net", "--remote-ok acct"),
        ),
        "the key for the account": Case(
            arguments=at,
            environ={**with_key, "AZURE_STORAGE_ACCOUNT": KEY},
            words=("AZURE_STORAGE_ACCOUNT is not an account name", "not shown"),
        ),
        "nothing listens": Case(
            arguments=("-H", f"http://127.0.0.1:{closed}"),
            words=("127.0.0.1", str(closed), "refused"),
            asks=True,
        ),
        "no answer": Case(
            arguments=("-H", f"http://127.0.0.1:{occupied}"),
            words=("127.0.0.1", str(occupied), "5 s"),
            asks=True,
        ),
        "keys too long for Azurite": Case(
            arguments=setting(f"keys.partition_key={'k' * 601}", "entity.size_bytes=4096"),
            words=("has 601 characters", "refuses more than 512", "1,024"),
            asks=True,
        ),
        "table not empty": Case(
            arguments=(*at, "--table", full_table),
            words=(full_table, "not empty", "precious"),
            asks=True,
        ),
        "no allowed host": Case(
            arguments=(*at, "--web-allowed-host", "https://load.example/"),
            words=("--web-allowed-host", "'https://load.example/' is not a host"),
        ),
        "no Azurite": Case(
            python=without_azurite, words=("Azurite", "not installed", "harness azurite install")
        ),
        "two processes": Case(arguments=(*unknown, *forked(2)), words=no_nosuch),
        "web login without a password": Case(
            arguments=(*at, "--web-login", "--web-port", "0"),
            words=("--web-login needs a password", "STRESS_WEB_PASSWORD"),
            asks=True,
        ),
        "web UI": Case(arguments=(*unknown, "--web-port", "0"), words=no_nosuch),
    }
    assert tuple(made) == NAMES
    return made


@pytest.fixture(scope="module")
def refused(stress: Stress, cases: dict[str, Case]) -> dict[str, LocustProcess]:
    """What became of each."""
    done: dict[str, LocustProcess] = {}

    def run(name: str) -> None:
        case = cases[name]
        headless = () if name.startswith("web") else ("--headless", "-t", "5s")
        process = stress(
            *headless,
            *case.arguments,
            environ=case.environ,
            locustfile=case.locustfile,
            python=case.python,
        )
        while process.process.poll() is None:
            process.children()
            gevent.sleep(0.05)
        done[name] = process

    pool = gevent.pool.Pool(AT_ONCE)
    with gevent.Timeout(400):
        pool.map(run, NAMES)
    return done


@pytest.mark.parametrize("name", NAMES)
def test_a_clear_sentence_and_exit_code_2(
    name: str, refused: dict[str, LocustProcess], cases: dict[str, Case]
) -> None:
    """The sentence names what is wrong, the exit code is 2, and nobody sees a traceback."""
    process = refused[name]
    assert process.process.returncode == 2, process.said
    for word in cases[name].words:
        assert word in process.stderr, process.said
    assert "Traceback" not in process.said
    assert KEY[:30] not in process.said
    assert process.stderr.count("error: ") == 1, process.said
    assert len(process.stderr) < 1000, process.stderr


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_behind(name: str, refused: dict[str, LocustProcess]) -> None:
    """No process, no folder of a run."""
    process = refused[name]
    wait_until(lambda: not process.left_behind(), "its processes are gone", 5.0)
    assert not (process.folder / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_asked_before_the_rest_is_right(
    name: str, refused: dict[str, LocustProcess], cases: dict[str, Case]
) -> None:
    """What can be refused without the endpoint looks up no name and opens no connection."""
    contacted = {text for _, text in refused[name].addresses}
    # Workers look their master up.
    assert bool(contacted - {"lookup 127.0.0.1"}) == cases[name].asks, contacted
    assert all(text.split()[1] == "127.0.0.1" for text in contacted), contacted


@pytest.mark.usefixtures("refused")
def test_an_endpoint_is_asked_one_question_at_most(recorder: Proxy) -> None:
    """Before a run is known to be right, nothing is sent but questions that change nothing."""
    assert {seen.method for seen in recorder.seen} == {"GET"}


@pytest.mark.parametrize("name", ["nothing listens", "no answer"])
def test_an_endpoint_that_is_not_there_is_given_up_in_5_s(
    name: str, refused: dict[str, LocustProcess]
) -> None:
    """From the first look at it until the process has ended: 5 s, and what leaving takes."""
    process = refused[name]
    began_s, _ = process.addresses[0]
    ended_s = (process.folder / "stderr.txt").stat().st_mtime
    assert ended_s - began_s < 5.5
