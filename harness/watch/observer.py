"""Reads the requests of an application: what each asked for, and what became of it."""

from __future__ import annotations

from harness.endpoint.protocol.responses import charge_of, read_error, retry_after_s
from harness.gateway.answers import GatewayAnswer
from harness.gateway.counters import GONE, HALF, Disposition
from harness.gateway.operations import continuation_of, operation_of
from harness.gateway.proxy import Received
from harness.gateway.queue_requests import oldest_age_s
from harness.gateway.requests import properties_in
from harness.gateway.rules.counting import Count
from harness.model.operation import Kind
from harness.model.outcome import (
    Attempt,
    Fault,
    Scope,
    is_repeated,
    new_attempt,
    new_result,
    throttling_scope,
)
from harness.trace.recorder import Recorder, detail_of
from harness.watch.books import Books, Course, Drained, Identity, Marks, outcome_after

MOST_TABLES = 1000
MOST_HANDED = 20_000
_TOGETHER = 256
_LARGE_BYTES = 65_536
"""A batch keeps the content of its requests in memory: never more than some megabytes."""
_CLIENT_LENGTH = 120
_NO_SCOPE = Scope.NONE
_GET_MESSAGES = Kind.GET_MESSAGES
_UNNAMED = (Kind.INSERT, Kind.TRANSACTION)
"""Operations whose rows are not in the target: an application may use one id for several."""
_RENEWS_ID = "azsdk-python-storage-"
"""Part of the user agents of SDKs that give each attempt an id of its own: queues and blobs."""


