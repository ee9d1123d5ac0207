"""Signatures and dates of requests."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.credential import Sas, ServiceDate, SharedKey
from harness.endpoint.endpoint import emulator_endpoint
from harness.endpoint.protocol.requests import RequestWriter
from harness.model.operation import Kind, Operation


@given(
    st.binary(min_size=0, max_size=150),
    st.sampled_from(["GET", "PATCH"]),
    st.sampled_from(["", "application/json", "multipart/mixed; boundary=b"]),
    st.text(max_size=200),
)
def test_a_signature_is_the_hmac_of_the_documented_text(
    key: bytes, method: str, content_type: str, path: str
) -> None:
    """Verb, no MD5, type, date, account and path are signed with the key, however long it is."""
    path = path.encode("utf-8", "ignore").decode()
    signer = SharedKey("account", base64.b64encode(key).decode())
    text = f"{method}\n\n{content_type}\nthe date\n/account{path}"
    expected = base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
    for _ in range(2):
        found = signer.authorization(method, content_type, "the date", path)
        assert found == f"SharedKey account:{expected}"
    assert signer.query == ""


def test_a_key_that_is_no_base64_is_refused() -> None:
    """A mutilated key is seen before anything is sent."""
    with pytest.raises(binascii.Error):
        SharedKey("account", "no base64!")


def test_a_shared_access_signature_is_in_the_address() -> None:
    """A SAS signs nothing and is part of every address."""
    signer = Sas("sv=1&sig=2")
    assert signer.query == "sv=1&sig=2"
    assert signer.authorization("GET", "", "the date", "/account/table") == ""


def test_the_date_is_one_that_http_knows() -> None:
    """A date for the service names its zone, and is the same for a second."""
    date = ServiceDate()
    now = date.now()
    assert now.endswith(" GMT")
    assert parsedate_to_datetime(now).microsecond == 0
    assert parsedate_to_datetime(date.now()) >= parsedate_to_datetime(now)


def test_an_unknown_type_of_credential_is_refused() -> None:
    """Nothing signs with it, least of all by putting it into an address; its text is not shown."""

    class Bearer:
        token = "c2VjcmV0"

        def __repr__(self) -> str:
            return self.token

    endpoint = dataclasses.replace(
        emulator_endpoint("http://127.0.0.1:1"),
        credential=Bearer(),  # type: ignore[arg-type]
    )
    with pytest.raises(AttributeError, match="Bearer") as caught:
        RequestWriter(endpoint, "table").single(
            Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"), "id"
        )
    assert Bearer.token not in str(caught.value)
