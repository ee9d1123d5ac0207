"""Names of queues, and how operations on messages are counted and classified."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import Kind, Message, Operation
from harness.model.outcome import Attempt, Fault, Outcome, classify
from harness.model.services import SERVICES, service_of_session
from harness.model.services.queues import (
    AZURITE_QUEUES,
    QUEUES,
    queue_name_problem,
)
from harness.model.services.service import EXAMPLE_STORES, PUBLISHED, Targets, store_of
from harness.model.services.storage import STORAGE
from harness.model.target import entity_count

ALLOWED = set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    "name", ["", "ab", "a" * 64, "Orders", "my_queue", "-orders", "orders-", "a--b", "größe", "a b"]
)
def test_what_the_service_refuses_is_no_name(name: str) -> None:
    """Length, characters and hyphens: the sentence says which."""
    assert "the name of a queue has" in str(queue_name_problem(name))


@given(st.text(alphabet="ab0-", min_size=1, max_size=70))
def test_a_name_is_what_the_rule_says(name: str) -> None:
    """3 to 63 characters, a hyphen only between two others."""
    allowed = 3 <= len(name) <= 63 and "--" not in name and "-" not in (name[0], name[-1])
    assert (queue_name_problem(name) is None) == allowed


@given(st.text(max_size=40))
def test_any_text_has_an_answer(name: str) -> None:
    """Whatever a partition is called, it is a name or there is a reason why not."""
    problem = queue_name_problem(store_of(EXAMPLE_STORES, name))
    assert problem is not None or set(name) <= ALLOWED


def test_a_queue_has_a_target_and_its_account_none() -> None:
    """The document names 2,000 messages/s for a queue, and nothing for the account."""
    targets = QUEUES.targets
    assert targets is not None
    assert (targets.partition, targets.of_account) == (2000.0, None)
    assert (targets.origin, targets.note(QUEUES.unit)) == ("published", "")
    assert targets.word("account") == "target"
    assert QUEUES.held_to(Targets(partition=4000.0, account=40000.0)) is QUEUES
    assert PUBLISHED.of_account == 20000.0


def test_targets_are_raised_by_those_of_their_service() -> None:
    """What one service publishes may be above what another does, and is not raised for that."""
    other = dataclasses.replace(STORAGE, targets=Targets(partition=5000.0, account=50000.0))
    assert other.targets is not None
    assert (other.targets.origin, other.targets.note(other.unit)) == ("published", "")
    raised = other.held_to(Targets(partition=9000.0, account=50000.0)).targets
    assert raised is not None
    assert [raised.word("partition"), raised.word("account")] == ["raised target", "target"]
    assert "The published ones are 5,000 and 50,000." in raised.note(other.unit)


def test_a_session_sends_to_one_service_in_azure_and_to_one_on_this_machine() -> None:
    """The emulator stands in unless the service itself is asked for."""
    assert service_of_session("queue") is AZURITE_QUEUES
    assert service_of_session("queue", emulated=False) is QUEUES
    assert service_of_session("wire", emulated=False) is None
    assert {QUEUES, AZURITE_QUEUES} <= set(SERVICES)


def put(**more: object) -> Operation:
    return Operation(kind=Kind.PUT_MESSAGE, partition_key="orders", **more)  # type: ignore[arg-type]


def test_each_message_counts_one() -> None:
    """Put, got, updated or deleted; a get that returns none counts none."""
    got = Operation(kind=Kind.GET_MESSAGES, partition_key="orders", top=32)
    assert got.entities_asked == 32
    assert entity_count(got, Outcome.SUCCESS, 0) == 0
    assert entity_count(got, Outcome.SUCCESS, 7) == 7
    assert entity_count(put(), Outcome.SUCCESS) == 1
    assert entity_count(put(), Outcome.AMBIGUOUS) == 0
    for kind in (Kind.UPDATE_MESSAGE, Kind.DELETE_MESSAGE):
        changed = Operation(kind=kind, partition_key="orders", row_key="1", etag="r")
        assert entity_count(changed, Outcome.SUCCESS) == 1
        assert entity_count(changed, Outcome.NOT_FOUND) == 0


def answered(status: int, code: str = "") -> Attempt:
    return Attempt(status=status, sent_s=0.0, latency_s=0.1, error_code=code)


LOST = Attempt(status=0, sent_s=0.0, latency_s=0.1, error_code="reset", fault=Fault.RESET)


@pytest.mark.parametrize(
    ("kind", "status", "code", "alone", "after_a_lost_answer"),
    [
        (Kind.DELETE_MESSAGE, 404, "MessageNotFound", "not_found", "ambiguous"),
        (Kind.DELETE_MESSAGE, 400, "PopReceiptMismatch", "precondition", "ambiguous"),
        (Kind.UPDATE_MESSAGE, 400, "PopReceiptMismatch", "precondition", "ambiguous"),
        (Kind.DELETE_MESSAGE, 404, "QueueNotFound", "rejected", "rejected"),
        (Kind.PUT_MESSAGE, 404, "QueueNotFound", "rejected", "rejected"),
        (Kind.PUT_MESSAGE, 503, "ServerBusy", "throttled", "throttled"),
        (Kind.GET_MESSAGES, 200, "", "success", "success"),
    ],
)
def test_what_an_answer_means(
    kind: Kind, status: int, code: str, alone: str, after_a_lost_answer: str
) -> None:
    """A refusal that an earlier attempt can have caused is ambiguous after a lost answer."""
    operation = Operation(kind=kind, partition_key="orders")
    assert classify(operation, answered(status, code)).value == alone
    assert classify(operation, answered(status, code), [LOST]).value == after_a_lost_answer


def test_a_message_of_an_update_has_only_its_receipt() -> None:
    """The defaults are those of a message whose content is unknown."""
    assert Message(id="1", receipt="r") == Message(id="1", receipt="r", text="", gets=0, age_s=0.0)
