"""What the published descriptions of places accept, where no library brings them as a schema.

Written from the descriptions: only the parts that the folders of `harness init` use. Anything else
in a file is an error.
"""

from __future__ import annotations

from typing import Any

import kubernetes_validate

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}
QUANTITY: Schema = {"type": ["string", "integer"], "pattern": r"^[0-9.]+(m|[KMG]i?)?$"}


def fields(required: str = "", **properties: Schema) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def mapped(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


_NAMED = listed(fields("name value", name=TEXT, value=TEXT))

# Azure Load Testing: "Configure a load test in YAML", reference-test-config-yaml.
AZURE_LOAD_TESTING = fields(
    "version testId testType testPlan engineInstances",
    version={"const": "v0.1"},
    testId={"type": "string", "pattern": "^[a-z0-9_-]{2,50}$"},
    displayName={"type": "string", "minLength": 2, "maxLength": 50},
    description={"type": "string", "maxLength": 100},
    testType={"const": "Locust"},
    testPlan=TEXT,
    engineInstances=COUNT,
    configurationFiles=listed(TEXT),
    properties=fields("userPropertyFile", userPropertyFile={"pattern": r"\.(conf|ini|toml)$"}),
    env=_NAMED,
    secrets=_NAMED,
    referenceIdentities=listed(
        fields(
            "kind type",
            kind={"enum": ["KeyVault", "Metrics", "Engine"]},
            type={"enum": ["SystemAssigned", "UserAssigned"]},
            value=TEXT,
        )
    ),
    failureCriteria=listed(
        {"pattern": r"^(percentage\(error\)|p\d\d\((latency|response_time_ms)\)) > \d+$"}
    ),
    autoStop=fields(errorPercentage=COUNT, timeWindow=COUNT),
)

_METADATA = fields("name", name=TEXT, labels=mapped(TEXT))

# Prometheus operator: PodMonitor of monitoring.coreos.com/v1.
POD_MONITOR = fields(
    "apiVersion kind metadata spec",
    apiVersion={"const": "monitoring.coreos.com/v1"},
    kind={"const": "PodMonitor"},
    metadata=_METADATA,
    spec=fields(
        "selector podMetricsEndpoints",
        selector=fields(matchLabels=mapped(TEXT)),
        podMetricsEndpoints=listed(
            fields("port", port=TEXT, interval={"pattern": r"^\d+s$"}, path=TEXT)
        ),
    ),
)

_RESOURCES = fields(requests=mapped(QUANTITY), limits=mapped(QUANTITY))
_NAMES = listed(fields("name", name=TEXT))
# What has the form of a built-in kind is checked as a part of one: see `as_pod`.
_BUILT_IN: Schema = {}

# Locust Kubernetes operator: LocustTest of locust.io/v2.
LOCUST_TEST = fields(
    "apiVersion kind metadata spec",
    apiVersion={"const": "locust.io/v2"},
    kind={"const": "LocustTest"},
    metadata=_METADATA,
    spec=fields(
        "image master worker",
        image=TEXT,
        master=fields(
            "command",
            command=TEXT,
            autoquit=fields("enabled", enabled={"type": "boolean"}, timeout={"type": "integer"}),
            labels=mapped(TEXT),
            resources=_RESOURCES,
        ),
        worker=fields(
            "command replicas",
            command=TEXT,
            replicas={"type": "integer", "minimum": 1, "maximum": 500},
            labels=mapped(TEXT),
            resources=_RESOURCES,
        ),
        testFiles=fields(configMapRef=TEXT),
        env=fields(configMapRefs=_NAMES, secretRefs=_NAMES),
        volumes=_BUILT_IN,
        volumeMounts=listed(
            fields("name mountPath", name=TEXT, mountPath=TEXT, target={"enum": ["master", "both"]})
        ),
        security=fields(podSecurityContext=_BUILT_IN, containerSecurityContext=_BUILT_IN),
    ),
)

# Kustomize: kustomization.yaml of kustomize.config.k8s.io/v1beta1.
KUSTOMIZATION = fields(
    "apiVersion kind",
    apiVersion={"const": "kustomize.config.k8s.io/v1beta1"},
    kind={"const": "Kustomization"},
    resources=listed(TEXT),
    images=listed(fields("name", name=TEXT, newName=TEXT, newTag=TEXT)),
    generatorOptions=fields(disableNameSuffixHash={"type": "boolean"}),
    configMapGenerator=listed(
        fields("name", name=TEXT, files=listed(TEXT), envs=listed(TEXT)),
    ),
)


def as_pod(test: dict[str, Any]) -> dict[str, Any]:
    """The pod that the operator makes of a LocustTest's master, for what is of a built-in form."""
    spec = test["spec"]
    mounts = [
        {name: value for name, value in mount.items() if name != "target"}
        for mount in spec["volumeMounts"]
    ]
    container = {
        "name": "master",
        "image": spec["image"],
        "args": spec["master"]["command"].split(),
        "envFrom": [{"configMapRef": ref} for ref in spec["env"]["configMapRefs"]],
        "resources": spec["master"]["resources"],
        "securityContext": spec["security"]["containerSecurityContext"],
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "master"},
        "spec": {
            "containers": [container],
            "volumes": spec["volumes"],
            "securityContext": spec["security"]["podSecurityContext"],
        },
    }


def check_kubernetes(resource: dict[str, Any]) -> None:
    """Check a resource of a built-in kind against published schemas; no field may be unknown."""
    for version in ("1.29.0", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(resource, version, strict=True)
