"""What the error of an attempt means: a bad answer, or a defect of the harness."""

from __future__ import annotations

from typing import cast

import pytest
from azure.data.tables import TableEntity

from harness.endpoint.attempts import OperationAttempts
from harness.endpoint.http.exchange import Exchange, ResponseFault, ResponseHeaders
from harness.endpoint.sessions.sdk import read_by_sdk, value_of
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault


def exchange(status: int) -> Exchange:
    made = Exchange("run-0")
    made.sent_s, made.done_s, made.status = 1.0, 2.0, status
    return made


@pytest.mark.parametrize("error", [TypeError("x"), AttributeError("x"), KeyError("x")])
def test_an_error_of_our_own_code_after_a_response_is_a_defect(error: Exception) -> None:
    """A TypeError after a response with 200 is a fault of the client, not a bad answer."""
    query = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    attempts = OperationAttempts(query, lambda *_: None)

    assert attempts.add(exchange(200), error).fault is Fault.CLIENT


def test_what_the_sdk_raises_about_a_response_is_a_bad_answer() -> None:
    """The SDK raises many errors for a response that it does not expect."""
    with pytest.raises(ResponseFault) as raised, read_by_sdk(exchange(200)):
        raise TypeError("a value of another type")

    assert raised.value.fault is Fault.BAD_ANSWER


def test_what_the_sdk_meets_in_code_of_the_harness_is_a_defect() -> None:
    """An error of a function of the harness within a call of the SDK keeps its type."""
    with pytest.raises(AttributeError), read_by_sdk(exchange(200)):
        value_of(cast(TableEntity, {"p": 1}))


def test_a_header_that_the_sdk_misses_is_a_bad_answer() -> None:
    """The SDK asks the headers for what a table service always sends."""
    with pytest.raises(ResponseFault), read_by_sdk(exchange(200)):
        ResponseHeaders()["etag"]


def test_what_the_sdk_raises_before_a_response_is_not_about_one() -> None:
    """Without a status, the SDK was still building the request."""
    with pytest.raises(TypeError), read_by_sdk(exchange(0)):
        raise TypeError("a value without an EDM type")
