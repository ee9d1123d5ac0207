"""Requests become attempts, attempts operations, and nothing is lost between them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.answers import GatewayAnswer
from harness.gateway.blob_requests import BlobDialect
from harness.gateway.counters import GONE, HALF, RESET, UNANSWERED, Disposition
from harness.gateway.dialect import Dialect
from harness.gateway.headers import Headers
from harness.gateway.key_ranges import compared_properties
from harness.gateway.messages import Request
from harness.gateway.operations import operation_of
from harness.gateway.proxy import Received
from harness.gateway.queue_requests import QueueDialect, is_about_messages
from harness.gateway.rules.counting import Count
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.origin import WatchedPart
from harness.model.operation import FOLDED
from harness.model.outcome import Scope
from harness.trace.logs.joining import JOINED_WITHIN_S, MOST_PENDING
from harness.watch import books as books_module
from harness.watch import observer as observer_module
from harness.watch.books import MOST_CLIENTS, WatchTally
from harness.watch.observer import Observer

START_S = 1_700_000_000.0


class Here:
    """A client that can receive."""

    gone = ended_input = False


class Left(Here):
    """A client that has closed its half of the connection."""

    ended_input = True


def request(
    method: str, target: str, *, body: bytes = b"", id: str = "", **headers: str
) -> Received:
    """A parsed request."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if id:
        fields["X-MS-Client-Request-ID"] = id
    found = Headers.of(fields)
    made = Request(method, target, "127.0.0.1:1", "http", found, body, True, "1.1", Here())
    dialect = QueueDialect() if is_about_messages(target) else Dialect()
    if target.startswith("/account/blobs/"):
        dialect = BlobDialect()
    return Received(made, dialect.read(method, target, found, body), START_S, dialect)


def upsert(row: str = "r", *, key: str = "p", id: str = "", **headers: str) -> Received:
    """An upsert."""
    keys = f"PartitionKey='{key}',RowKey='{row}'"
    return request("PUT", f"/account/orders({quote(keys)})", body=b"{}", id=id, **headers)


def blob(name: str, **headers: str) -> Received:
    """A request that writes a blob."""
    return request("PUT", f"/account/blobs/{quote(name)}", body=b"content", **headers)


def put_message(queue: str) -> Received:
    """A request that puts a message."""
    return request("POST", f"/account/{queue}/messages", body=b"<QueueMessage />")


def query(**parameters: str) -> Received:
    """A query."""
    text = "&".join(f"{quote(name)}={quote(value)}" for name, value in parameters.items())
    return request("GET", f"/account/orders()?{text.replace('__', '')}")


def end(
    observer: Observer,
    received: Received,
    sent: str,
    *,
    at_s: float = 0.0,
    code: str = "",
    upstream: str | None = None,
    count: bool = True,
) -> None:
    """Let a request end ``at_s`` after the start, and be counted at once or in a batch."""
    received = received._replace(arrived_s=START_S + at_s)
    answer = None
    if sent.isdigit():
        headers = {"x-ms-error-code": code} if code else {}
        answer = GatewayAnswer(status=int(sent), headers=headers)
    refused = sent == "503"
    disposition = Disposition(
        result="refused" if refused else "passed",
        sent=sent,
        scope=Scope.PARTITION if refused else Scope.NONE,
        upstream=upstream if upstream is not None else "" if refused else sent,
    )
    succeeded = sent.isdigit() and int(sent) < 300
    observer.ended(
        received, disposition, Count(entities=1 if succeeded else 0), answer, START_S + at_s
    )
    if count:
        observer.expire(0.0)


def busy(observer: Observer, received: Received, *, at_s: float = 0.0) -> None:
    """Refuse a request."""
    end(observer, received, "503", at_s=at_s, code="ServerBusy")


def counted(observer: Observer) -> Snapshot:
    """The counts so far."""
    observer.expire(0.0)
    return observer.books.ledger.snapshot(start=0, end=0)


def outcomes(observer: Observer) -> dict[str, int]:
    """Operations by outcome."""
    return {str(outcome): count for outcome, count in counted(observer).outcomes.items()}


