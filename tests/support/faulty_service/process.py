"""Starts a faulty table service in a process of its own, and asks it what it counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.faulty_service.books import Books
from tests.support.network.hosts import Host

_ROOT = Path(__file__).parents[3]


class Faulty:
    """A running faulty table service.

    Args:
        upstream_port: Port on loopback of the real service behind it; None where there is none.
        scripts: What it does to each run, see `tests.support.faulty_service.rules.Rule`.
        loading_entities: With so many entities written the load begins.
        seed: Of all chance.
        certificate: Files of certificate and key, for https.
        host: The host that it runs on; None is this machine.
    """

    def __init__(
        self,
        upstream_port: int | None,
        scripts: Iterable[Iterable[dict[str, Any]]],
        *,
        loading_entities: int,
        seed: int = 1,
        certificate: tuple[Path, Path] | None = None,
        host: Host | None = None,
    ) -> None:
        command = [sys.executable, "-m", "tests.support.faulty_service"]
        command += ["--loading-entities", str(loading_entities), "--seed", str(seed)]
        if upstream_port is not None:
            command += ["--upstream", str(upstream_port)]
        if certificate is not None:
            command += ["--certificate", *map(str, certificate)]
        if host is not None:
            command = host.command(*command, "--address", host.address)
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._ask(json.dumps([list(rules) for rules in scripts])).strip()
        assert self.url, "the faulty service did not start"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def books(self) -> list[Books]:
        """What it counted so far, of each run."""
        return [Books.from_json(content) for content in json.loads(self._ask("books"))]

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=10.0)

    def kill(self) -> None:
        """End it whatever it does, also where it was stopped."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()
