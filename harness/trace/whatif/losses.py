"""The entities that a key scheme loses, because they share new keys."""

from __future__ import annotations

import zlib

_MOST_TRACKED = 50_000


class Collisions:
    """Entities that would share both keys with another one.

    Exact for up to 50,000 entities. Of more, a part chosen by hash is tracked, and its number is
    scaled up.

    Attributes:
        mask: Entities whose digest has one of these bits are not tracked.
    """

    def __init__(self) -> None:
        self._bits = 0
        self.mask = 0
        self._tracked: dict[tuple[str, str], set[tuple[str, str]]] = {}

    @property
    def estimated(self) -> bool:
        return self._bits > 0

    @property
    def count(self) -> int:
        found = sum(len(recorded) - 1 for recorded in self._tracked.values())
        return found << self._bits

    def add(self, digest: int, new: tuple[str, str], recorded: tuple[str, str]) -> None:
        """Note an entity; ``digest`` is that of its new keys."""
        if digest & self.mask:
            return
        self._tracked.setdefault(new, set()).add(recorded)
        while len(self._tracked) > _MOST_TRACKED:
            self._bits += 1
            self.mask = mask = (1 << self._bits) - 1
            self._tracked = {
                new: found
                for new, found in self._tracked.items()
                if not digest_of(new[1], digest_of(new[0])) & mask
            }


def digest_of(text: str, start: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), start)