def test_attempts_with_one_id_are_one_operation() -> None:
    """Two refusals and a success with the same id are one operation of three attempts."""
    observer = Observer("gateway-1")
    for attempts in (1, 2):
        busy(observer, upsert(id="a"), at_s=attempts)
        assert observer.books.attempts_in_flight == attempts
        assert len(observer.books.pending) == 1
    end(observer, upsert(id="a"), "204", at_s=3.0)
    assert (len(observer.books.pending), observer.books.attempts_in_flight) == (0, 0)
    assert outcomes(observer) == {"success": 1}
    counts = counted(observer).counts
    assert (counts.due, counts.sent, counts.operations, counts.attempts) == (1, 1, 1, 3)
    assert (counts.entities, counts.bytes_sent) == (1, 6), "the bodies of each attempt"
    assert observer.books.tally.succeeded_after == {3: 1}
    assert observer.books.tally.unjoined == 0
    (partition,) = counted(observer).partitions
    assert partition.throttled == 2


@pytest.mark.parametrize(("after_s", "ends"), [(129.0, False), (131.0, True)])
def test_an_operation_is_given_up_after_130_s(after_s: float, ends: bool) -> None:
    """An operation that is not sent again ends with the outcome of its last attempt."""
    assert JOINED_WITHIN_S == 130.0
    observer = Observer("gateway-1")
    busy(observer, upsert(id="a"))
    observer.expire(START_S + after_s)
    assert len(observer.books.pending) == int(not ends)
    assert outcomes(observer) == ({"throttled": 1} if ends else {})
    # A later request with the id is another operation.
    end(observer, upsert(id="a"), "204", at_s=after_s)
    assert counted(observer).counts.operations == 1 + int(ends)
    assert counted(observer).counts.attempts == 2


def test_giving_up_goes_by_the_last_attempt() -> None:
    """An operation that was sent again a moment ago waits, though it began first."""
    observer = Observer("gateway-1")
    busy(observer, upsert("1", id="a"))
    busy(observer, upsert("2", id="b"), at_s=10.0)
    busy(observer, upsert("1", id="a"), at_s=100.0)
    observer.expire(START_S + 145.0)
    assert len(observer.books.pending) == 1
    assert counted(observer).counts.operations == 1
    end(observer, upsert("1", id="a"), "204", at_s=146.0)
    assert outcomes(observer) == {"throttled": 1, "success": 1}


@pytest.mark.parametrize(
    ("sent", "upstream", "name", "outcome"),
    [
        (GONE, "204", "read_timeout", "timeout"),
        (RESET, UNANSWERED, "connection_reset", "connection"),
        (RESET, "", "connection_reset", "connection"),
        (HALF, "204", "bad_answer", "unexpected"),
    ],
)
def test_an_answer_that_did_not_arrive(sent: str, upstream: str, name: str, outcome: str) -> None:
    """A lost answer is a fault, and its operation may be sent again."""
    observer = Observer("gateway-1")
    end(observer, upsert(id="a"), sent, upstream=upstream)
    assert len(observer.books.pending) == 1
    assert observer.books.tally.passed == int(bool(upstream))
    end(observer, request("GET", "/account/Tables"), "200", at_s=1.0)
    observer.finish()
    (status,) = counted(observer).partitions[0].attempts_by_status
    assert status == name
    assert outcomes(observer) == {outcome: 1}


@pytest.mark.parametrize("status", ["408", "429", "500", "502", "503", "504"])
def test_statuses_after_which_sdks_send_again(status: str) -> None:
    """Four attempts that all fail are one operation."""
    observer = Observer("gateway-1")
    for at_s in range(4):
        end(observer, upsert(id="a"), status, at_s=float(at_s))
    observer.finish()
    counts = counted(observer).counts
    assert (counts.operations, counts.attempts, counts.attempts_ended) == (1, 4, 4)


@pytest.mark.parametrize(
    ("method", "status", "outcome"),
    [("POST", "409", "ambiguous"), ("POST", "201", "success")],
)
def test_a_retry_after_a_lost_answer(method: str, status: str, outcome: str) -> None:
    """A conflict of a repeated insert may be its own effect."""
    observer = Observer("gateway-1")
    body = b'{"PartitionKey":"p","RowKey":"r"}'
    again = request(method, "/account/orders", body=body, id="a")
    end(observer, again, RESET, upstream=UNANSWERED)
    end(observer, again, status, at_s=1.0, code="EntityAlreadyExists")
    assert outcomes(observer) == {outcome: 1}


