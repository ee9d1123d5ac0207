"""Messages of HTTP on a plain socket."""

from __future__ import annotations

import re
import socket

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


def read_message(connection: socket.socket) -> bytes | None:
    """One whole message, request or answer; None where the other side is gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (block := connection.recv(65536)):
            return None
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    if _CHUNKED.search(head):
        while not body.endswith(b"0\r\n\r\n"):
            if not (block := connection.recv(65536)):
                return None
            body += block
        return head + b"\r\n\r\n" + body
    match = _LENGTH.search(head)
    length = int(match[1]) if match is not None else 0
    while len(body) < length:
        if not (block := connection.recv(65536)):
            return None
        body += block
    return head + b"\r\n\r\n" + body
