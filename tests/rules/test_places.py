"""The files of `harness init` are what each place takes, and fit each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from harness import __version__
from harness.commands.init import AUTH_MODES, PLACES, rendered
from harness.commands.run import locust_arguments
from harness.endpoint.accounts import Accounts, accounts_from, consent_problem
from harness.model.auth_mode import CREDENTIAL_VARIABLES
from tests.support import places
from tests.support.compose_file import ROOT

ACCOUNT = "mytables"
DOCUMENT = (ROOT / "docs" / "places.md").read_text(encoding="utf-8")
_PLATFORMS = {
    # Place: (its file, the name of the schema, further options of the check)
    "github-actions": (".github/workflows/table-stress.yml", "vendor.github-workflows", []),
    "azure-pipelines": (
        "stress/azure-pipelines.yml",
        "vendor.azure-pipelines",
        ["--data-transform", "azure-pipelines"],
    ),
}


@pytest.fixture(params=AUTH_MODES)
def auth_mode(request: pytest.FixtureRequest) -> str:
    """Each way to sign requests."""
    mode: str = request.param
    return mode


def read(text: str) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(text))


def manifests(auth_mode: str) -> dict[str, dict[str, Any]]:
    """The Kubernetes resources by file and kind, such as ``master.yaml Job``."""
    files = rendered("kubernetes", "single-partition", ACCOUNT, auth_mode)
    return {
        f"{name} {resource['kind']}": resource
        for name, text in files.items()
        if name.endswith(".yaml")
        for resource in read(text)
    }


@pytest.mark.parametrize("place", _PLATFORMS)
def test_ci_files_have_the_published_form(place: str, tmp_path: Path) -> None:
    """The platform's own schema takes them."""
    name, schema, options = _PLATFORMS[place]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *options]
    for auth_mode in AUTH_MODES:
        file = tmp_path / f"{auth_mode}.yml"
        file.write_text(rendered(place, "upsert", ACCOUNT, auth_mode)[name], encoding="utf-8")
        command.append(str(file))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_logs_in_without_a_secret() -> None:
    """The token of the job is for the login, reads alone, and no secret is read."""
    files = rendered("github-actions", "upsert", ACCOUNT, "login")
    text = files[".github/workflows/table-stress.yml"]
    (workflow,) = read(text)
    assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
    assert "secrets." not in text
    for used in re.findall(r"uses: (.+)", text):
        assert re.fullmatch(r"(actions/[a-z-]+|azure/login)@[0-9a-f]{40} # v[\d.]+", used)
    # What the repository's own workflows use is used here too.
    own = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert set(re.findall(r"uses: (actions/\S+)", text)) <= set(re.findall(r"uses: (\S+)", own))


def test_azure_load_testing_takes_the_folder(auth_mode: str) -> None:
    """The test has the published form; every file that it names is there, and in no folder."""
    files = rendered("azure-load-testing", "upsert", ACCOUNT, auth_mode)
    (test,) = read(files["config.yaml"])
    jsonschema.validate(test, places.AZURE_LOAD_TESTING)
    named = {
        *(test["testPlan"], test["properties"]["userPropertyFile"]),
        *test["configurationFiles"],
    }
    assert named == {"locustfile.py", "locust.conf", "profile.toml", "requirements.txt"}
    assert named <= set(files)
    assert not any("/" in name for name in files)
    environ = {item["name"]: item["value"] for item in test["env"]}
    secrets = {item["name"] for item in test.get("secrets", [])}
    assert secrets <= set(CREDENTIAL_VARIABLES)
    assert bool(secrets) is (auth_mode == "key")
    assert consent_problem(accounts_of(environ), environ["STRESS_REMOTE_OK"]) is None


