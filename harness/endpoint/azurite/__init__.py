"""The embedded Azurite: one pinned version, installed into the environment, started as a child."""

from __future__ import annotations

from harness.endpoint.azurite.process import (
    VERSION,
    AzuriteProcess,
    install,
    installed,
    start_azurite,
)

__all__ = ["VERSION", "AzuriteProcess", "install", "installed", "start_azurite"]