def test_a_client_that_left_before_the_answer() -> None:
    """An SDK that closes its connection has given up waiting; its retry is the same operation."""
    observer = Observer("gateway-1")
    for id in ("a", ""):
        received = upsert(id=id)
        received.request.client = Left()
        end(observer, received, "204")
    end(observer, upsert(id="a"), "204", at_s=1.0)
    (partition,) = counted(observer).partitions
    # Without an id it may be a client that only sends nothing more.
    assert partition.attempts_by_status == {"204": 2, "read_timeout": 1}
    assert outcomes(observer) == {"success": 2}
    assert observer.books.tally.succeeded_after == {2: 1}


def test_inserts_with_one_id_are_several_operations() -> None:
    """An application may use one id for all rows of a thing, and only their bodies name them."""
    observer = Observer("gateway-1")

    def insert(row: str) -> Received:
        body = b'{"PartitionKey":"p","RowKey":"%b"}' % row.encode()
        return request("POST", "/account/orders", body=body, id="a")

    busy(observer, insert("1"))
    busy(observer, insert("2"), at_s=0.1)
    end(observer, insert("2"), "201", at_s=0.2)
    end(observer, insert("3"), "201", at_s=0.3)
    observer.finish()
    assert outcomes(observer) == {"success": 2, "throttled": 1}
    assert observer.books.tally.succeeded_after == {2: 1}


def test_what_an_application_left_at_its_end_was_in_flight() -> None:
    """A client that is gone, and sends nothing more, has not failed; one that goes on has."""
    observer = Observer("gateway-1")
    for id, at_s in (("early", 0.0), ("a", 2.0), ("b", 2.0)):
        end(observer, upsert(id=id), "204", at_s=at_s - 0.5)
        end(observer, upsert(id=id), GONE, upstream="204", at_s=at_s)
    assert observer.books.attempts_in_flight == 0
    observer.finish()
    assert outcomes(observer) == {"success": 3, "timeout": 1}
    counts = counted(observer).counts
    assert (counts.sent, counts.operations, counts.attempts) == (6, 4, 4)
    assert len(observer.books.pending) == 2


def test_without_an_id_every_request_is_an_operation() -> None:
    """Requests without an id are not joined; their failures are counted as such."""
    observer = Observer("gateway-1")
    for at_s in (0.0, 1.0):
        busy(observer, upsert(), at_s=at_s)
    end(observer, upsert(), "204", at_s=2.0)
    assert len(observer.books.pending) == 0
    assert outcomes(observer) == {"throttled": 2, "success": 1}
    assert observer.books.tally.unjoined == 2
    assert observer.books.tally.succeeded_after == {}


def test_an_id_that_no_retry_repeats_is_none() -> None:
    """azure-storage-queue for Python renews the id: no attempt is joined with another."""
    observer = Observer("gateway-1")
    agent = "shop azsdk-python-storage-queue/12.18.1 Python/3.11.7"
    for number in range(2):
        put = request("POST", "/account/orders/messages", id=f"id{number}", User_Agent=agent)
        busy(observer, put, at_s=number)
    assert outcomes(observer) == {"throttled": 2}
    assert observer.books.tally.unjoined == 2


def test_one_id_for_several_targets_is_several_operations() -> None:
    """An application that uses one id for everything has the operations that it has."""
    observer = Observer("gateway-1")
    for row in "123":
        busy(observer, upsert(row, id="same"))
    assert len(observer.books.pending) == 3
    for row in "123":
        end(observer, upsert(row, id="same"), "204", at_s=1.0)
    assert observer.books.tally.succeeded_after == {2: 3}


def test_an_answer_that_no_retry_changes_ends_the_operation() -> None:
    """A conflict is final; the same id a second time is another operation."""
    observer = Observer("gateway-1")
    for at_s in (0.0, 1.0):
        end(observer, upsert(id="a"), "412", at_s=at_s, code="UpdateConditionNotSatisfied")
    assert outcomes(observer) == {"precondition": 2}


