"""The name of a swarm, which keeps the workers of other masters out.

Any process that reaches the port of a master could join it: a forgotten worker, or a worker of a
second run on the same machine with another endpoint. So master and workers put the name of their
swarm into the address by which ZeroMQ routes their messages. The master drops messages of other
swarms before Locust sees them, and answers with a message that ends the foreign worker.

What is no message, or has a content that its type does not have, is refused: it would end Locust's
listener, and with it the run.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable, ValuesView
from functools import partial

import gevent
import zmq
from locust import runners
from locust.exception import RPCError, RPCSendError
from locust.rpc import Message, rpc

from harness.model.errors import cut
from harness.startup import BAD_SETUP, complain, tell
from harness.swarm.messages import SwarmMessage
from harness.swarm.ports import MASTER, HeldPorts

_OTHER_SWARM = "aztables-other-swarm"
_BEFORE_ID = "/"
"""Separates the name of a swarm from the id of a worker; part of neither."""
_TELL_AFTER_S = 3.0
_TELL_EVERY_S = 30.0
_MOST_LOGGED = 10
_handle_message = runners.MasterRunner.handle_message
_logger = logging.getLogger(__name__)


def join_swarm(options: argparse.Namespace, ports: HeldPorts) -> None:
    """Restrict this process, and all processes that it forks, to one swarm.

    A master listens at the port that ``ports`` holds for it. If workers are forked and no swarm is
    named, the swarm gets a random name.
    """
    if options.swarm is None and options.processes and not options.worker:
        options.swarm = secrets.token_hex(8)
    # Locust has no setting for this.
    rpc.Server = partial(_Server, options.swarm or "", ports, Refusals())
    runners.WorkerNodes = KnownWorkers
    runners.MasterRunner.handle_message = _handle_valid
    rpc.Client = partial(_Client, options.swarm or "", verbose=options.worker)


class KnownWorkers(runners.WorkerNodes):
    """The workers of a master; they may leave while a greenlet iterates over them.

    With Locust's own class the master's heartbeat ends then, and lost workers are not noticed.
    """

    @property
    def all(self) -> ValuesView[runners.WorkerNode]:
        return dict(self).values()


class Refusals:
    """The messages that a master refused: their ``count``; the first ones are logged."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, sender: str, why: str) -> None:
        self.count += 1
        if self.count <= _MOST_LOGGED:
            last = "; further ones are only counted" if self.count == _MOST_LOGGED else ""
            _logger.warning("refused a message of %s: %s%s", cut(sender), cut(why), last)

    def since(self) -> Callable[[], int]:
        """Gives how many were refused since now."""
        before = self.count
        return lambda: self.count - before


def refusals_of(runner: runners.Runner) -> Refusals:
    """Those of a master; of a local run none."""
    found: Refusals = getattr(getattr(runner, "server", None), "refusals", None) or Refusals()
    return found


def _handle_valid(runner: runners.MasterRunner, sender: str, message: Message) -> None:
    """Handle a message, or refuse it if its content is not that of its type."""
    try:
        kind = message.type
        # Locust logs the names of senders and of unknown types as they are.
        if message.node_id != sender or not f"{kind}{sender}".isprintable():
            raise ValueError(f"it names another sender or no type, {message.node_id!r}")
        own = SwarmMessage.KINDS.get(kind)
        if own is not None:
            message.data = own.model_validate(message.data)
        elif kind == "stats" and sender not in runner.clients:
            raise ValueError("statistics of an unknown worker")
        elif kind == "client_ready" and not isinstance(message.data, str | int):
            raise TypeError("a worker without a version")
        _handle_message(runner, sender, message)
    except Exception as error:
        # The content of a message can be anything, and Locust checks none of it.
        why = str(error).partition("\n")[0]
        runner.server.refusals.add(sender, f"{message.type!r} ({type(error).__name__}: {why})")


class _Server(rpc.Server):
    """The master's side: exchanges messages with its swarm only."""

    def __init__(
        self, swarm: str, ports: HeldPorts, refusals: Refusals, host: str, port: int
    ) -> None:
        self.refusals = refusals
        held = ports.hand_over(MASTER)
        if held is None:
            # Locust makes another one if it lost all workers, and tries again where that fails.
            super().__init__(host, port)
        elif _can_take(held, host):
            rpc.BaseSocket.__init__(self, zmq.ROUTER, ipv4_only=True)
            held.setblocking(False)
            self.socket.setsockopt(zmq.USE_FD, held.detach())
            self.socket.bind(f"tcp://{host}:{port}")
            self.port = port
        else:
            held.close()
            try:
                super().__init__(host, port)
            except RPCError as error:
                complain(f"the master cannot listen on {host}:{port} ({error})")
                sys.exit(BAD_SETUP)
        # A worker whose connection broke comes back under its name. ZeroMQ would not listen to it
        # while the old connection looks open, which can be longer than the worker waits.
        self.socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._swarm = swarm

    def recv_from_client(self) -> tuple[str, Message]:
        while True:
            try:
                address, message = super().recv_from_client()
            except (RPCError, RPCSendError):
                raise
            except Exception as error:
                # The bytes can be anything, and decoding them can raise as much.
                self.refusals.add("an unknown sender", f"it is unreadable ({error!r})")
                continue
            swarm, _, worker = address.rpartition(_BEFORE_ID)
            if swarm == self._swarm:
                return worker, message
            super().send_to_client(Message(_OTHER_SWARM, None, address))

    def send_to_client(self, msg: Message) -> None:
        address = _address(self._swarm, msg.node_id)
        super().send_to_client(Message(msg.type, msg.data, address))


def _can_take(held: socket.socket, host: str) -> bool:
    """Whether ZeroMQ can take over ``held``: not on Windows, and only for a single address."""
    return os.name != "nt" and held.family == socket.AF_INET and host not in ("", "*")


class _Client(rpc.Client):
    """The worker's side, with the name of its swarm; ``verbose`` shows the wait for the master."""

    def __init__(self, swarm: str, host: str, port: int, identity: str, *, verbose: bool) -> None:
        super().__init__(host, port, _address(swarm, identity))
        self._master = f"{host}:{port}"
        self._waiting = gevent.spawn(self._tell_waiting) if verbose else None

    def _tell_waiting(self) -> None:
        gevent.sleep(_TELL_AFTER_S)
        while True:
            tell(f"Waiting for the master at {self._master} (Ctrl-C ends the wait)")
            gevent.sleep(_TELL_EVERY_S)

    def close(self, linger: int | None = None) -> None:
        if self._waiting is not None:
            self._waiting.kill()
        super().close(linger)

    def recv(self) -> Message:
        message = super().recv()
        if message.type == _OTHER_SWARM:
            complain(
                f"the master at {self._master} leads another swarm, so this worker exits; give "
                "both the same --swarm, or choose another port with --master-port"
            )
            sys.exit(BAD_SETUP)
        if self._waiting is not None:
            self._waiting.kill()
            self._waiting = None
            tell(f"Connected to the master at {self._master}")
        return message


def _address(swarm: str, worker: str) -> str:
    return f"{swarm}{_BEFORE_ID}{worker}" if swarm else worker
