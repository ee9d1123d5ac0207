"""What signs requests: its mode and its variables, as Azure CLI names them.

The user chooses the mode; it never follows from what is set.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.errors import SetupError

AUTH_MODE = "AZURE_STORAGE_AUTH_MODE"
"""The environment variable with the mode."""

KEY_MODE = "key"
"""The key or SAS in the environment."""
LOGIN_MODE = "login"
"""A login of Microsoft Entra ID."""
AUTH_MODES = (KEY_MODE, LOGIN_MODE)


CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
ACCOUNT = "AZURE_STORAGE_ACCOUNT"
KEY = "AZURE_STORAGE_KEY"
SAS_TOKEN = "AZURE_STORAGE_SAS_TOKEN"
SECRET_VARIABLES = (CONNECTION_STRING, KEY, SAS_TOKEN)
CREDENTIAL_VARIABLES = (*SECRET_VARIABLES, ACCOUNT)
"""No address may contain one."""
VARIABLES_HELP = f"{CONNECTION_STRING}, or {ACCOUNT} with {KEY} or {SAS_TOKEN}"


def auth_mode(environ: Mapping[str, str]) -> str:
    """The mode in ``environ``, one of `AUTH_MODES`; a `SetupError` if it is another word."""
    mode = environ.get(AUTH_MODE, "").strip() or KEY_MODE
    if mode not in AUTH_MODES:
        raise SetupError(f"{AUTH_MODE} is neither {' nor '.join(AUTH_MODES)}")
    return mode


def in_mode(environ: Mapping[str, str], mode: str | None) -> Mapping[str, str]:
    """``environ`` with the mode of an option, which comes before the variable, if there is one."""
    return environ if mode is None else {**environ, AUTH_MODE: mode}
