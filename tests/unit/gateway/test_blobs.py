"""Requests to blobs: how the gateway reads, counts, limits and answers them."""

from __future__ import annotations

import datetime as dt
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.answers import GatewayAnswer, Unpassed
from harness.gateway.blob_requests import BlobDialect, read_blob_request
from harness.gateway.headers import Headers
from harness.gateway.limits import Faults, GatewayLimits, Rate
from harness.gateway.model import Model
from harness.gateway.reading import Answered, read_answer
from harness.gateway.requests import Asked
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, classify
from harness.model.partition import Partition
from harness.model.services import beside_at, server_answering
from harness.model.services.blobs import AZURE_BLOBS

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
NAMES = (
    "a",
    "a/b//c",
    "100%",
    "?",
    "ünï 日本",
    "x" * 1024,
    "+ &=#",
    "dir/",
    "/",
    ".",
    "a\\b",
    "''",
)


@pytest.mark.parametrize(
    ("method", "query", "kind"),
    [
        ("PUT", "", Kind.PUT_BLOB),
        ("PUT", "?comp=block&blockid=AA", Kind.PUT_BLOCK),
        ("PUT", "?comp=blocklist", Kind.PUT_BLOCK_LIST),
        ("PUT", "?Comp=AppendBlock", Kind.APPEND_BLOCK),
        ("PUT", "?comp=page", Kind.PUT_PAGE),
        *(
            ("PUT", f"?comp={comp}", Kind.CHANGE_BLOB)
            for comp in ("metadata", "properties", "lease", "snapshot", "tier", "tags", "other")
        ),
        ("GET", "", Kind.GET_BLOB),
        ("GET", "?snapshot=2026-01-01T00:00:00.0000000Z", Kind.GET_BLOB),
        ("GET", "?versionid=2026-01-01", Kind.GET_BLOB),
        ("GET", "?sv=2024-05-04&sig=x", Kind.GET_BLOB),
        ("POST", "?comp=query", Kind.GET_BLOB),
        ("GET", "?comp=blocklist", Kind.GET_BLOB_PROPERTIES),
        ("HEAD", "", Kind.GET_BLOB_PROPERTIES),
        ("DELETE", "", Kind.DELETE_BLOB),
        ("DELETE", "?snapshot=x", Kind.DELETE_BLOB),
        ("DELETE", "?comp=immutabilityPolicies", Kind.CHANGE_BLOB),
    ],
)
def test_a_request_about_a_blob(method: str, query: str, kind: Kind) -> None:
    """Snapshots and versions are of the same blob, and so of the same partition."""
    for in_path, path in ((True, "/acme/logs/a/b"), (False, "/logs/a/b")):
        asked = read_blob_request(method, path + query, in_path=in_path)
        assert asked == Asked(kind, "(blobs)", "(blobs)", "logs/a/b", 1)
        assert asked.writes is not kind.reads


@pytest.mark.parametrize(
    ("method", "target", "key"),
    [
        ("GET", "/acme/logs?restype=container", "logs/"),
        ("PUT", "/acme/logs/?restype=container&comp=metadata", "logs/"),
        ("DELETE", "/acme/$logs?restype=container", "$logs/"),
        ("GET", "/acme/?comp=list", None),
        ("GET", "/acme?comp=list", None),
        ("GET", "/acme/?restype=service&comp=properties", None),
        ("GET", "/acme/?restype=account&comp=properties", None),
        ("POST", "/acme/?comp=batch", None),
        ("POST", "/acme/logs?restype=container&comp=batch", None),
        ("OPTIONS", "/acme/logs/a", None),
        ("POST", "/acme/logs/a", None),
    ],
)
def test_requests_about_no_blob(method: str, target: str, key: str | None) -> None:
    """Those about a container name it; a batch has its blobs in its body, which nobody reads."""
    asked = read_blob_request(method, target)
    assert (asked.kind, asked.partition_key) == (None, key)


def test_a_list_is_about_its_container() -> None:
    """It is no blob's, and no target is for it."""
    asked = read_blob_request("GET", "/acme/logs?restype=container&comp=list&prefix=a/b")
    assert (asked.kind, asked.partition_key) == (Kind.LIST_BLOBS, "logs/")


def test_a_blob_without_a_container_is_in_the_root() -> None:
    """Its address has no container; one that names it is of the same blob."""
    for target in ("/acme/favicon.ico", "/acme/$root/favicon.ico", "/acme/%24root/favicon.ico"):
        assert read_blob_request("GET", target).partition_key == "$root/favicon.ico"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_however_it_is_spelled(name: str) -> None:
    """Partition and record have the name of the blob, and get it back."""
    asked = read_blob_request("PUT", f"/acme/logs/{quote(name)}")
    assert asked.partition_key == f"logs/{name}"
    whole = f"{asked.spelled}/{asked.partition_key}"
    partition = Partition.named(whole)
    assert partition == ("(blobs)", f"logs/{name}")
    assert partition.name == whole
    assert not partition.targeted
    raw = f"/acme/logs/{name}".encode().decode("latin-1")
    if not set(name) & set("?%"):
        assert read_blob_request("PUT", raw).partition_key == f"logs/{name}"


@given(st.text(max_size=60), st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]))
def test_any_target_is_read(text: str, method: str) -> None:
    """No form is an error; what is read has a kind only with a container."""
    for target in (text, f"/{quote(text, safe='/?&=%')}", f"/acme/logs/{text}"):
        for in_path in (True, False):
            asked = read_blob_request(method, target, in_path=in_path)
            assert asked.kind is None or "/" in (asked.partition_key or "")


