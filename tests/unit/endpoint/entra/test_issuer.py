"""Errors of azure-identity in words."""

from __future__ import annotations

from harness.endpoint.entra.token import explained
from tests.support.entra import access_token

NOTHING = """DefaultAzureCredential failed to retrieve a token from the included credentials.
Attempted credentials:
\tEnvironmentCredential: EnvironmentCredential authentication unavailable. Environment variables \
are not fully configured.
Visit https://aka.ms/azsdk/python/identity/environmentcredential/troubleshoot to troubleshoot \
this issue.
\tManagedIdentityCredential: ManagedIdentityCredential authentication unavailable, no response \
from the IMDS endpoint.
\tAzureCliCredential: Please run 'az login' to set up an account
\tAzurePowerShellCredential: PowerShell is not installed
To mitigate this issue, please refer to the troubleshooting guidelines here at https://aka.ms/x."""


def test_each_login_that_was_tried_has_a_line() -> None:
    """What to do comes first; then each try with its reason, without addresses of help pages."""
    error = explained(NOTHING, {})
    first, *lines = str(error).splitlines()
    assert "az login" in first
    assert lines == [
        "  environment variables: Environment variables are not fully configured.",
        "  managed identity: no response from the IMDS endpoint.",
        "  Azure CLI: Please run 'az login' to set up an account",
        "  Azure PowerShell: PowerShell is not installed",
    ]


def test_the_cause_names_the_logins_that_are_set_up() -> None:
    """The short form leaves out what was never there."""
    assert explained(NOTHING, {}).cause == (
        "managed identity: no response from the IMDS endpoint.; "
        "Azure CLI: Please run 'az login' to set up an account"
    )
    alone = NOTHING.partition("\tManaged")[0]
    assert "not fully configured" in explained(alone, {}).cause


def test_another_error_is_told_as_it_is() -> None:
    """An invalid setting of azure-identity is named."""
    assert "Invalid value for AZURE_X" in str(explained("Invalid value for AZURE_X", {}))


def test_no_error_shows_a_secret() -> None:
    """Neither a client secret nor a token that an issuer repeats is in the sentence."""
    token = access_token()
    said = NOTHING.replace("Please run", f"secret s3cr3t-value with {token} is invalid: run")
    error = explained(said, {"AZURE_CLIENT_SECRET": "s3cr3t-value", "AZURE_PASSWORD": ""})
    for text in (str(error), error.cause):
        assert "is invalid" in text
        assert "s3cr3t" not in text
        assert token.split(".")[1] not in text