def test_pending_operations_are_bounded() -> None:
    """Above the bound the operation that was not sent for the longest time is given up."""
    observer = Observer("gateway-1")
    for number in range(MOST_PENDING + 50):
        end(observer, upsert(f"{number}", id="a"), "503", code="ServerBusy", count=False)
    observer.expire(0.0)
    assert len(observer.books.pending) == MOST_PENDING
    assert outcomes(observer) == {"throttled": 50}
    end(observer, upsert("0", id="a"), "204", at_s=1.0)
    assert counted(observer).counts.sent == MOST_PENDING + 51


def test_the_budget() -> None:
    """So many requests are taken; others are refused and are no operations."""
    observer = Observer("gateway-1", 2)
    assert [bool(observer.take()) for _ in range(4)] == [False, False, True, True]
    refused = Disposition(result="refused", rule="budget", sent="403")
    observer.ended(upsert(), refused, Count(), None, START_S)
    observer.expire(0.0)
    assert (observer.books.tally.requests, observer.books.tally.over_budget) == (1, 1)
    assert counted(observer).counts.due == 0
    assert not Observer("gateway-1").take()


def test_clients_are_bounded() -> None:
    """User agents beyond the first ones are counted together, and long ones are cut."""
    observer = Observer("gateway-1")
    for number in range(MOST_CLIENTS + 5):
        end(observer, upsert(User_Agent=f"app/{number} {'x' * 500}"), "204")
    clients = observer.books.tally.clients
    assert len(clients) == MOST_CLIENTS + 1
    parts = observer.books.tally.client_parts
    assert WatchedPart(clients=parts).senders == f"more than {MOST_CLIENTS} clients"
    assert clients[FOLDED] == 5
    assert max(len(name) for name in clients) == 120
    other = WatchTally()
    other.merge(observer.books.tally)
    other.merge(observer.books.tally)
    assert sum(other.clients.values()) == 2 * (MOST_CLIENTS + 5)


def test_others_are_no_operations() -> None:
    """The creation of a table is a request, not an operation."""
    observer = Observer("gateway-1")
    end(observer, request("POST", "/account/Tables", body=b'{"TableName":"orders"}'), "201")
    tally = observer.books.tally
    assert (tally.requests, tally.others, tally.passed) == (1, 1, 1)
    assert counted(observer).counts.due == 0


@pytest.mark.parametrize(
    ("parameters", "label", "partition"),
    [
        ({}, "full_table_scan", "orders//"),
        ({"$filter": "N gt 3"}, "full_table_scan", "orders//"),
        ({"$filter": "PartitionKey eq 'p'"}, "partition_scan", "orders/p"),
        ({"$filter": "PartitionKey eq 'p' and N gt 3"}, "partition_scan", "orders/p"),
        ({"$filter": "PartitionKey eq 'p' and RowKey ge 'a'"}, "row_range_scan", "orders/p"),
        ({"$filter": "PartitionKey eq 'p' and RowKey lt 'a'"}, "row_range_scan", "orders/p"),
        ({"$filter": "PartitionKey eq 'p' and RowKey eq 'a'"}, "row_range_scan", "orders/p"),
        ({"$filter": "PartitionKey ge 'p'"}, "partition_range_scan", "orders//"),
        ({"$filter": "PartitionKey ge 'p' and PartitionKey lt 'q'"}, "partition_range_scan", None),
    ],
)
@pytest.mark.parametrize("continued", [False, True])
def test_labels_of_queries(
    parameters: dict[str, str], label: str, partition: str | None, continued: bool
) -> None:
    """A query is named by its filter, on every page of it."""
    if continued:
        more = {"NextPartitionKey": "1!4!cA--", "NextRowKey": "1!4!YQ--"}
        parameters = {**parameters, **more}
    received = query(**parameters)
    operation = operation_of(received.asked, received.request.headers.get("If-Match"))
    assert operation.label == label
    assert operation.partition == (partition or "orders//")
    assert (operation.filter is not None) is ("N gt" in parameters.get("$filter", ""))