def test_the_host_tells_where_the_account_is() -> None:
    """One that names the account leaves the path to the container."""
    dialect = BlobDialect(in_path=True)
    for host in ("acme.blob.core.windows.net", "acme.blob.localhost:10000"):
        assert beside_at(host) is AZURE_BLOBS
        headers = Headers.of({"Host": host})
        assert dialect.read("GET", "/logs/a/b", headers, b"").partition_key == "logs/a/b"
    headers = Headers.of({"Host": "127.0.0.1:10000"})
    assert dialect.read("GET", "/acme/logs/a/b", headers, b"").partition_key == "logs/a/b"
    behind = BlobDialect(in_path=False)
    assert behind.read("GET", "/logs/a/b", headers, b"").partition_key == "logs/a/b"
    for server in ("Azurite-Blob/3.36.0", "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"):
        assert server_answering(server) == "blob"


def test_no_limit_is_for_blobs() -> None:
    """No document names one: they pass a gateway that would refuse anything else, and take
    nothing from the account."""
    none = Rate(entities_per_s=0.1, burst_s=10.0)
    model = Model(GatewayLimits(partition=none, account=none), 0.0)
    asked = read_blob_request("PUT", "/acme/logs/a")
    for _ in range(50):
        assert not model.decide(asked, 0.0).rule
        assert model.answered(asked, Answered(status=201), 0.0).entities == 1
        model.not_done(asked, 0.0)
    row = Asked(Kind.INSERT, "orders", "orders", "p", 1)
    assert [model.decide(row, 0.0).rule for _ in range(2)] == ["", "partition"]


def test_faults_are_for_blobs_too() -> None:
    """An application that is tested with faults meets them wherever it asks."""
    model = Model(GatewayLimits(faults=Faults(error_503=1.0)), 0.0)
    assert model.decide(read_blob_request("GET", "/acme/logs/a"), 0.0).fault is not None


@pytest.mark.parametrize(
    ("method", "status", "code", "entities", "outcome"),
    [
        ("PUT", 201, "", 1, Outcome.SUCCESS),
        ("DELETE", 202, "", 1, Outcome.SUCCESS),
        ("GET", 206, "", 1, Outcome.SUCCESS),
        ("GET", 404, "BlobNotFound", 1, Outcome.NOT_FOUND),
        ("DELETE", 404, "BlobNotFound", 0, Outcome.NOT_FOUND),
        ("GET", 404, "ContainerNotFound", 0, Outcome.REJECTED),
        ("GET", 304, "", 0, Outcome.PRECONDITION),
        ("GET", 416, "InvalidRange", 0, Outcome.PRECONDITION),
        ("PUT", 409, "BlobAlreadyExists", 0, Outcome.CONFLICT),
        ("PUT", 409, "ContainerBeingDeleted", 0, Outcome.REJECTED),
        ("PUT", 412, "LeaseIdMissing", 0, Outcome.PRECONDITION),
        ("PUT", 503, "ServerBusy", 0, Outcome.THROTTLED),
        ("PUT", 403, "AuthorizationFailure", 0, Outcome.FORBIDDEN),
    ],
)
def test_a_request_counts_as_one(
    method: str, status: int, code: str, entities: int, outcome: Outcome
) -> None:
    """By the rule of rows: what was done, and what a read did not find."""
    asked = read_blob_request(method, "/acme/logs/a")
    headers = {"x-ms-error-code": code} if code else {}
    answered = read_answer(asked, GatewayAnswer(status, headers, b'{"odata.error": "content"}'))
    assert Model(GatewayLimits(), 0.0).answered(asked, answered, 0.0).entities == entities
    assert asked.kind is not None
    operation = Operation(kind=asked.kind, table="(blobs)", partition_key="logs/a")
    attempt = Attempt(status=status, error_code=code, sent_s=0.0, latency_s=0.1)
    assert classify(operation, attempt) is outcome


def test_a_second_write_may_meet_what_the_first_one_did() -> None:
    """A blob that must not exist does, after an answer that was lost."""
    operation = Operation(kind=Kind.PUT_BLOB, table="(blobs)", partition_key="logs/a")
    lost = Attempt(status=500, error_code="InternalError", sent_s=0.0, latency_s=0.1)
    found = Attempt(status=409, error_code="BlobAlreadyExists", sent_s=1.0, latency_s=0.1)
    assert classify(operation, found, [lost]) is Outcome.AMBIGUOUS


def test_without_an_endpoint_blobs_are_acknowledged() -> None:
    """A write has an ETag; a read finds nothing, and a list no blob."""
    dialect = BlobDialect()

    def answered(method: str, path: str) -> GatewayAnswer:
        target = f"/acme/logs{path}"
        asked = dialect.read(method, target, {}, b"")
        return dialect.own(dialect.unstored(Unpassed(method, target, {}, b"", asked, NOW)))

    for path in ("/a", "/a?comp=block", "/a?comp=appendblock"):
        written = answered("PUT", path)
        assert written.status == 201
        assert written.headers["ETag"]
    assert answered("PUT", "/a?comp=metadata").status == 200
    assert answered("DELETE", "/a").status == 202
    missing = answered("GET", "/a")
    assert missing.headers["x-ms-error-code"] == "BlobNotFound"
    assert ElementTree.fromstring(missing.body).findtext("Code") == "BlobNotFound"
    found = ElementTree.fromstring(answered("GET", "?restype=container&comp=list").body)
    assert found.tag == "EnumerationResults"
    methods = ("PUT", "GET", "HEAD", "DELETE")
    assert [answered(one, "?restype=container").status for one in methods] == [201, 200, 200, 202]
    assert answered("PUT", "?restype=container&comp=metadata").status == 200
    assert answered("GET", "?restype=service&comp=stats").status == 501
