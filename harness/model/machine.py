"""The machine of a process: which one it is, and the cores that the process may use."""

from __future__ import annotations

import dataclasses
import os
import platform
import uuid
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The same in all containers of a machine, whose CPU they share."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine of a process.

    Attributes:
        id: Equal for all processes on one machine, those in containers included.
        name: Its host name.
        cores: Numbers of the logical cores that the process may use.
    """

    id: str
    name: str
    cores: tuple[int, ...]


def this_process_runs_on() -> Machine:
    """The machine of this process. Cores are those of its affinity, where the system has one."""
    try:
        identity = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        identity = f"{uuid.getnode():x}"
    if hasattr(os, "sched_getaffinity"):
        cores = tuple(sorted(os.sched_getaffinity(0)))
    else:
        cores = tuple(range(os.cpu_count() or 1))
    return Machine(id=identity, name=platform.node() or "this machine", cores=cores)
