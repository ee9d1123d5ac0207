"""Endpoints of other kinds: behind TLS, one table alone, and a worker that would go elsewhere."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.data.tables import TableClient, TableServiceClient

from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.endpoint import Endpoint
from tests.support.certificates import CertificateFiles, certificate
from tests.support.locust_process import QUICK, LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.sdk import named_key, table_names

pytestmark = [pytest.mark.azurite, pytest.mark.session]

OTHER_KEY = base64.b64encode(b"the key of another account").decode()
TABLE = "givenbysomebody"


HOUR_BEHIND = """
import time

right = time.time
time.time = lambda: right() - 3600

from locust import events

from harness.swarm import SinglePartitionUser, wire

wire(events)
"""


@pytest.fixture(scope="module")
def bundles(
    certificates: CertificateFiles, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Its authority, and another."""
    other = certificate(tmp_path_factory.mktemp("other"))
    return {"right": certificates.authority, "wrong": other.authority}


@pytest.fixture(scope="module")
def secure(certificates: CertificateFiles) -> Iterator[str]:
    """The address of an Azurite behind TLS."""
    with start_azurite(cert=certificates.cert, key=certificates.key) as process:
        yield f"https://{process.endpoint.host}"


@pytest.fixture(scope="module")
def given_table(endpoint: Endpoint) -> Iterator[TableClient]:
    """An empty table of somebody else."""
    credential = named_key(endpoint)
    with TableServiceClient(endpoint.url, credential=credential) as service:
        with contextlib.closing(service.create_table(TABLE)) as table:
            yield table
        service.delete_table(TABLE)


@pytest.fixture(scope="module")
def hour_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locustfile of a machine whose clock is an hour behind."""
    file = tmp_path_factory.mktemp("behind") / "behind.py"
    file.write_text(HOUR_BEHIND, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def runs(
    stress: Stress,
    secure: str,
    bundles: dict[str, Path],
    host: str,
    given_table: TableClient,
    hour_behind: Path,
) -> dict[str, LocustProcess]:
    """All of them, ended."""
    port = free_port()
    started = {
        name: stress(*QUICK, "-H", secure, environ={"SSL_CERT_FILE": str(bundles[name])})
        for name in ("right", "wrong")
    }
    started["no authority"] = stress(*QUICK, "-H", secure)
    started["table"] = stress(*QUICK, "-H", host, "--table", TABLE)
    started["master"] = stress(
        *(*QUICK, "-H", host, "--master", "--expect-workers", "1"),
        *("--master-bind-port", str(port)),
    )
    started["worker"] = stress(
        *("--worker", "--master-port", str(port)),
        environ={"AZURE_STORAGE_ACCOUNT": "elsewhere", "AZURE_STORAGE_KEY": OTHER_KEY},
    )
    other = free_port()
    started["leading"] = stress(
        *(*QUICK, "-H", host, "--master", "--expect-workers", "1"),
        *("--master-bind-port", str(other)),
    )
    started["late by an hour"] = stress(
        *("--worker", "--master-port", str(other)), locustfile=hour_behind
    )
    started["table"].until_said("[3/4]")
    given_table.create_entity({"PartitionKey": "p0", "RowKey": "precious"})
    for process in started.values():
        process.children()
        process.wait()
    return started


def test_a_trusted_endpoint_behind_tls_is_stressed(runs: dict[str, LocustProcess]) -> None:
    """With its authority named in SSL_CERT_FILE, a run over https is a run."""
    process = runs["right"]
    assert process.process.returncode == 0, process.said
    assert set(process.record.outcomes) == {"success"}
    assert process.record.counts.operations > 50


@pytest.mark.parametrize("name", ["wrong", "no authority"])
def test_a_certificate_of_somebody_else_is_refused(
    name: str, runs: dict[str, LocustProcess]
) -> None:
    """Where the authority is not trusted, nothing is sent: a sentence, and exit code 2."""
    process = runs[name]
    assert process.process.returncode == 2, process.said
    assert "certificate of 127.0.0.1" in process.stderr
    assert "SSL_CERT_FILE" in process.stderr
    assert "Traceback" not in process.said
    assert "[1/4]" not in process.stdout


def test_an_existing_empty_table_is_taken(runs: dict[str, LocustProcess]) -> None:
    """With --table a run makes none of its own."""
    process = runs["table"]
    assert process.process.returncode == 0, process.said
    assert process.record.endpoint.table == TABLE
    assert process.record.counts.operations > 50


def test_only_what_the_run_wrote_is_deleted(
    runs: dict[str, LocustProcess], given_table: TableClient
) -> None:
    """An entity that somebody else put into the table meanwhile is still there, alone."""
    assert runs["table"].process.returncode == 0
    left = [entity["RowKey"] for entity in given_table.list_entities()]
    assert left == ["precious"]


def test_a_worker_that_would_go_elsewhere_refuses(runs: dict[str, LocustProcess]) -> None:
    """A worker with credentials for another account ends the run with a sentence, exit code 2."""
    master = runs["master"]
    assert master.process.returncode == 2, master.said
    assert re.search(
        r"the worker on \S+ refused the run: AZURE_STORAGE_ACCOUNT names", master.stderr
    )
    for process in (master, runs["worker"]):
        assert OTHER_KEY not in process.said
        assert "Traceback" not in process.said
    assert master.records == []


def test_a_worker_whose_clock_is_off_refuses(runs: dict[str, LocustProcess]) -> None:
    """Its seconds cannot be put together with those of others: a sentence, exit code 2."""
    master = runs["leading"]
    assert master.process.returncode == 2, master.said
    refusal = r"the worker on \S+ refused the run: its clock is 3,[56]\d\d s behind the master's"
    assert re.search(refusal, master.stderr)
    assert "Traceback" not in master.said + runs["late by an hour"].said
    assert master.records == []


def test_a_refused_run_leaves_no_table(runs: dict[str, LocustProcess], endpoint: Endpoint) -> None:
    """The table that was made before the worker refused is gone again."""
    assert runs["master"].process.returncode == 2
    made = {
        name for process in runs.values() for name in re.findall(r"stress\d\w+", process.stdout)
    }
    assert made.intersection(table_names(endpoint)) == set()
    assert made
    for process in runs.values():
        wait_until(process.has_left_nothing, "nobody is left", 5.0)
