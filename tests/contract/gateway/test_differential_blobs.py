"""The SDK of blobs, directly at an Azurite and through a gateway to another: equal answers."""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    BlobType,
    ContainerClient,
    ContentSettings,
    StandardBlobTier,
)

from harness.model.services.blobs import AZURE_BLOBS
from tests.support.differential import (
    Recorder,
    SyncTransport,
    azurite_and_gateway,
    gateway_counts,
    own_counts,
    played_through,
)
from tests.support.python_script import Step
from tests.support.sdk import account_key

pytestmark = [pytest.mark.azurite, pytest.mark.long]

RAISED = (AzureError, ValueError, TypeError)
TABLE = AZURE_BLOBS.beside
CONTAINER = "differential"
NAMES = (
    *("plain", "a/b", "a//b", "/lead", "trail/", "100%", "%41", "what?", "a#b", "a b", "a+b&c=d"),
    *("ünï", "日本語 😀", "a\\b", "'quoted'", '"', "<a>", "..x", "x" * 1024, "x" * 1025, "a.", "~"),
)
LINK = b'{"odata.id": "http://127.0.0.1:10000/devstoreaccount1/a", "value": []}'
LEASE = "00000000-0000-4000-8000-000000000000"
LARGE = bytes(range(256)) * 4096 * 12
"""12 MiB: more than the gateway holds of a request, and of an answer."""


def steps(service: BlobServiceClient, container: ContainerClient) -> Generator[Step, Any, None]:
    """Yield each step, and receive what its call returned or raised."""

    def step(label: str, call: Callable[[], Any], name: str = "") -> Step:
        return Step(label, TABLE, f"{CONTAINER}/{name}", call)

    def read(blob: BlobClient, **said: Any) -> Callable[[], Any]:
        return lambda: hashlib.sha256(blob.download_blob(**said).readall()).hexdigest()

    def none(label: str, call: Callable[[], Any]) -> Step:
        return Step(label, "", None, call)

    yield none("service", service.get_service_properties)
    yield none("account", service.get_account_information)
    yield step("create", lambda: container.create_container(metadata={"owner": "tests"}))
    yield step("create again", container.create_container)
    yield step("container", container.get_container_properties)
    yield step("policy", container.get_container_access_policy)
    for name in NAMES:
        blob = container.get_blob_client(name)
        yield step(f"put {name}", partial(blob.upload_blob, b"x", overwrite=True), name)
        yield step(f"get {name}", read(blob), name)
        yield step(f"head {name}", blob.get_blob_properties, name)
    for kind in ("application/json", "application/xml", "multipart/mixed; boundary=b", "x"):
        blob = container.get_blob_client("typed")
        typed: dict[str, Any] = {
            "content_settings": ContentSettings(content_type=kind),
            "overwrite": True,
        }
        for body in (LINK, b"--b\r\n\r\nGET http://127.0.0.1/a HTTP/1.1\r\n--b--", b"\x1f\x8b\0"):
            yield step(f"put {kind}", partial(blob.upload_blob, body, **typed), "typed")
            yield step(f"get {kind}", read(blob), "typed")
    empty = container.get_blob_client("empty")
    yield step("put nothing", lambda: empty.upload_blob(b""), "empty")
    yield step("put again", lambda: empty.upload_blob(b"x"), "empty")
    large = container.get_blob_client("large")
    yield step("put large", lambda: large.upload_blob(LARGE, validate_content=True), "large")
    yield step("get large", read(large), "large")
    ranges: tuple[dict[str, Any], ...] = (
        {"offset": 10, "length": 5},
        {"offset": len(LARGE) - 3},
        {"offset": len(LARGE) + 1, "length": 1},
        {"offset": 1, "length": 4096, "validate_content": True},
    )
    for said in ranges:
        yield step(f"range {said}", read(large, **said), "large")
    blocks = container.get_blob_client("blocks")
    for number in range(3):
        body = f"{number}".encode() * 100_000
        yield step(f"block {number}", partial(blocks.stage_block, f"{number}", body), "blocks")
    yield step("blocks", lambda: blocks.get_block_list("all"), "blocks")
    order = [BlobBlock("2"), BlobBlock("0")]
    yield step("commit", lambda: blocks.commit_block_list(order), "blocks")
    yield step("commit unknown", lambda: blocks.commit_block_list([BlobBlock("9")]), "blocks")
    log = container.get_blob_client("log")
    yield step("append to nothing", lambda: log.append_block(b"x"), "log")
    yield step("make log", log.create_append_blob, "log")
    for place in (0, 0, 4):
        append = partial(log.append_block, b"line", appendpos_condition=place)
        yield step(f"append {place}", append, "log")
    page = container.get_blob_client("page")
    yield step("make page", lambda: page.create_page_blob(1024), "page")
    yield step("write page", lambda: page.upload_page(b"p" * 512, 512, 512), "page")
    yield step("pages", lambda: len(list(page.list_page_ranges())), "page")
    yield step("wrong kind", lambda: page.append_block(b"x"), "page")
    blob = container.get_blob_client("plain")
    found = yield step("properties", blob.get_blob_properties, "plain")
    same: dict[str, Any] = {"etag": found.etag, "match_condition": MatchConditions.IfModified}
    yield step("not modified", read(blob, **same), "plain")
    other: dict[str, Any] = {"etag": '"0x1"', "match_condition": MatchConditions.IfNotModified}
    yield step("other etag", lambda: blob.set_blob_metadata({"a": "b"}, **other), "plain")
    yield step(
        "metadata", lambda: blob.set_blob_metadata({"a": "http://127.0.0.1:10000/x"}), "plain"
    )
    yield step(
        "headers", lambda: blob.set_http_headers(ContentSettings(cache_control="no")), "plain"
    )
    yield step("tier", lambda: blob.set_standard_blob_tier(StandardBlobTier.COOL), "plain")
    yield step("tags", lambda: blob.set_blob_tags({"a": "b"}), "plain")
    yield step("snapshot", lambda: bool(blob.create_snapshot()), "plain")
    lease = yield step("lease", lambda: blob.acquire_lease(15, LEASE), "plain")
    yield step("delete leased", blob.delete_blob, "plain")
    yield step("release", lease.release, "plain")
    yield step("delete with snapshots", blob.delete_blob, "plain")
    yield step("delete", lambda: blob.delete_blob(delete_snapshots="include"), "plain")
    yield step("delete again", blob.delete_blob, "plain")
    yield step("exists", blob.exists, "plain")
    source = container.get_blob_client("typed")
    copied = container.get_blob_client("copied")
    yield step("copy", lambda: sorted(copied.start_copy_from_url(source.url)), "copied")
    yield step("list", lambda: [one.name for one in container.list_blobs()])
    yield step("list with prefix", lambda: [one.name for one in container.list_blobs("a/")])
    yield step(
        "list by page",
        lambda: [len(list(page)) for page in container.list_blobs(results_per_page=5).by_page()],
    )
    yield step("walk", lambda: [one.name for one in container.walk_blobs()])
    root = service.get_container_client("$root")
    yield Step("root", TABLE, "$root/", root.create_container)
    at_root = root.get_blob_client("favicon.ico")
    yield Step("put root", TABLE, "$root/favicon.ico", lambda: at_root.upload_blob(b"x"))
    for label, name in (("logs", "$logs"), ("web", "$web"), ("bad", "A--B"), ("short", "a")):
        strange = service.get_container_client(name)
        yield Step(f"create {label}", TABLE, f"{name}/", strange.create_container)
        put = strange.get_blob_client("a")
        yield Step(f"put {label}", TABLE, f"{name}/a", partial(put.upload_blob, b"x"))
    yield none("batch", lambda: [one.status_code for one in container.delete_blobs("a/b", "none")])
    yield none("containers", lambda: [one.name for one in service.list_containers()])
    yield step("drop", container.delete_container)
    yield step("put in none", lambda: empty.upload_blob(b"x", overwrite=True), "empty")
    yield step("type", lambda: empty.upload_blob(b"x", blob_type=BlobType.APPENDBLOB), "empty")


