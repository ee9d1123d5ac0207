"""What a run's master runs on: figures of one machine are not another's."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform

from harness.measure.findings import MachinePart

_PACKAGES = (
    "locust",
    "gevent",
    "azure-data-tables",
    "azure-core",
    "geventhttpclient",
    "datasketches",
    "hdrhistogram",
)
"""Those whose version can change what is measured."""


@functools.cache
def machine() -> MachinePart:
    """The machine and the versions of this process; workers may have others."""
    return MachinePart(
        cpus=os.cpu_count() or 1,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: importlib.metadata.version(name) for name in _PACKAGES},
    )
