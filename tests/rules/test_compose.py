"""The stand in containers fits the rest of the repository, and is open to this machine alone.

No engine for containers is needed: what is not tested here is said in docs/compose.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from harness import __version__
from harness.cli import parsed
from harness.endpoint.accounts import accounts_from, consent_problem
from harness.gateway.limits import limits_path, load_limits
from harness.model.auth_mode import AUTH_MODE, CREDENTIAL_VARIABLES
from harness.model.hosts import is_loopback
from harness.profile.profile_loader import shipped_names
from tests.support import compose_file as composed
from tests.support.compose_file import FILE, OWN_IMAGE, ROOT

SIGNING = {
    *CREDENTIAL_VARIABLES,
    AUTH_MODE,
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
}
"""What keys and logins are taken from."""
SERVICES = composed.services()
IN_POD = [name for name, service in SERVICES.items() if service.get("network_mode")]
COMMAND = {name: service.get("command", []) for name, service in SERVICES.items()}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
METRICS_PORT = 9646
"""Where the harness serves metrics, if nothing else is said."""
_SECRET = re.compile("PASSWORD|SECRET|KEY|TOKEN|CONNECTION_STRING")
_IMAGE = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)?:(?!latest)[A-Za-z0-9._-]+(@sha256:[0-9a-f]{64})?")


def option(service: str, name: str) -> str:
    """The value of an option in a service's command."""
    (value,) = [
        str(word).split("=", 1)[1] for word in COMMAND[service] if word.startswith(f"{name}=")
    ]
    return value


def instructions(name: str) -> list[str]:
    """What follows a word of the Dockerfile, continued lines joined."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    return [line.split(None, 1)[1] for line in lines if line.startswith(f"{name} ")]


def docker_compose() -> list[str] | None:
    """How Docker Compose 2 is called here, or None where it is not installed."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            version = [*command, "version", "--short"]
            done = subprocess.run(version, capture_output=True, text=True, check=False)
            if done.returncode == 0 and not done.stdout.startswith(("0.", "1.")):
                return command
    return None


def test_they_are_compose_files() -> None:
    """They are what the published schema allows; that of users has the images of the other."""
    theirs = ROOT / "harness" / "templates" / "grafana" / "docker-compose.yml"
    images = re.findall(r"^ +image: (\S+@sha256:\w+)$", theirs.read_text("utf-8"), re.MULTILINE)
    assert len(images) == 2
    assert all(f"image: {image}\n" in FILE.read_text("utf-8") for image in images)
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec", str(FILE), str(theirs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("password", "taken"), [("a-test's-own", True), ("", False)])
def test_docker_compose_takes_it(tmp_path: Path, password: str, taken: bool) -> None:
    """Docker Compose itself, where there is one, wants a password for Grafana and nothing else."""
    compose = docker_compose()
    if compose is None:
        pytest.skip("allowed: no Docker Compose on this machine")
    environment = tmp_path / ".env"
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    environment.write_text(
        example.replace("GRAFANA_ADMIN_PASSWORD=", f'GRAFANA_ADMIN_PASSWORD="{password}"'),
        encoding="utf-8",
    )
    command = [*compose, "--env-file", str(environment), "--file", str(FILE), "config", "--quiet"]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is taken, done.stderr
    assert taken or "GRAFANA_ADMIN_PASSWORD" in done.stderr


def test_ports_are_open_to_this_machine_alone() -> None:
    """Each published port names 127.0.0.1, and no two are the same."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    taken = [re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in ports]
    assert all(taken), ports
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_its_version(name: str) -> None:
    """An image is one digest of one name, and the name is no address; the own one is built."""
    image = SERVICES[name]["image"]
    found = _IMAGE.fullmatch(image)
    assert found, image
    assert (found[1] is None) is (image == OWN_IMAGE)
    assert (image == OWN_IMAGE) is (name in (*IN_POD, "pod"))
    # The own one is built here, and asked of nobody else.
    assert (SERVICES[name].get("pull_policy") == "never") is (image == OWN_IMAGE)
    assert SERVICES[name].get("build") == ("." if name == "pod" else None)


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_has_rights(name: str) -> None:
    """None is privileged, gains rights, or leaves signals to a process that ignores them."""
    service = SERVICES[name]
    assert not service.get("privileged")
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert service.get("user", "") not in ("root", "0")


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_takes_the_machine(name: str) -> None:
    """Each has at most one core, a limit of memory and of processes, and logs that rotate."""
    limits = SERVICES[name]["deploy"]["resources"]["limits"]
    assert 0 < float(limits["cpus"]) <= 1
    assert re.fullmatch(r"\d+[MG]", limits["memory"])
    assert limits["pids"] <= 500
    log = SERVICES[name]["logging"]
    assert (log["driver"], set(log["options"])) == ("json-file", {"max-size", "max-file"})


@pytest.mark.parametrize("name", [*IN_POD, "pod"])
def test_the_own_image_is_read_only(name: str) -> None:
    """Only volumes and /tmp can be written."""
    assert SERVICES[name]["read_only"] is True
    assert SERVICES[name]["tmpfs"] == ["/tmp"]


def test_every_service_is_looked_at() -> None:
    """Each has a health check that runs without a shell, but the pod, which only waits."""
    for name, service in SERVICES.items():
        if name == "pod":
            assert service["healthcheck"] == {"disable": True}
            continue
        test = service["healthcheck"]["test"]
        assert test[0] == "CMD"
        assert test[1] == ("python" if name in IN_POD else "wget")


def test_what_starts_last_is_stopped_first() -> None:
    """The master waits for endpoint and gateway, and ends its run while the workers still live."""
    waits = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert waits["master"] == {
        "azurite": "service_healthy",
        "gateway": "service_healthy",
        "worker": "service_started",
    }
    assert waits["grafana"] == {"prometheus": "service_healthy"}
    assert not waits["worker"]
    assert {name: SERVICES[name]["restart"] for name in ("master", "worker")} == {
        "master": "no",
        "worker": "no",
    }


def test_the_harness_talks_over_loopback() -> None:
    """Who runs the harness shares the pod's network; only what is published listens outside it."""
    assert IN_POD == ["azurite", "gateway", "worker", "master"]
    for name in IN_POD:
        assert SERVICES[name]["network_mode"] == "service:pod"
        assert not {"ports", "networks"} & set(SERVICES[name])
    outside = [word for command in COMMAND.values() for word in command if "0.0.0.0" in word]
    assert outside == ["--listen=0.0.0.0:10102", "--web-host=0.0.0.0", "--metrics-host=0.0.0.0"]


