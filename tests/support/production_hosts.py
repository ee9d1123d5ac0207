"""Host names of Azure that lead to this machine, where Azurite takes the account from them.

A process calls `lead_here` to reach them; `LOCUSTFILE` is that of a run that does.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import gevent.socket

ACCOUNT = "cosmosstandin"
"""An account that the embedded Azurite has, and that is not the emulator's own."""
BLOB_HOST = f"{ACCOUNT}.blob.core.windows.net"
LOCUSTFILE = """
import sys

from tests.support.source_tree import ROOT

sys.path.insert(0, str(ROOT))

from locustfile import KeySpreadUser, ProfileUser, SinglePartitionUser
from tests.support.production_hosts import lead_here

lead_here(setattr)
"""


def lead_here(replace: Callable[[Any, str, object], None]) -> None:
    """Let the names of Azure Storage have the address of this machine."""
    for module in (socket, gevent.socket):
        look_up = module.getaddrinfo

        def found(host: Any, *more: Any, look_up: Any = look_up, **named: Any) -> Any:
            here = str(host).endswith(".core.windows.net")
            return look_up("127.0.0.1" if here else host, *more, **named)

        replace(module, "getaddrinfo", found)