def accounts_of(environ: dict[str, str]) -> Accounts:
    """The account that a place's variables name, with a key that only this test knows."""
    return accounts_from(
        environ["LOCUST_HOST"], {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": "a2V5"}
    )


def test_kubernetes_takes_the_manifests(auth_mode: str) -> None:
    """Built-in kinds have the published form, the others that of their descriptions."""
    described = {
        "PodMonitor": places.POD_MONITOR,
        "LocustTest": places.LOCUST_TEST,
        "Kustomization": places.KUSTOMIZATION,
    }
    built_in = set()
    for resource in manifests(auth_mode).values():
        if (schema := described.get(resource["kind"])) is not None:
            jsonschema.validate(resource, schema)
        else:
            places.check_kubernetes(resource)
            built_in.add(resource["kind"])
    places.check_kubernetes(places.as_pod(manifests(auth_mode)["locusttest.yaml LocustTest"]))
    assert built_in >= {"Job", "Deployment", "Service", "NetworkPolicy", "ServiceAccount", "Pod"}


def pods(auth_mode: str) -> dict[str, dict[str, Any]]:
    """The specification of each pod."""
    found = manifests(auth_mode)
    return {
        "master": found["master.yaml Job"]["spec"]["template"],
        "worker": found["workers.yaml Deployment"]["spec"]["template"],
        "fetch": found["fetch.yaml Pod"],
        "operator": places.as_pod(found["locusttest.yaml LocustTest"]),
    }


def test_no_pod_has_rights(auth_mode: str) -> None:
    """Each runs as the user of the image, reads only, and is limited."""
    (user,) = re.findall(r"^USER (\d+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for pod in pods(auth_mode).values():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == int(user)
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}


def test_pods_find_each_other(auth_mode: str) -> None:
    """Service, policy, monitor and volume claim name what there is."""
    found = manifests(auth_mode)
    labels = {name: pod["metadata"].get("labels", {}) for name, pod in pods(auth_mode).items()}
    service = found["master.yaml Service"]
    policy = found["master.yaml NetworkPolicy"]["spec"]
    monitor = found["podmonitor.yaml PodMonitor"]["spec"]
    for selector, pod in (
        (service["spec"]["selector"], "master"),
        (policy["podSelector"]["matchLabels"], "master"),
        (policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"], "worker"),
        (monitor["selector"]["matchLabels"], "master"),
        (found["workers.yaml Deployment"]["spec"]["selector"]["matchLabels"], "worker"),
    ):
        chosen = {name for name, held in labels.items() if selector.items() <= held.items()}
        assert chosen == {pod}
    (container,) = pods(auth_mode)["master"]["spec"]["containers"]
    open_at = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert open_at == {"master": 5557, "metrics": 9646}
    assert monitor["podMetricsEndpoints"][0]["port"] in open_at
    (worker,) = pods(auth_mode)["worker"]["spec"]["containers"]
    assert f"--master-host={service['metadata']['name']}" in worker["args"]
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for pod in pods(auth_mode).values()
        for volume in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert claims == {found["results.yaml PersistentVolumeClaim"]["metadata"]["name"]}
    replicas = found["workers.yaml Deployment"]["spec"]["replicas"]
    assert f"--expect-workers={replicas}" in container["args"]
    for args in (container["args"], worker["args"]):
        assert args[0] == "run"
        assert locust_arguments(args[1:])


def test_kustomize_finds_its_files(auth_mode: str) -> None:
    """What it names is in the folder; what it leaves out is for somebody else."""
    files = rendered("kubernetes", "upsert", ACCOUNT, auth_mode)
    (kustomization,) = read(files["kustomization.yaml"])
    maps = kustomization["configMapGenerator"]
    named = {*kustomization["resources"]}
    for generator in maps:
        named |= {*generator.get("files", []), *generator.get("envs", [])}
    assert named <= set(files)
    assert {name for name in files if name.endswith(".yaml")} - named == {
        *("kustomization.yaml", "podmonitor.yaml", "locusttest.yaml", "fetch.yaml")
    }
    assert kustomization["images"][0]["newTag"] == __version__
    used = {generator["name"] for generator in maps} | {"table-stress-credentials"}
    for pod in pods(auth_mode).values():
        (container,) = pod["spec"]["containers"]
        for source in container.get("envFrom", []):
            assert {ref["name"] for ref in source.values()} <= used
    settings = dict(
        line.split("=", 1)
        for line in files["settings.env"].splitlines()
        if not line.startswith("#")
    )
    assert consent_problem(accounts_of(settings), settings["STRESS_REMOTE_OK"]) is None
    assert not {"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"} & set(settings)


def test_the_wheel_gets_every_template() -> None:
    """None begins with a dot, which package data leave out, and none is a module."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "templates/**/*" in project["tool"]["setuptools"]["package-data"]["harness"]
    templates = ROOT / "harness" / "templates"
    for file in templates.rglob("*"):
        parts = file.relative_to(templates).parts
        assert not any(part.startswith((".", "__")) for part in parts), file
        assert file.suffix != ".py"
    assert {path.name for path in templates.iterdir()} == {*PLACES, "common", "grafana"}


def test_the_document_says_what_there_is() -> None:
    """docs/places.md names every place."""
    for place in PLACES:
        assert f"`{place}`" in DOCUMENT