def test_the_run_needs_no_consent_and_no_credential() -> None:
    """The host of the master is an emulator on loopback, and the gateway is what listens there."""
    host = option("master", "--host")
    assert consent_problem(accounts_from(host, {}), option("master", "--remote-ok")) is None
    assert option("gateway", "--listen").rpartition(":")[2] == str(urlsplit(host).port)
    upstream = urlsplit(option("gateway", "--upstream"))
    assert is_loopback(upstream.hostname or "")
    assert option("azurite", "--port") == str(upstream.port)


def test_an_account_is_reached_by_the_same_commands() -> None:
    """What .env may hold for an account gives the master its host and the consent to it."""
    host = "https://myaccount.table.core.windows.net"
    filled = composed.services({"STRESS_HOST": host, "STRESS_REMOTE_OK": "myaccount"})
    assert f"--host={host}" in filled["master"]["command"]
    assert "--remote-ok=myaccount" in filled["master"]["command"]


@pytest.mark.parametrize("name", ["azurite", "gateway"])
def test_commands_of_the_harness_are_some(name: str) -> None:
    """`harness` takes the words as they stand; the limits and the profile exist."""
    assert COMMAND[name][0] == "harness"
    parsed(COMMAND[name][1:])
    load_limits(limits_path(option("gateway", "--limits")))
    assert option("master", "--profile") in shipped_names()


def test_every_mount_is_there() -> None:
    """What is mounted from the repository exists and is read only; a volume is declared."""
    volumes = composed.raw()["volumes"]
    sources: list[str] = []
    for service in SERVICES.values():
        for mount in service.get("volumes", []):
            source, _, rest = mount.partition(":")
            sources.append(source)
            if source.startswith("."):
                assert (ROOT / source).exists(), source
                assert rest.endswith(":ro"), mount
            else:
                assert source in volumes
    dashboards = {f"./{path.relative_to(ROOT)}" for path in (ROOT / "dashboards").glob("*.json")}
    assert dashboards
    assert dashboards <= set(sources)
    assert "records:/harness/out" in SERVICES["master"]["volumes"]


def test_prometheus_finds_what_it_scrapes() -> None:
    """Each target is a name and port of the file, and the rules lie where they are looked for."""
    written = yaml.safe_load((ROOT / "dashboards/prometheus.yml").read_text(encoding="utf-8"))
    aliases = SERVICES["pod"]["networks"]["default"]["aliases"]
    open_at = {
        *(f"{alias}:{METRICS_PORT}" for alias in aliases),
        *(f"{alias}:{option('gateway', '--listen').rpartition(':')[2]}" for alias in aliases),
        *("localhost:9090", "prometheus:9090"),
    }
    targets = {
        target
        for job in written["scrape_configs"]
        for group in job["static_configs"]
        for target in group["targets"]
    }
    assert f"master:{METRICS_PORT}" in targets
    assert targets <= open_at
    mounted = [mount.split(":")[1] for mount in SERVICES["prometheus"]["volumes"]]
    for rules in written["rule_files"]:
        assert str(Path("/etc/prometheus", rules)) in mounted


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    """The data source is a service of the file, and the dashboards lie where Grafana looks."""
    provisioning = ROOT / "dashboards/provisioning"
    (sources,) = (yaml.safe_load(path.read_text()) for path in provisioning.glob("datasources/*"))
    assert [source["url"] for source in sources["datasources"]] == ["http://prometheus:9090"]
    (boards,) = (yaml.safe_load(path.read_text()) for path in provisioning.glob("dashboards/*"))
    (provider,) = boards["providers"]
    targets = [mount.split(":")[1] for mount in SERVICES["grafana"]["volumes"]]
    assert targets[0] == "/etc/grafana/provisioning"
    for target in targets[1:]:
        assert str(Path(target).parent) == provider["options"]["path"]