def test_what_a_query_asks_for() -> None:
    """$top and $select are those of the request."""
    received = query(**{"$top": "5", "$select": "A,B"})
    operation = operation_of(received.asked, received.request.headers.get("If-Match"))
    assert (operation.top, operation.select) == (5, ("A", "B"))


def test_a_query_inside_a_batch_is_named_as_any_other() -> None:
    """Its filter and properties are those of the request in the body."""
    body = (
        b"--b\r\nContent-Type: application/http\r\n\r\n"
        b"GET http://h/account/orders()?$filter=PartitionKey%20eq%20'p'%20and%20N%20gt%203"
        b"&$select=A,B HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n"
    )
    received = request(
        "POST", "/account/$batch", body=body, Content_Type="multipart/mixed; boundary=b"
    )
    operation = operation_of(received.asked)
    assert (operation.label, operation.partition) == ("partition_scan", "orders/p")
    assert operation.select == ("A", "B")
    assert "N gt 3" in str(operation.filter)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("PartitionKey eq 'N' and RowKey ge 'x' and 'it''s Price' gt RowKey", ()),
        ("PartitionKey eq 'p' and Price gt 5 and Price lt 7", ("Price",)),
        ("Due le datetime'2026-11-22T00:00:00Z' and not Done and true", ("Due", "Done")),
        ("5 lt Price or Size ge 1.5", ("Price", "Size")),
        ("Price eq 'open", ()),
    ],
)
def test_compared_properties(text: str, names: tuple[str, ...]) -> None:
    """The names of properties that a filter compares, without the range of keys and texts."""
    assert compared_properties(text) == names


def test_the_condition_of_a_write() -> None:
    """An ETag makes a write conditional; a star is any."""
    for etag, kept in (("*", None), ('W/"1"', 'W/"1"')):
        received = upsert(If_Match=etag)
        operation = operation_of(received.asked, received.request.headers.get("If-Match"))
        assert (operation.label, operation.etag) == ("update_replace", kept)


@dataclasses.dataclass(frozen=True)
class Exchange:
    """One request and its result, a while after the one before."""

    row: str
    id: str
    sent: str
    wait_s: float
    expires: bool
    counts: bool


EXCHANGES = st.lists(
    st.builds(
        Exchange,
        row=st.sampled_from("123"),
        id=st.sampled_from(("", "a", "b")),
        sent=st.sampled_from(("204", "404", "409", "412", "500", "503", "504", GONE, RESET, HALF)),
        wait_s=st.sampled_from((0.0, 1.0, 60.0, 140.0)),
        expires=st.booleans(),
        counts=st.booleans(),
    ),
    max_size=40,
)


@given(EXCHANGES, st.booleans())
def test_conservation(exchanges: list[Exchange], finishes: bool) -> None:
    """Any exchanges: due = sent = outcomes + in flight, and each is one attempt."""
    observer, at_s, statuses = Observer("gateway-1"), 0.0, Counter[str]()
    for exchange in exchanges:
        at_s += exchange.wait_s
        if exchange.expires:
            observer.expire(START_S + at_s)
        code = "ServerBusy" if exchange.sent == "503" else ""
        received = upsert(exchange.row, id=exchange.id)
        end(observer, received, exchange.sent, at_s=at_s, code=code, count=exchange.counts)
        statuses[exchange.sent] += 1
    if finishes:
        observer.finish()
    found = counted(observer)
    pending = observer.books.pending.values()
    left = sum(one.left for one in pending)
    assert not finishes or left == len(pending)
    counts, ended = found.counts, sum(found.outcomes.values())
    assert counts.due == counts.sent == ended + len(pending)
    assert counts.operations == ended
    assert counts.attempts == counts.attempts_ended + observer.books.attempts_in_flight
    assert counts.attempts + left == len(exchanges) == observer.books.tally.requests
    by_status: dict[str, int] = {}
    for partition in found.partitions:
        by_status = dict(partition.attempts_by_status)
    assert sum(by_status.values()) == len(exchanges) - left
    assert by_status.get("204", 0) == statuses["204"]
    assert sum(n for name, n in by_status.items() if name.startswith("503")) == statuses["503"]
    assert counts.entities == statuses["204"]


