"""The question before a run, put to Cosmos DB: which service answers, and why it refuses."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from harness.endpoint.admin.probe import check, explain, recognised
from harness.endpoint.credential import Refusal, Sas
from harness.endpoint.endpoint import Endpoint, as_kind, endpoint_from
from harness.model.errors import SetupError
from harness.model.services.cosmos import COSMOS_EMULATOR
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY

KEY = "a2V5"


def tables(*headers: str) -> bytes:
    """An answer to a list of tables."""
    body = '{"value":[]}'
    lines = ["HTTP/1.1 200 OK", *headers, f"Content-Length: {len(body)}", "", ""]
    return ("\r\n".join(lines) + body).encode()


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("x-ms-request-charge: 1", COSMOS_EMULATOR),
        ("Server: Microsoft-HTTPAPI/2.0", AZURITE),
        ("Server: Azurite-Table/3.36.0", AZURITE),
        ("X-Other: 1", AZURITE),
    ],
)
def test_the_answers_tell_what_is_on_this_machine(service: Any, header: str, kind: Service) -> None:
    """Its address does not; and a stand-in is then asked as the SDK asks Cosmos DB."""
    service.script = [tables(header)]
    found = check(service.endpoint, environ={})
    assert found.kind is kind
    assert found.hostname == ("localhost" if kind.charges else "127.0.0.1")
    assert found.port == service.endpoint.port


def test_an_address_that_tells_the_kind_is_believed(service: Any) -> None:
    """A gateway of this run stays one, and so does a host that names its service."""
    known = as_kind(service.endpoint, GATEWAY)
    remote = endpoint_from("https://a1.table.core.windows.net", {"AZURE_STORAGE_KEY": KEY})
    for endpoint in (known, remote):
        assert recognised(endpoint, COSMOS_EMULATOR) is endpoint


def of_cosmos() -> Endpoint:
    host = "https://orders.table.cosmos.azure.com"
    return endpoint_from(host, {"AZURE_STORAGE_KEY": KEY})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("The MAC signature found in the HTTP request is not the same.", "refuses the key"),
        ("Local Authorization is disabled. Use an AAD token.", "--auth-mode login"),
        ("Request blocked by your Cosmos DB account firewall settings.", "firewall of the account"),
        ("Exceeded allowed aad token limit of 100 that can be used concurrently", "fewer process"),
    ],
)
def test_each_reason_to_refuse_a_credential_is_told_apart(message: str, words: str) -> None:
    """By the message: the code is Unauthorized or Forbidden for all of them."""
    said = explain(of_cosmos(), Refusal(401, "Unauthorized", message))
    assert words in said
    assert "orders.table.cosmos.azure.com" in said
    assert message.rstrip(".") in said


def test_a_refused_sas_says_what_to_use() -> None:
    """Only a SAS for one table is known to Cosmos DB, and was seen to be refused."""
    endpoint = dataclasses.replace(of_cosmos(), credential=Sas("sv=1&tn=t&sig=a"))
    said = explain(endpoint, Refusal(403, "Forbidden", "Server failed to authenticate."))
    assert "SAS for one table only" in said
    assert "--auth-mode login" in said


def test_a_refusal_by_the_stand_in_is_read(service: Any) -> None:
    """Its errors have the form of those of Cosmos DB."""
    error = {"odata.error": {"code": "Unauthorized", "message": {"lang": "en", "value": "No."}}}
    body = json.dumps(error).encode()
    head = f"HTTP/1.1 401 Unauthorized\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    service.script = [head + body]
    endpoint = as_kind(service.endpoint, COSMOS_EMULATOR)
    with pytest.raises(SetupError, match="refuses the key for the account devstoreaccount1"):
        check(endpoint, environ={})