def run_in_python(script: Recorder) -> None:
    """Run the script with the clients for Python."""
    url, key = script.endpoint.url, account_key(script.endpoint)
    credential = {"account_name": script.endpoint.account, "account_key": key}
    said: dict[str, Any] = {"credential": credential, "retry_total": 0}
    said |= {"max_single_put_size": len(LARGE), "max_single_get_size": len(LARGE)}
    with (
        BlobServiceClient(url, transport=SyncTransport(script), **said) as service,
        ContainerClient(url, CONTAINER, transport=SyncTransport(script), **said) as container,
    ):
        script.play(steps(service, container), RAISED)


def test_blobs_answer_the_same_through_the_gateway() -> None:
    """Status, headers, body and result of each call are equal, and the counts are the client's.

    Bounds: some two hundred requests, about ten seconds.
    """
    with azurite_and_gateway("blob") as (endpoint, gateway):
        answers = played_through(endpoint, gateway, run_in_python)
        told = gateway.counters()
    rows = json.loads(told)["counts"]
    assert sum(row["requests"] for row in rows) == len(answers)
    # The answer to a batch is that of no blob, and its parts have statuses of their own.
    rest = [answer for answer in answers if answer.label != "batch"]
    expected = own_counts(rest) + collections.Counter({("", None, "202"): 1})
    assert expected == gateway_counts(told)
    assert len({row["partition"] for row in rows}) > len(NAMES)
