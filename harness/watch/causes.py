"""Why no request about entities reached the gateway, as far as the watch can know."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.model.figures import counted

EMULATOR_PORT = 10002
EMULATOR = f"127.0.0.1:{EMULATOR_PORT}"
"""Where applications with ``UseDevelopmentStorage=true`` look for an emulator."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a command and of the gateway that it should use.

    Attributes:
        failed: How the command failed: ``exit code 1``; empty if it did not.
        at_emulator: The gateway listens at `EMULATOR`.
        to_emulator: The command was connected to `EMULATOR`, where the gateway does not listen.
        tls: The gateway listens with TLS.
        proxy: The gateway intercepts the hosts of table endpoints.
        removed: Variables that the command did not get, because they lead elsewhere.
    """

    failed: str = ""
    at_emulator: bool = False
    to_emulator: bool = False
    tls: bool = False
    proxy: bool = False
    removed: Sequence[str] = ()

    def cause(self, unreadable: int) -> str:
        """The likely cause, and the option that helps, in sentences.

        Args:
            unreadable: Requests that were no HTTP.
        """
        seen = []
        if self.failed:
            seen.append(f"The command failed ({self.failed}): see its own output")
        if self.to_emulator:
            seen.append(
                f"The command was connected to {EMULATOR}, where UseDevelopmentStorage=true leads, "
                f"past the gateway: use --listen {EMULATOR}"
            )
        if unreadable and not self.tls:
            seen.append(
                f"{counted(unreadable, 'request')} could not be read as http, as those of an SDK "
                "that speaks https: use --tls"
            )
        if self.removed and not self.proxy:
            seen.append(
                f"The command did not get {', '.join(self.removed)}: for an application that makes "
                "the host of account and key, use --proxy"
            )
        if len(seen) > bool(self.failed):
            return ". ".join(seen)
        used = {
            "--listen": self.at_emulator,
            "--tls": self.tls or self.proxy,
            "--proxy": self.proxy,
        }
        possible = [text for option, text in _POSSIBLE.items() if not used.get(option)]
        lead = "Other causes may be" if seen else "Likely causes"
        return ". ".join([*seen, f"{lead}: {', '.join(possible)}"])


_POSSIBLE = {
    "--listen": f"UseDevelopmentStorage=true or {EMULATOR} in the application "
    f"(--listen {EMULATOR})",
    "--tls": "an SDK that refuses http (--tls)",
    "--proxy": "an account and key of which the SDK makes the host (--proxy)",
    "--env": "a connection string in another variable than AZURE_STORAGE_CONNECTION_STRING "
    "(--env NAME)",
}
