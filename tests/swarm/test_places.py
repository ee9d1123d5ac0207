"""What `harness init` writes for Kubernetes starts a master and its workers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.commands.init import rendered
from harness.commands.run import locust_arguments
from tests.support.locust_process import LocustProcess, Stress
from tests.support.ports import free_port

pytestmark = [pytest.mark.azurite, pytest.mark.long]

WORKERS = 2
SMALL = "[load.run_time_s=5, load.settle_s=0, keys.rows_per_partition=100, conditions=[]]"


class Pods:
    """The processes of a master's pod and its workers', with the files that both have mounted."""

    def __init__(self, stress: Stress, host: str, folder: Path, mounted_at: str) -> None:
        self._stress = stress
        self._folder = folder
        self._mounted_at = mounted_at
        self._port = str(free_port())
        files = rendered("kubernetes", "key-spread", "mytables", "key")
        for name in ("locustfile.py", "profile.toml"):
            (folder / name).write_text(files[name], encoding="utf-8")
        settings = re.findall(r"^(\w+)=(.*)$", files["settings.env"], re.MULTILINE)
        self._environ = {**dict(settings), "LOCUST_HOST": host, "STRESS_SET": SMALL}
        # The emulator's own account and key sign here.
        self._environ.pop("AZURE_STORAGE_ACCOUNT")

    def start(self, arguments: list[str]) -> LocustProcess:
        """Start a process with the arguments of its pod; addresses and folders are this test's."""
        here = []
        for argument in arguments:
            argument = argument.replace(self._mounted_at, str(self._folder))
            argument = argument.replace("0.0.0.0", "127.0.0.1").replace("/results", "out")
            argument = re.sub(r"(--expect-workers=)\d+", rf"\g<1>{WORKERS}", argument)
            argument = re.sub(r"(--metrics-linger=|--autoquit=)\d+", r"\g<1>1", argument)
            here.append(argument.replace("table-stress-master", "127.0.0.1"))
        port = "--master-port" if "--worker" in here else "--master-bind-port"
        return self._stress(*here, port, self._port, environ=self._environ)


def manifest(name: str) -> dict[str, Any]:
    """The first resource of a file."""
    files = rendered("kubernetes", "key-spread", "mytables", "key")
    first: dict[str, Any] = next(iter(yaml.safe_load_all(files[name])))
    return first


def arguments_of(name: str) -> list[str]:
    """What Locust is called with in the pods of a manifest."""
    (container,) = manifest(name)["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "run"
    given = [
        argument.replace("locustfile.py", "/stress/locustfile.py")
        if argument.startswith("--locustfile")
        else f"{container['workingDir']}/{argument}"
        if argument == "profile.toml"
        else argument
        for argument in container["args"][1:]
    ]
    return locust_arguments(given)


def test_the_manifests_run(stress: Stress, host: str, tmp_path: Path) -> None:
    """The workers join the master, the run is whole, and all end with it (15 s)."""
    pods = Pods(stress, host, tmp_path, "/stress")
    master = pods.start(arguments_of("master.yaml"))
    workers = [pods.start(arguments_of("workers.yaml")) for _ in range(WORKERS)]
    assert master.wait() == 0
    assert [worker.wait() for worker in workers] == [0] * WORKERS
    assert (master.record.complete, master.record.workers) == (True, WORKERS)
    assert master.record.profile["name"] == "profile"


def test_the_resource_of_the_operator_runs(stress: Stress, host: str, tmp_path: Path) -> None:
    """With what the operator adds, the run starts by itself, and all end (15 s)."""
    spec = manifest("locusttest.yaml")["spec"]
    pods = Pods(stress, host, tmp_path, "/lotest/src")
    master = pods.start(
        [
            *spec["master"]["command"].split(),
            *("--master", "--master-port=5557", f"--expect-workers={spec['worker']['replicas']}"),
            *("--autostart", f"--autoquit={spec['master']['autoquit']['timeout']}"),
            *("--enable-rebalancing", "--only-summary"),
            *("--web-port", str(free_port())),
        ]
    )
    adds = ("--worker", "--master-host=table-stress-master")
    workers = [pods.start([*spec["worker"]["command"].split(), *adds]) for _ in range(WORKERS)]
    assert master.wait() == 0
    assert [worker.wait() for worker in workers] == [0] * WORKERS
    assert (master.record.complete, master.record.workers) == (True, WORKERS)