def test_no_secret_and_no_default_password() -> None:
    """A secret is passed through or asked for; none has a value, and only signers get Azure's."""
    written = composed.raw()["services"]
    for name, service in written.items():
        for variable, value in service.get("environment", {}).items():
            if _SECRET.search(variable):
                assert value is None or re.match(r"\$\{\w+:\?", value), variable
        signs = name in ("master", "worker")
        held = set(service.get("environment", {})) & SIGNING
        assert held == (SIGNING if signs else set())
        words = " ".join(service.get("command", []))
        assert not re.search("AccountKey|sig=|SharedAccess", words)
    assert composed.variables()["GRAFANA_ADMIN_PASSWORD"] == ":?"


def test_the_example_lists_every_variable_and_no_value() -> None:
    """.env.example has each variable that the file takes, once, and empty."""
    example = composed.settings(ROOT / ".env.example")
    assert set(example) == {*composed.variables(), *SIGNING}
    assert not any(example.values())


def test_what_env_holds_stays_there() -> None:
    """Neither git nor an image takes .env."""
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in ignored if not line.startswith("#")) == "*"
    assert not [line for line in ignored if line.startswith("!.")]


def test_the_image_holds_what_a_run_needs() -> None:
    """What is copied exists and is let through; nothing that is let through is left out."""
    lines = [line for line in instructions("COPY") if not line.startswith("--from=")]
    copied = {word for line in lines for word in shlex.split(line)[:-1]}
    for source in copied:
        assert (ROOT / source).exists(), source
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(copied) == sorted(line[1:] for line in ignored if line.startswith("!"))
    assert {"harness", "profiles", "limits", "locustfile.py"} <= copied
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    modules = project["tool"]["setuptools"]["py-modules"]
    assert {f"{module}.py" for module in modules} <= copied


def test_the_image_is_made_of_the_wheel() -> None:
    """The packages are the pinned ones, the base one version of an allowed Python."""
    base, *stages = instructions("FROM")
    assert stages == ["python AS build", "python"]
    image = base.removesuffix(" AS python")
    found = _IMAGE.fullmatch(image)
    assert found
    assert found[1]
    minor = re.match(r"python:3\.(\d+)\.\d+-slim", image)
    assert minor
    assert int(minor[1]) >= 11
    build, made = DOCKERFILE.split("\nFROM python\n")
    for step in (
        "pip install -r requirements.txt",
        "pip wheel --no-deps",
        "pip install --no-deps dist/*.whl",
        "harness azurite install",
    ):
        assert step in build
        assert step not in made
    assert f'image.version="{__version__}"' in made


def test_the_image_runs_without_rights() -> None:
    """As a user with a number, whose only folder is a volume, with a health check."""
    (user,) = instructions("USER")
    assert f"--uid {user} " in DOCKERFILE
    assert int(user) > 0
    assert instructions("VOLUME") == ["/harness/out"]
    # After USER nothing is built.
    assert not re.search(r"^(RUN|COPY)", DOCKERFILE.split(f"USER {user}")[1], re.MULTILINE)
    assert len(instructions("HEALTHCHECK")) == 1


@pytest.mark.parametrize(("listens", "code"), [(True, 0), (False, 1)])
def test_the_health_check_of_the_image_looks_for_a_listener(listens: bool, code: int) -> None:
    """A container is healthy while a process of it listens, here in a network of its own."""
    (words,) = re.findall(r"CMD (\[\"python.*\])$", DOCKERFILE, re.MULTILINE)
    (check,) = json.loads(words)[2:]
    listen = "import socket; held = socket.create_server(('127.0.0.1', 0)); "
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c"]
    command.append(f"{listen if listens else ''}{check}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("allowed: this machine makes no networks of its own")
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("given", "started"),
    [
        (["run", "upsert"], "harness run upsert"),
        (["harness", "--help"], "harness --help"),
        (["locust", "--worker"], "locust --worker"),
        (["--master", "-f", "my file.py"], "locust --master -f my file.py"),
        ([], "harness "),
    ],
)
def test_the_entry_point_starts_harness_or_locust(
    given: list[str], started: str, tmp_path: Path
) -> None:
    """Options alone are Locust's, as operators give them; commands are those of harness."""
    for name in ("harness", "locust"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$*"\n', encoding="utf-8")
        program.chmod(0o755)
    (entry,) = [json.loads(line) for line in instructions("ENTRYPOINT")]
    script = ROOT / "scripts" / entry[0]
    assert os.access(script, os.X_OK)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        [str(script), *given], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{started}\n"


def test_the_document_says_what_there_is() -> None:
    """docs/compose.md names every service, every published port and every variable."""
    document = (ROOT / "docs/compose.md").read_text(encoding="utf-8")
    for name in (*SERVICES, *composed.settings(ROOT / ".env.example")):
        assert f"`{name}`" in document, name
    for service in SERVICES.values():
        for port in service.get("ports", []):
            assert port.rpartition(":")[0] in document, port
