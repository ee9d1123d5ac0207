"""Hosts of a test: network namespaces with addresses of their own, on one bridge.

The link of each host delays and loses what the host sends. The kernel's netem does that where it
is there; else `tests.support.network.link` takes the place of the cable. The bridge has a namespace
of its own, so nothing of the machine's network changes, and hosts reach each other only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

_ROOT = Path(__file__).parents[3]
_NAME = "table-stress-{pid}-{host}"
_LEFTOVER = re.compile(r"table-stress-(\d+)-\S+")
_SUBNET = "10.16.0"
_BRIDGE = "bridge"
_WITHIN_S = 10.0
_CLONE_NEWNET, _CLONE_NEWUTS = 0x4000_0000, 0x0400_0000


class NoNamespaces(Exception):
    """This machine or user cannot make network namespaces; the text says why."""


class Host:
    """One host. Processes in it see its network and its name."""

    def __init__(self, name: str, namespace: str, address: str) -> None:
        self.name = name
        self.namespace = namespace
        self.address = address

    def command(self, *command: str, ahead_s: float = 0.0) -> list[str]:
        """The command line that runs ``command`` here, with a clock that is ``ahead_s`` ahead."""
        named = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name)
        # Only the time of day: a wrong clock has right intervals.
        ahead = ("faketime", "--exclude-monotonic", "-f", f"{ahead_s:+g}s") if ahead_s else ()
        return ["ip", "netns", "exec", self.namespace, *named, *ahead, *command]

    def unplug(self) -> None:
        """Cut the link."""
        _ip("-n", self.namespace, "link", "set", "eth0", "down")

    def plug_in(self) -> None:
        """Restore the link."""
        _ip("-n", self.namespace, "link", "set", "eth0", "up")

    def refuse(self, host: Host) -> None:
        """Let nothing from here reach ``host`` any more."""
        _ip("-n", self.namespace, "route", "add", "blackhole", f"{host.address}/32")

    def accept(self, host: Host) -> None:
        """Let ``host`` be reached again."""
        _ip("-n", self.namespace, "route", "del", "blackhole", f"{host.address}/32")

    def break_connections(self, port: int) -> None:
        """Reset the connections from here to ``port``, as a firewall or a restarted router does."""
        _run("ip", "netns", "exec", self.namespace, "ss", "-K", "dport", "=", f":{port}")


@contextlib.contextmanager
def hosts(*names: str, delay_ms: float = 20.0, loss_percent: float = 1.0) -> Iterator[list[Host]]:
    """Hosts with these names, until the context is left.

    Args:
        names: One host each.
        delay_ms: How long what a host sends is underway.
        loss_percent: How much of it is lost.

    Raises:
        NoNamespaces: they cannot be made here.
    """
    remove_leftovers()
    bridge = _NAME.format(pid=os.getpid(), host=_BRIDGE)
    made = [
        Host(name, _NAME.format(pid=os.getpid(), host=name), f"{_SUBNET}.{number}")
        for number, name in enumerate(names, start=1)
    ]
    namespaces = [bridge, *(host.namespace for host in made)]
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, namespaces)
        try:
            for namespace in namespaces:
                _ip("netns", "add", namespace)
                _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", bridge, "link", "add", "bridge0", "type", "bridge")
            _ip("-n", bridge, "link", "set", "bridge0", "up")
            if not _has_netem(bridge):
                stack.enter_context(_links(bridge, len(made), delay_ms, loss_percent))
        except (OSError, subprocess.CalledProcessError) as error:
            told = getattr(error, "stderr", None) or error
            raise NoNamespaces(f"network namespaces cannot be made: {str(told).strip()}") from error
        for number, host in enumerate(made):
            _connect(host, bridge, number)
            if _has_netem(bridge):
                tc = ("tc", "-n", host.namespace, "qdisc", "add", "dev", "eth0", "root", "netem")
                _run(*tc, "delay", f"{delay_ms:g}ms", "loss", f"{loss_percent:g}%")
        yield made


def enter(name: str, namespace: str) -> None:
    """Move this process, which has one thread, to the host of that name and namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if libc.setns(opened, _CLONE_NEWNET) or libc.unshare(_CLONE_NEWUTS):
        raise OSError(ctypes.get_errno(), f"no way to {namespace}")
    os.close(opened)
    socket.sethostname(name)


def remove_leftovers() -> None:
    """Remove the namespaces of test processes that are gone, and what still runs in them."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        listed = _LEFTOVER.finditer(_ip("netns", "list"))
        _remove([name[0] for name in listed if not psutil.pid_exists(int(name[1]))])


def _connect(host: Host, bridge: str, number: int) -> None:
    """Plug a host into the bridge."""
    port, end = f"port{number}", f"end{number}"
    if _has_netem(bridge):
        _ip("-n", bridge, "link", "add", port, "type", "veth", "peer", "name", end)
    _ip("-n", bridge, "link", "set", port, "master", "bridge0", "up")
    _ip("-n", bridge, "link", "set", end, "netns", host.namespace)
    _ip("-n", host.namespace, "link", "set", end, "name", "eth0")
    _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
    host.plug_in()


def _has_netem(bridge: str) -> bool:
    """Whether the kernel can delay and lose packets."""
    device = ("dev", "lo", "root", "netem", "delay", "1ms")
    try:
        _run("tc", "-n", bridge, "qdisc", "replace", *device)
    except subprocess.CalledProcessError:
        return False
    return True


@contextlib.contextmanager
def _links(bridge: str, count: int, delay_ms: float, loss_percent: float) -> Iterator[None]:
    """The process that stands for the links where the kernel has no netem."""
    module = "tests.support.network.link"
    figures = str(count), f"{delay_ms:g}", f"{loss_percent:g}"
    with subprocess.Popen(
        ["ip", "netns", "exec", bridge, sys.executable, "-m", module, *figures],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if not process.stdout.readline():
            raise OSError(process.stderr.read().decode())
        yield
        process.stdin.close()
        process.wait(_WITHIN_S)


def _remove(namespaces: Sequence[str]) -> None:
    """Remove namespaces that are there, and end what runs in them."""
    there = set(_ip("netns", "list").split())
    for name in there.intersection(namespaces):
        for pid in _ip("netns", "pids", name).split():
            with contextlib.suppress(psutil.Error):
                psutil.Process(int(pid)).kill()
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("netns", "del", name)


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_WITHIN_S)
    return done.stdout
