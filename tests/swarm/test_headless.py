"""A run from a shell: four steps, a record, nothing left behind."""

from __future__ import annotations

import json
import re

import pytest

from harness.measure.record import RunRecord
from tests.swarm.locust_process import QUICK, LocustProcess, Stress

pytestmark = pytest.mark.azurite

FOREIGN_KEY = "Zm9yZWlnbiBhY2NvdW50IGtleSBvZiBub2JvZHk="
FOREIGN = {
    "AZURE_STORAGE_ACCOUNT": "foreignaccount",
    "AZURE_STORAGE_KEY": FOREIGN_KEY,
    "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=foreignaccount;"
    f"AccountKey={FOREIGN_KEY};EndpointSuffix=core.windows.net",
}
"""Credentials of an account that is not to be touched."""


@pytest.fixture(scope="module")
def done(stress: Stress) -> LocustProcess:
    """A run without -H that has ended, with credentials for another account lying about."""
    process = stress(*QUICK, "--csv", "table", environ=FOREIGN)
    process.until_said("[3/4]")
    process.children()
    process.wait()
    return process


@pytest.fixture(scope="module")
def record(done: LocustProcess) -> RunRecord:
    """What it recorded."""
    return done.record


def test_it_passes(done: LocustProcess) -> None:
    """A run that holds its conditions exits with 0."""
    assert done.process.returncode == 0, done.said
