"""What a mix and a scenario on queues send."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SetupError
from harness.model.operation import MESSAGE_TEXT, Kind, Message, Operation
from harness.model.outcome import Attempt, Outcome, Result
from harness.model.services.queues import AZURITE_QUEUES
from harness.profile.build.workload import source_of
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile
from harness.workload.entity_factory import EntityFactory
from harness.workload.operation_source import Steps, steps_of
from harness.workload.tasks import MessageShape, MessageTasks
from tests.support import driving

NAMES = ("orders", "payments", "mail")
RUN = "20261126T120000Z-0badcafe"


def profile(**more: Any) -> Profile:
    content = {
        "question": "Is it so?",
        "session": {"kind": "queue"},
        "fields": {"area": {"values": list(NAMES)}},
        "keys": {"partition_key": "{area}"},
        "mix": {"put_message": 2, "get_messages": 1, "delete_message": 1},
        **more,
    }
    return parse(content, source="test")


def sent(of: Profile, count: int = 400) -> list[Operation]:
    source = source_of(of, run_id=RUN, worker=0)
    return list(itertools.islice(driving.operations(source, random.Random(1)), count))


def test_the_partition_of_a_mix_is_the_queue() -> None:
    """Operations go to the named queues, and nothing is loaded before."""
    operations = sent(profile())
    assert {operation.partition for operation in operations} == set(NAMES)
    assert all(operation.kind.on_messages for operation in operations)
    source = source_of(profile(), run_id=RUN, worker=0)
    assert (source.loaded_entities, list(source.loading())) == (0, [])
    observed = observe(profile(), kind=AZURITE_QUEUES)
    assert observed.tables == ("-orders", "-payments", "-mail")
    shares = observed.prediction
    assert shares.hottest_share == pytest.approx(1 / 3)


def test_an_entity_among_messages_has_a_least_size() -> None:
    """A profile for queues that names actions on tables too is refused, and not its first write."""
    mix = {"put_message": 1, "insert": 1}
    with pytest.raises(SetupError, match="an entity of 5 bytes is too small"):
        profile(mix=mix, entity={"size_bytes": 5}, keys={"partition_key": "{area}-{n}"})


@given(st.integers(1, 200), st.integers(1, 10**6), st.floats(0.01, 1))
def test_a_message_has_the_wanted_size(size: int, number: int, compressible: float) -> None:
    """Also one that is too short for the name of the run, or for the smallest entity."""
    of = profile(entity={"size_bytes": size, "compressible": compressible})
    text = of.entity.factory(RUN).message(number)
    assert len(text.encode()) == size
    assert text.startswith(f"{number} "[:size])


def test_messages_are_deleted_once_they_were_got() -> None:
    """Never more deletes than messages that were got, and these never more than were put."""
    counts: collections.Counter[tuple[str, Kind]] = collections.Counter()
    for operation in sent(profile(), 2_000):
        counts[operation.partition_key, operation.kind] += 1
        deleted = counts[operation.partition_key, Kind.DELETE_MESSAGE]
        assert deleted <= counts[operation.partition_key, Kind.GET_MESSAGES]
        assert deleted <= counts[operation.partition_key, Kind.PUT_MESSAGE]
    assert sum(counts[name, Kind.DELETE_MESSAGE] for name in NAMES) > 100


def test_a_prediction_counts_the_messages_that_gets_would_return() -> None:
    """Gets of up to 32 messages take those that were put; one that gets none takes one turn."""
    observed = observe(
        profile(mix={"put_message": 1, "get_messages": 1}, messages={"most": 32}),
        kind=AZURITE_QUEUES,
    )
    gets, puts = (
        next(sent for sent in observed.sent if sent.kind is kind)
        for kind in (Kind.GET_MESSAGES, Kind.PUT_MESSAGE)
    )
    assert puts.entities == puts.count
    assert gets.count <= gets.entities < gets.count + puts.count


def driven(steps: Steps, *values: list[Message]) -> Iterator[Operation]:
    """The operations of a task, whose results have these values."""
    operation = next(steps)
    for value in values:
        yield operation
        attempts = (Attempt(status=200, sent_s=0.0, latency_s=0.0),)
        result = Result(
            operation=operation,
            outcome=Outcome.SUCCESS,
            sent_s=0.0,
            done_s=0.0,
            attempts=attempts,
            value=value,
        )
        try:
            operation = steps.send(result)
        except StopIteration:
            return
    yield operation


def test_an_update_takes_the_first_and_keeps_its_new_receipt() -> None:
    """What was updated is deleted by the receipt of the update, after what was got before."""
    tasks = MessageTasks(EntityFactory(1024, RUN), MessageShape(most=2, hidden_s=9))
    one, two = Message(id="1", receipt="a"), Message(id="2", receipt="b")
    [get] = driven(steps_of(tasks.get("q")), [one, two])
    assert (get.top, get.properties) == (2, {"VisibilityTimeout": 9})
    [update] = driven(steps_of(tasks.update("q")), [Message(id="1", receipt="c")])
    assert (update.row_key, update.etag) == ("1", "a")
    receipts = [next(steps_of(tasks.delete("q"))).etag for _ in range(2)]
    assert receipts == ["b", "c"]
    assert next(steps_of(tasks.delete("q"))).kind is Kind.GET_MESSAGES
    assert next(steps_of(tasks.update("q"))).kind is Kind.GET_MESSAGES


@pytest.mark.parametrize("size", [1024, 65_536])
def test_a_message_has_the_size_of_an_entity(size: int) -> None:
    """Its text has ``entity.size_bytes``, and no two of a worker are equal."""
    texts = [
        str((operation.properties or {})[MESSAGE_TEXT])
        for operation in sent(profile(entity={"size_bytes": size}), 40)
        if operation.kind is Kind.PUT_MESSAGE
    ]
    assert {len(text.encode()) for text in texts} == {size}
    assert len(set(texts)) == len(texts) > 5


def test_a_consumer_deletes_each_message_that_it_got() -> None:
    """The scenario has a queue for each value of its field."""
    content = {
        "question": "Is it so?",
        "scenario": "producer-consumer",
        "session": {"kind": "queue"},
        "fields": {"queue": {"values": 12}},
        "messages": {"most": 4},
    }
    of = parse(content, source="test")
    assert observe(of, kind=AZURITE_QUEUES).tables[0] == "-queue-00"
    kinds = collections.Counter(operation.kind for operation in sent(of, 3_000))
    assert kinds[Kind.DELETE_MESSAGE] <= kinds[Kind.PUT_MESSAGE]
    assert kinds[Kind.DELETE_MESSAGE] > 0.9 * kinds[Kind.PUT_MESSAGE]


@pytest.mark.parametrize("name", ["Orders", "a_b", "größe", "x" * 40, "a--b", "-a", "a/b", "a\nb"])
def test_a_partition_that_cannot_be_a_queue_is_refused(name: str) -> None:
    """Before anything is sent, with the name and the reason."""
    with pytest.raises(SetupError, match=r"keys.partition_key|fields.area"):
        observe(profile(fields={"area": {"values": [name]}}), kind=AZURITE_QUEUES)


def test_too_many_queues_are_refused() -> None:
    """Each is created by a request."""
    with pytest.raises(SetupError, match="at most 200 queues"):
        observe(profile(fields={"area": {"values": 201}}), kind=AZURITE_QUEUES)
