"""Joins the attempts of operations that several metering processes saw.

A process hands over each attempt that may be followed by another one elsewhere, and each that may
follow one. They are counted here, in the order in which they ended. All processes know which
requests failed: a process marks a failed request before the client has the answer, so that the
process with the retry, over a new connection, finds the mark.
"""

from __future__ import annotations

import mmap
from hashlib import blake2b
from pathlib import Path

from harness.trace.recorder import Recorder
from harness.watch.books import Books, Course, Identity

_MOST_WAITING = 200_000
"""Above it the order is given up, to bound the memory."""


class Joining:
    """Attempts that metering processes handed over, and the books that count them."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.books = Books("joined", recorder)
        self._waiting: list[tuple[Identity, Course]] = []
        self._until_s: dict[str, float] = {}

    def take(self, process: str, handed: list[tuple[Identity, Course]], until_s: float) -> None:
        """Take what ``process`` handed over; it will hand over nothing that ended earlier."""
        self._waiting += handed
        self._until_s[process] = until_s

    def join(self, processes: int) -> None:
        """Count the attempts before which no other one is still to come.

        Args:
            processes: How many hand over.
        """
        if len(self._until_s) < processes:
            return
        until_s = min(self._until_s.values())
        if len(self._waiting) > _MOST_WAITING:
            until_s = float("inf")
        self._count(until_s)
        self.books.expire(until_s)

    def finish(self) -> None:
        """Count the rest; nothing is sent again."""
        self._count(float("inf"))
        self.books.finish()

    def _count(self, until_s: float) -> None:
        waiting = sorted(self._waiting, key=_ended_s)
        self._waiting = [handed for handed in waiting if _ended_s(handed) >= until_s]
        for handed in waiting[: len(waiting) - len(self._waiting)]:
            identity, course = handed
            self.books.add(course, identity, _ended_s(handed))


def _ended_s(handed: tuple[Identity, Course]) -> float:
    (attempt,) = handed[1].attempts
    return attempt.ended_s


_SLOTS = 1 << 16
_BYTES = 8
_EMPTY = bytes(_BYTES)


class Marks:
    """A file in memory, made by `create_marks`, with a slot for each of 65,536 identities.

    A mark is never removed: a request that has it needlessly is only joined elsewhere. A mark that
    another one replaced is lost; the attempts after it count as an operation of their own.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = mmap.mmap(file.fileno(), _BYTES * (_SLOTS + 1))

    def add(self, identity: Identity) -> None:
        at, mark = _place(identity)
        self._slots[at : at + _BYTES] = mark
        self._slots[:_BYTES] = mark

    def __contains__(self, identity: Identity) -> bool:
        # The first slot is empty as long as nothing failed, which is quicker to see.
        if self._slots[:_BYTES] == _EMPTY:
            return False
        at, mark = _place(identity)
        return self._slots[at : at + _BYTES] == mark


def create_marks(path: Path) -> None:
    path.write_bytes(bytes(_BYTES * (_SLOTS + 1)))


def _place(identity: Identity) -> tuple[int, bytes]:
    """Where the mark of ``identity`` is in the file, and the mark."""
    text = "\n".join(identity).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=_BYTES).digest()
    return _BYTES * (1 + int.from_bytes(digest[:2]) % _SLOTS), digest
