"""The text in written entities: how much of it repeats, and its compression by the client.

Compression saves bandwidth, and costs CPU for each write and each read (performance checklist,
"Capacity and transaction targets").
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import random
import string
import zlib
from collections.abc import Mapping

from harness.model.entity import EdmValue

TEXT_PROPERTY = "Text"
"""Begin of the names of the properties that hold the text."""
_VARIANTS = 16
"""Different texts of a length: no two writes in a row have the same."""
_BLOCK = 100
_PHRASE = "the same words come again and again in the text of such an entity; "
_RANDOM = string.ascii_letters + string.digits + "-_"
_LEVEL = 6
"""The level of the gzip program, and of most libraries."""


@dataclasses.dataclass(frozen=True, slots=True)
class Payload:
    """Makes the text of entities.

    Attributes:
        compressible: Share of the text that repeats. The rest is random letters and digits, which
            gzip shortens by a quarter.
        compress: Whether the client compresses each text with gzip, and stores it as binary.
    """

    compressible: float = 1.0
    compress: bool = False
    _texts: dict[int, tuple[str, ...]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def fixed(self) -> bool:
        """Whether all texts of a length are the same."""
        return self.compressible >= 1 and not self.compress

    def value(self, length: int, version: int) -> EdmValue:
        """The value of a property with a text of ``length``; it differs from version to version."""
        texts = self._texts.get(length)
        if texts is None:
            texts = self._texts[length] = tuple(
                self._text(length, variant) for variant in range(_VARIANTS)
            )
        text = texts[version % _VARIANTS]
        return gzip.compress(text.encode(), _LEVEL, mtime=0) if self.compress else text

    def _text(self, length: int, variant: int) -> str:
        rng = random.Random(f"{length} {variant}")
        repeated = round(_BLOCK * self.compressible)
        phrase = "".join(itertools.islice(itertools.cycle(_PHRASE), repeated))
        blocks = -(-length // _BLOCK)
        made = (phrase + "".join(rng.choices(_RANDOM, k=_BLOCK - repeated)) for _ in range(blocks))
        return "".join(made)[:length]


def unpacked(entity: Mapping[str, EdmValue]) -> dict[str, EdmValue]:
    """An entity that was read, with its compressed texts as text again.

    What is not gzip, as in a damaged answer, stays as it is.
    """
    return {
        name: _text_of(value)
        if name.startswith(TEXT_PROPERTY) and isinstance(value, bytes)
        else value
        for name, value in entity.items()
    }


def _text_of(packed: bytes) -> EdmValue:
    try:
        return gzip.decompress(packed).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return packed
