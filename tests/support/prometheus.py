"""A real Prometheus of a test: on a free port, with the shipped configuration, and asked by HTTP.

It scrapes every second, so that a short run has enough samples.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.support.locust_process import ROOT, wait_until
from tests.support.ports import free_port

FOLDER = ROOT / "dashboards"
SCRAPE_S = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Points:
    """One series of an answer: values by UTC second."""

    labels: dict[str, str]
    values: dict[float, float]

    @property
    def mean(self) -> float:
        return sum(self.values.values()) / len(self.values)

    @property
    def highest(self) -> float:
        return max(self.values.values())

    @property
    def last(self) -> float:
        return self.values[max(self.values)]


class Prometheus:
    """The process. It is stopped by `stop`.

    Args:
        program: Path of Prometheus.
        folder: For its data and configuration.
        target: Port of the metrics page that it scrapes.
    """

    def __init__(self, program: str, folder: Path, target: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
        every = f"{SCRAPE_S}s"
        config["global"] = dict.fromkeys(
            ("scrape_interval", "scrape_timeout", "evaluation_interval"), every
        )
        config["rule_files"] = [str(FOLDER / name) for name in config["rule_files"]]
        (job,) = config["scrape_configs"]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{target}"]}]
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._address = f"127.0.0.1:{free_port()}"
        self._log = folder / "log.txt"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={file}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={self._address}",
                ],
                # Go takes as many threads as it sees cores; the run needs them.
                env={**os.environ, "GOMAXPROCS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._ready, "Prometheus is ready")

    def _ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text("utf-8")
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, path: str, **parameters: object) -> Any:
        """The data of an answer of its HTTP API; a refused question fails the test."""
        body = urllib.parse.urlencode(parameters).encode() if parameters else None
        request = urllib.request.Request(f"http://{self._address}/api/v1/{path}", data=body)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def values_of(self, label: str, selector: str) -> list[str]:
        """The values that a label has in some series."""
        match = urllib.parse.urlencode({"match[]": selector})
        found: list[str] = self.ask(f"label/{label}/values?{match}")
        return found

    def at(self, expr: str, moment_s: float) -> list[Points]:
        """What a query gives at one moment."""
        data = self.ask("query", query=expr, time=moment_s)
        return [
            Points(_named(row["metric"]), {moment_s: float(row["value"][1])})
            for row in data["result"]
        ]

    def over(self, expr: str, start_s: float, end_s: float) -> list[Points]:
        """What a query gives from one moment to another, every second."""
        data = self.ask("query_range", query=expr, start=start_s, end=end_s, step=1)
        return [
            Points(_named(row["metric"]), {float(at): float(value) for at, value in row["values"]})
            for row in data["result"]
        ]


def _named(metric: dict[str, str]) -> dict[str, str]:
    """The labels without the name, and without what a scrape adds."""
    return {
        name: text for name, text in metric.items() if name not in ("__name__", "job", "instance")
    }
