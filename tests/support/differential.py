"""Answers of two endpoints to the same requests, and the counts of a client for itself.

An answer is compared after its times, ids and the address of the endpoint are replaced by names.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import dataclasses
import json
import re
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport

from harness.endpoint.azurite.process import node, start_azurite
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.gateway.limits import limits_path
from harness.gateway.process import GatewayProcess, start_gateway
from harness.model.services.service import Server
from tests.support.npm_packages import NpmPackages
from tests.support.python_script import Step
from tests.support.sdk import account_key

_CHANGES = frozenset(("date", "x-ms-request-id", "x-ms-client-request-id", "x-ms-popreceipt"))
"""Header fields that differ between any two answers."""
_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "via"))
"""Header fields that are of one connection, say how a body is framed, or name the gateway."""

_TIME = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d+)?Z", re.IGNORECASE)
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(r"\w{3}, \d\d \w{3} 20[2-9]\d \d\d:\d\d:\d\d GMT")
_RECEIPT = re.compile(r"(<PopReceipt>|pop_receipt': '|popReceipt\":\")[\w+/=]+")
_DATETIME = re.compile(r"datetime\.datetime\(20[2-9]\d,(?: \d+,)+ tzinfo=[\w.]+\)")
_ETAG = re.compile(r"0x[0-9A-F]{13,16}\b")
_OBJECT = re.compile(r"<\S+ object at 0x[0-9a-f]+>")
_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, as a client received it.

    Attributes:
        label: Which request it answers.
        table: Table that the request is about; empty without one.
        partition: Its partition; None for several partitions, or none.
        status: HTTP status.
        headers: Names and values in their order.
        body: The complete body.
        same_id: Whether ``x-ms-client-request-id`` is that of the request; None without one.
    """

    label: str
    table: str
    partition: str | None
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    same_id: bool | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Answer:
        """Read an answer from what the script in JavaScript prints."""
        body = base64.b64decode(content["body"])
        headers = tuple((name, value) for name, value in content["headers"])
        return cls(**{**content, "headers": headers, "body": body})

    def counted_as(self) -> str:
        """The status that the gateway counts: in a batch of the part that failed, or the query."""
        if self.status == 202:
            statuses = [found.decode() for found in _PART_STATUS.findall(self.body)]
            decisive = [status for status in statuses if int(status) >= 300 or status == "200"]
            return decisive[0] if decisive else "202"
        return str(self.status)

    def comparable(self, authority: str) -> dict[str, Any]:
        """Everything that has to be equal, of the endpoint at ``authority``."""
        headers = [
            (name, _plain(value, authority))
            for name, value in self.headers
            if name.lower() not in _CHANGES | _HOP
        ]
        declared = [int(value) for name, value in self.headers if name.lower() == "content-length"]
        return {
            "label": self.label,
            "status": self.status,
            "headers": headers,
            "changing": sorted(
                name.lower() for name, _ in self.headers if name.lower() in _CHANGES
            ),
            "length is right": not declared or declared == [len(self.body)] or not self.body,
            "body": _plain(self.body.decode("utf-8", "surrogateescape"), authority),
            "same id": self.same_id,
        }


def _plain(text: str, authority: str) -> str:
    text = _TIME.sub("<time>", _DATE.sub("<date>", text.replace(authority, "<host>")))
    text = _ETAG.sub("<etag>", text)
    return _ID.sub("<id>", _RECEIPT.sub(r"\1<receipt>", text))


def plain(value: object, authority: str) -> str:
    """What a call of a client returned or raised, as comparable text."""
    return _plain(_OBJECT.sub("<object>", _DATETIME.sub("<time>", repr(value))), authority)


def differences(
    direct: Iterable[Answer], at: str, through: Iterable[Answer], gateway: str
) -> list[str]:
    """Every difference between two lists of answers, in a line each."""
    found = []
    for one, other in zip(direct, through, strict=True):
        first, second = one.comparable(at), other.comparable(gateway)
        found += [
            f"{one.label}: {name}\n  direct:  {value!r}\n  through: {second[name]!r}"
            for name, value in first.items()
            if value != second[name]
        ]
    return found


Counts = collections.Counter[tuple[str, str | None, str]]


def own_counts(answers: Iterable[Answer]) -> Counts:
    """A client's counts of its answers by table, partition and status."""
    return collections.Counter(
        (answer.table.lower(), answer.partition, answer.counted_as()) for answer in answers
    )


