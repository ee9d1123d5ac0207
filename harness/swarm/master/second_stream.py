"""The seconds of a run, written as JSON lines while it goes on."""

from __future__ import annotations

import contextlib
from pathlib import Path

from harness.measure.counts.generator import GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.record.record_builder import second_part
from harness.model.errors import SetupError, cut


class SecondStream:
    """Writes a line for each second: a point of the record's series, of one second.

    Seconds are written in order, each once, when the reports about it have come. What comes later
    is in the record alone.

    Attributes:
        problem: Why nothing is written any more; empty while lines are written.

    Raises:
        SetupError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problem = path, ""
        self._next: int | None = None
        try:
            self._file = path.open("w", encoding="ascii")
        except OSError as error:
            raise SetupError(
                f"--stream: {cut(str(path))} cannot be written: {error.strerror or error}"
            ) from error

    def write(self, ledger: Ledger, generator: GeneratorLog, first: int, until: int) -> None:
        """Write the seconds before ``until`` that were not written; the first is ``first``."""
        start = first if self._next is None else self._next
        if self.problem or until <= start:
            return
        self._next = until
        sampled = generator.view(start, until)
        points = map(ledger.point, range(start, until))
        parts = (second_part(point, sampled, charged=ledger.tally.charged) for point in points)
        try:
            self._file.writelines(f"{part.model_dump_json()}\n" for part in parts)
            self._file.flush()
        except OSError as error:
            self.problem = str(error.strerror or error)

    def close(self) -> str:
        """End the file; return why it is incomplete, or an empty text."""
        with contextlib.suppress(OSError):
            self._file.close()
        return self.problem and f"{cut(str(self.path))} is incomplete: {self.problem}"
