"""What signs requests, as Azure CLI names it. Chosen by the user, never by what is set."""

from __future__ import annotations

from collections.abc import Mapping

AUTH_MODE = "AZURE_STORAGE_AUTH_MODE"
"""The environment variable with the mode."""

KEY_MODE = "key"
"""The key or SAS in the environment."""
LOGIN_MODE = "login"
"""A login of Microsoft Entra ID."""
AUTH_MODES = (KEY_MODE, LOGIN_MODE)


def in_mode(environ: Mapping[str, str], mode: str | None) -> Mapping[str, str]:
    """``environ`` with the mode of an option, which comes before the variable, if there is one."""
    return environ if mode is None else {**environ, AUTH_MODE: mode}
