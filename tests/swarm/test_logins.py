"""Runs that are signed with a login: short-lived tokens are renewed while the load goes on.

A real azure-identity gets its tokens of a stand-in for a managed identity. Azurite takes them over
TLS. What the runs leave behind holds no token.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.endpoint.azurite.process import start_azurite
from tests.support.certificates import CertificateFiles
from tests.support.entra import OBJECT_ID, SECRET, TENANT, ManagedIdentity
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked, wait_until

pytestmark = [pytest.mark.azurite, pytest.mark.long]

LIFE_S = 12.0
"""Renewed after 7 s, so once or twice in a run."""
DEBUG = ("-L", "DEBUG")


@pytest.fixture(scope="module")
def secure(certificates: CertificateFiles) -> Iterator[str]:
    """The address of an Azurite that takes tokens."""
    with start_azurite(cert=certificates.cert, key=certificates.key, oauth=True) as azurite:
        yield f"https://{azurite.endpoint.host}"


@pytest.fixture(scope="module")
def identities() -> Iterator[dict[str, ManagedIdentity]]:
    """A managed identity for each run."""
    made = {name: ManagedIdentity(LIFE_S) for name in ("sdk", "wire", "failing", "none")}
    yield made
    for identity in made.values():
        identity.stop()


@pytest.fixture(scope="module")
def runs(
    stress: Stress,
    secure: str,
    certificates: CertificateFiles,
    identities: dict[str, ManagedIdentity],
) -> dict[str, LocustProcess]:
    """All of them, ended: 15 s under load, one with two workers, one whose identity fails."""
    options = (*QUICK, "--set", "load.run_time_s=15", "-H", secure, *DEBUG)
    chosen = {
        "sdk": ("--session", "sdk", "--auth-mode", "login"),
        "wire": ("--session", "wire", *forked(2)),
        "failing": ("--session", "wire", "--auth-mode", "login"),
        "none": ("--auth-mode", "login"),
    }
    identities["none"].failing = True
    started = {
        name: stress(
            *(*options, *more),
            environ={
                **identities[name].environ,
                "SSL_CERT_FILE": str(certificates.authority),
                # The option and the variable choose the same; neither a key nor its absence does.
                **({} if "--auth-mode" in more else {"AZURE_STORAGE_AUTH_MODE": "login"}),
                "AZURE_STORAGE_KEY": "aWdub3JlZA==",
            },
        )
        for name, more in chosen.items()
    }
    identity = identities["failing"]
    started["failing"].until_said("[3/4]")
    identity.failing = True
    wait_until(lambda: identity.refused, "a renewal failed")
    identity.failing = False
    for process in started.values():
        process.children()
        process.wait(120.0)
    return started


@pytest.mark.parametrize("name", ["sdk", "wire", "failing"])
def test_no_operation_fails_while_tokens_are_renewed(
    name: str, runs: dict[str, LocustProcess], identities: dict[str, ManagedIdentity]
) -> None:
    """Each process fetches a token and renews it; every operation succeeds at its first attempt."""
    process = runs[name]
    assert process.process.returncode in (0, 3), process.said
    record = process.record
    assert set(record.outcomes) == {"success"}, process.said
    assert record.counts.operations == record.counts.attempts > 50
    processes = 3 if name == "wire" else 1
    assert len(identities[name].issued) >= 2 * processes
    assert record.endpoint.signed_with == (
        f"Entra ID (managed identity, object id {OBJECT_ID}, tenant {TENANT})"
    )
    assert "Ignored, because of the login: AZURE_STORAGE_KEY" in process.stdout


def test_a_failed_renewal_is_told_and_the_run_goes_on(runs: dict[str, LocustProcess]) -> None:
    """With the reason, without a traceback; and that it worked in the end."""
    said = runs["failing"].said
    assert "the access token could not be renewed (try 1: managed identity:" in said
    assert "the access token was renewed after" in said


def test_without_a_token_nothing_is_sent(runs: dict[str, LocustProcess]) -> None:
    """Exit code 2, and a line for each login that was tried."""
    process = runs["none"]
    assert process.process.returncode == 2, process.said
    assert "  managed identity: " in process.stderr
    assert "  environment variables: " in process.stderr
    assert "[1/4]" not in process.stdout


def test_no_output_holds_a_token(
    runs: dict[str, LocustProcess], identities: dict[str, ManagedIdentity]
) -> None:
    """Neither a token nor the secret of the identity is in any file or stream, with debug logs."""
    secrets = [SECRET.encode()]
    for identity in identities.values():
        secrets += [part.encode() for token in identity.issued for part in token.split(".")[1:]]
    assert len(secrets) > 10
    looked_at = 0
    for name, process in runs.items():
        for file in process.folder.rglob("*"):
            if file.is_file():
                content = file.read_bytes()
                looked_at += 1
                leaks = [secret for secret in secrets if secret in content]
                assert leaks == [], (name, file)
        assert b"Traceback" not in (process.folder / "stderr.txt").read_bytes(), process.said
    assert looked_at > 15