def gateway_counts(counters: bytes) -> Counts:
    """The counts on a truth page, by table, partition and status."""
    found: Counts = collections.Counter()
    for row in json.loads(counters)["counts"]:
        found[row["table"].lower(), row["partition"], row["sent"]] += row["requests"]
    return found


def _content_of(response: Any) -> bytes:
    """The body of a response, of which SDKs have two forms."""
    content: bytes = response.content if hasattr(response, "content") else response.body()
    return content


class Recorder:
    """Keeps the answers to the step in hand, and what each step returned or raised."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.answers: list[Answer] = []
        self.results: list[str] = []
        self.step: Step | None = None

    def note(self, request: Any, response: Any, *, streamed: bool = False) -> None:
        """Keep an answer; one that is ``streamed`` has no body here, which its result tells."""
        assert self.step is not None
        step, name = self.step, "x-ms-client-request-id"
        echoed = response.headers.get(name)
        self.answers.append(
            Answer(
                label=step.label,
                table=step.table,
                partition=step.partition,
                status=response.status_code,
                headers=tuple(response.headers.items()),
                body=b"" if streamed else _content_of(response),
                same_id=None if echoed is None else echoed == request.headers.get(name),
            )
        )

    def result(self, value: object) -> None:
        """Keep the result of the step."""
        assert self.step is not None
        if isinstance(value, AzureError):
            value = type(value).__name__, getattr(value, "error_code", ""), value.message
        self.results.append(f"{self.step.label}: {plain(value, self.endpoint.host)}")

    def play(
        self,
        todo: Generator[Step, Any, None],
        raised: tuple[type[Exception], ...],
        read: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        """Call each step, and send it what its call returned, as ``read``, or raised."""
        result = None
        with contextlib.suppress(StopIteration):
            while True:
                self.step = todo.send(result)
                try:
                    result = read(self.step.call())
                except raised as error:
                    result = error
                self.result(result)

    def play_in_javascript(self, packages: NpmPackages) -> None:
        """Run ``script.cjs`` of some packages, which prints answers and results."""
        endpoint = self.endpoint
        told = {"url": endpoint.url, "account": endpoint.account, "key": account_key(endpoint)}
        ran = subprocess.run(
            [str(node()), str(packages.folder / "script.cjs"), json.dumps(told)],
            env={"NODE_PATH": str(packages.modules)},
            capture_output=True,
            timeout=120.0,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr.decode()
        for line in ran.stdout.splitlines():
            content = json.loads(line)
            if "result" in content:
                self.results.append(
                    f"{content['label']}: {plain(content['result'], endpoint.host)}"
                )
            else:
                self.answers.append(Answer.from_json(content))


@contextlib.contextmanager
def azurite_and_gateway(service: Server = "table") -> Iterator[tuple[Endpoint, GatewayProcess]]:
    """A fresh Azurite, and before another one a gateway that refuses nothing and cuts no page."""
    with start_azurite(service=service) as direct, start_azurite(service=service) as behind:
        upstream = f"http://{behind.endpoint.host}"
        with start_gateway(upstream=upstream, limits=limits_path("none")) as gateway:
            yield direct.endpoint, gateway


def played_through(
    endpoint: Endpoint, gateway: GatewayProcess, play: Callable[[Recorder], None]
) -> list[Answer]:
    """Play directly and through a gateway; the answers through it, which are the same."""
    direct, through = Recorder(endpoint), Recorder(emulator_endpoint(gateway.url))
    for script in (direct, through):
        play(script)
    assert [answer.label for answer in through.answers] == [
        answer.label for answer in direct.answers
    ]
    found = differences(direct.answers, endpoint.host, through.answers, through.endpoint.host)
    assert not found, "\n".join(found[:20])
    assert through.results == direct.results
    return through.answers


class SyncTransport(RequestsTransport):  # type: ignore[misc]
    """The transport of the SDK; the recorder sees each answer."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def send(self, request: Any, **said: Any) -> Any:
        response = super().send(request, **said)
        streamed = bool(said.get("stream"))
        if streamed and hasattr(response, "read"):
            # The answer to a transaction.
            response.read()
            streamed = False
        self._recorder.note(request, response, streamed=streamed)
        return response