def test_the_observer_has_no_clock() -> None:
    """Time is an argument."""
    for module in (observer_module, books_module):
        assert not {"time", "datetime", "random"} & vars(module).keys()


def test_a_drain_has_what_came_since_the_last_one() -> None:
    """The counts of two drains add up; operations between them are not lost."""
    observer = Observer("gateway-1")
    busy(observer, upsert(id="a"))
    first = observer.drain().tally
    end(observer, upsert(id="a"), "204", at_s=1.0)
    second = observer.drain(ended=True).tally
    assert (first.requests, second.requests) == (1, 1)
    assert (first.succeeded_after, second.succeeded_after) == ({}, {2: 1})


def test_a_table_has_one_name_however_it_is_spelled() -> None:
    """Names of tables are case-insensitive, so that a partition has one row."""
    observer = Observer("gateway")
    for table in ("orders", "Orders", "ORDERS"):
        target = f"/account/{table}(PartitionKey='p',RowKey='r')"
        end(observer, request("PUT", target, body=b"{}"), "204")
    assert [part.key for part in counted(observer).partitions] == ["orders/p"]


def test_a_budget_is_spent_by_what_reaches_the_endpoint() -> None:
    """A request that a limit refused, or that found no endpoint, is not billed."""
    observer = Observer("gateway", budget=1)
    for _ in range(3):
        assert observer.take() == ""
        busy(observer, upsert())
    assert observer.take() == ""
    end(observer, upsert(), "204")
    assert "used up" in observer.take()


def test_entities_of_an_attempt_without_answer_count() -> None:
    """The endpoint executed it, and the partition served it."""
    observer = Observer("gateway")
    disposition = Disposition(result="passed", sent=GONE, upstream="204")
    observer.ended(upsert(id="one"), disposition, Count(entities=1), None, START_S)
    end(observer, upsert(id="one"), "409", at_s=1.0)
    assert counted(observer).counts.entities == 1


def test_the_part_that_failed_names_the_error_of_a_transaction() -> None:
    """A time-out inside of a transaction is throttling as any other."""
    observer = Observer("gateway")
    body = (
        b"--batchresponse_1\r\nContent-Type: multipart/mixed\r\n\r\nHTTP/1.1 500 X\r\n\r\n"
        b'{"odata.error":{"code":"OperationTimedOut","message":{"value":"0:Late."}}}\r\n'
        b"--batchresponse_1--"
    )
    answer = GatewayAnswer(status=202, headers={}, body=body)
    disposition = Disposition(result="passed", sent="500", upstream="500")
    observer.ended(upsert(), disposition, Count(), answer, START_S)
    assert counted(observer).throttled == 1


def test_a_request_that_cannot_be_executed_is_counted() -> None:
    """Such as one that is too large: the watch has seen it."""
    observer = Observer("gateway")
    observer.refused(unreadable=False)
    tally = observer.drain().tally
    assert (tally.requests, tally.others, tally.passed) == (1, 1, 0)


def test_half_a_surrogate_pair_in_a_key_stops_nothing() -> None:
    """The endpoint decides about such a key; the counts have a text for it."""
    insert = request("POST", "/account/orders", body=b'{"PartitionKey":"\\ud800","RowKey":"r"}')
    observer = Observer("gateway")
    end(observer, insert, "204")
    (part,) = counted(observer).partitions
    assert part.key.encode() == b"orders/\\ud800"


def test_a_charge_is_read_from_every_answer() -> None:
    """Successes, refusals and lost answers were charged; text that is no charge was not."""
    observer = Observer("gateway-1")
    answers = (("204", "5.5"), ("404", "1"), (HALF, "2.25"), ("204", "much"), ("204", ""))
    for number, (sent, charge) in enumerate(answers):
        answer = GatewayAnswer(status=204, headers={"x-ms-request-charge": charge})
        disposition = Disposition(result="passed", sent=sent, upstream="204")
        observer.ended(upsert(id=f"{number}"), disposition, Count(), answer, START_S)
    units = counted(observer).request_units
    assert units is not None
    assert units.total == 8.75