class Observer:
    """Counts the requests of an application in `Books`: the `Meter` of a gateway.

    At most ``budget`` requests may reach the endpoint. ``marks`` are what several processes know
    together; None for a process alone.
    """

    def __init__(
        self,
        source: str,
        budget: int | None = None,
        marks: Marks | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.books = Books(source, recorder)
        self._budget = budget
        self._marks = marks
        self._handed: list[tuple[Identity, Course]] = []
        self._taken = 0
        self._spelled: dict[str, str] = {}
        self._added: list[tuple[Received, Disposition, Count, GatewayAnswer | None, float]] = []

    def take(self) -> str:
        """Take a request from the budget; return why it is refused, or an empty text."""
        if self._budget is not None and self._taken >= self._budget:
            return (
                "harness watch: the budget of billable transactions is used up. The request was "
                "not passed on."
            )
        self._taken += 1
        return ""

    def take_again(self) -> bool:
        """Take a second request for the same one of the client; False without budget for it."""
        taken = not self.take()
        self.books.tally.passed += taken
        return taken

    def refused(self, *, unreadable: bool) -> None:
        """Count a request that cannot be executed, such as one that is too large."""
        tally = self.books.tally
        tally.requests += 1
        tally.others += 1
        tally.unreadable += unreadable

    def ended(
        self,
        received: Received,
        disposition: Disposition,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        """Keep a request that ended at ``now_s``, UTC, to be counted.

        Requests are counted in batches, at the latest before the counts are read: counting each at
        once costs more, because of cache misses.
        """
        if self._budget is not None and not disposition.upstream and disposition.rule != "budget":
            # It did not reach the endpoint, so it is not billed.
            self._taken -= 1
        request = received.request
        if request.client.ended_input and _identity(received)[0]:
            # SDKs close their connection if they give up waiting, and only then.
            disposition = disposition._replace(sent=GONE)
        added = self._added
        added.append((received, disposition, count, answer, now_s))
        moved = len(request.body) + (0 if answer is None else len(answer.body))
        if (
            len(added) >= _TOGETHER
            or moved > _LARGE_BYTES
            # The client may send the request again as soon as it has the answer.
            or (self._marks is not None and not _succeeded(disposition.sent))
        ):
            self._count_added()

    def _count_added(self) -> None:
        added, self._added = self._added, []
        for ended in added:
            self._count(*ended)

    def _count(
        self,
        received: Received,
        disposition: Disposition,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        request, asked = received.request, received.asked
        books = self.books
        books.latest_s = max(books.latest_s, received.arrived_s)
        tally = books.tally
        tally.requests += 1
        if disposition.upstream:
            tally.passed += 1
        if disposition.rule == "budget":
            tally.over_budget += 1
            return
        headers = request.headers
        client = headers.get("User-Agent", "")[:_CLIENT_LENGTH]
        tally.count_client(client)
        kind = asked.kind
        if kind is None:
            tally.others += 1
            return
        if self._marks is not None:
            # Other processes may have seen another spelling first.
            asked = asked._replace(spelled=asked.table)
        elif len(self._spelled) < MOST_TABLES:
            spelled = self._spelled.setdefault(asked.table, asked.spelled)
            if spelled != asked.spelled:
                # Names of tables are case-insensitive.
                asked = asked._replace(spelled=spelled)
        sent, received_bytes = request.body_bytes, 0
        if answer is not None:
            received_bytes = len(answer.body) if answer.length is None else answer.length
        if succeeded := _succeeded(disposition.sent):
            attempt = new_attempt(
                status=int(disposition.sent),
                sent_s=received.arrived_s,
                latency_s=now_s - received.arrived_s,
                request_charge=_charge_of(answer),
            )
        else:
            attempt = _failed(received, disposition, answer, now_s)
        written: tuple[dict[str, str], ...] = ()
        recorder = books.recorder if kind.on_rows else None
        if recorder is not None and (names := recorder.properties):
            written = properties_in(asked, request.body, names)
        operation = operation_of(asked, headers.get("If-Match"), written)
        detail = None
        if recorder is not None:
            at = continuation_of(asked)
            detail = detail_of(operation, sent, sizes=asked.sizes, continued_at=at)
        got = answer if kind is _GET_MESSAGES else None
        result = new_result(
            operation=operation,
            outcome=outcome_after(operation, (attempt,)),
            sent_s=received.arrived_s,
            done_s=now_s,
            attempts=(attempt,),
            entities=count.entities,
            entities_returned=count.returned,
            estimated=count.estimated > 0,
            bytes_sent=sent,
            bytes_received=received_bytes,
            oldest_s=0.0 if got is None else oldest_age_s(got),
        )
        course = Course(result, client, detail)
        identity = None
        if self._marks is not None:
            identity = _identity(received)
            if self._concerns_others(identity, attempt):
                self._handed.append((identity, course))
                return
        elif books.pending or not succeeded:
            identity = _identity(received)
        books.add(course, identity)

    def _concerns_others(self, identity: Identity, attempt: Attempt) -> bool:
        """Whether an attempt of the same operation may reach, or have reached, another process."""
        assert self._marks is not None
        if not identity[0] or len(self._handed) >= MOST_HANDED:
            return False
        if is_repeated(attempt):
            self._marks.add(identity)
            return True
        return identity in self._marks

    def hand_over(self) -> list[tuple[Identity, Course]]:
        """The attempts since the last call that may have others in other processes."""
        self._count_added()
        handed, self._handed = self._handed, []
        return handed

    def expire(self, now_s: float) -> None:
        """End the operations that were not sent again in time; ``now_s`` is UTC."""
        self._count_added()
        self.books.expire(now_s)

    def finish(self) -> None:
        """End the operations; see `Books.finish`."""
        self._count_added()
        self.books.finish()

    def drain(self, *, ended: bool = False) -> Drained:
        """What was counted since the last drain; ``ended`` in the last one."""
        self._count_added()
        return self.books.drain(ended=ended)


def _succeeded(sent: str) -> bool:
    """Whether ``sent`` of a disposition is a status below 400."""
    return sent.isdigit() and int(sent) < 400


def _identity(received: Received) -> Identity:
    """What the attempts of an operation have in common; its id is empty if they have no such id."""
    request, asked = received.request, received.asked
    headers, target = request.headers, request.target
    if asked.kind in _UNNAMED:
        target = f"{target}\n{asked.rows}"
    renews = _RENEWS_ID in headers.get("User-Agent", "")
    name = "" if renews else headers.get("x-ms-client-request-id", "")
    return name, request.method, target


def _failed(
    received: Received, disposition: Disposition, answer: GatewayAnswer | None, now_s: float
) -> Attempt:
    """The attempt of a request that did not succeed."""
    latency_s = now_s - received.arrived_s
    client_request_id = received.request.headers.get("x-ms-client-request-id", "")
    if answer is None or not disposition.sent.isdigit():
        # A client that is gone has given up waiting, or has ended.
        fault = Fault.READ_TIMEOUT if disposition.sent == GONE else Fault.RESET
        if disposition.sent == HALF:
            fault = Fault.BAD_ANSWER
        return new_attempt(
            status=0,
            sent_s=received.arrived_s,
            latency_s=latency_s,
            error_code=fault.value,
            fault=fault,
            client_request_id=client_request_id,
            request_charge=_charge_of(answer),
        )
    status = int(disposition.sent)
    body = answer.body
    if body.startswith(b"--") and b"{" in body:
        # The part of a transaction that failed.
        body = body[body.index(b"{") : body.rindex(b"}") + 1]
    code, message = read_error(answer.headers, body)
    scope = disposition.scope
    if scope is _NO_SCOPE:
        scope = throttling_scope(status, code, message)
    return new_attempt(
        status=status,
        sent_s=received.arrived_s,
        latency_s=latency_s,
        error_code=code,
        scope=scope,
        message=message,
        request_id=answer.headers.get("x-ms-request-id", ""),
        client_request_id=client_request_id,
        retry_after_s=retry_after_s(answer.headers),
        request_charge=_charge_of(answer),
    )


def _charge_of(answer: GatewayAnswer | None) -> int:
    """What the endpoint charged for its answer, in hundredths of a request unit."""
    if answer is None:
        return 0
    return charge_of(answer.status, answer.headers.get, answer.body)
