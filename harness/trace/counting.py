"""The operations of a trace, counted by the ledger that counts runs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.model.errors import SetupError, cut
from harness.trace.operations import Batch, TracedOperation
from harness.trace.reader import Trace
from harness.trace.sources import Tell

_MERGED_AFTER = 10_000


class TraceCounts:
    """The counts of a trace; memory grows with its seconds, not with its operations."""

    def __init__(self, trace: Trace, name: str, tell: Tell = lambda done, total: None) -> None:
        self._trace, self._name, self._tell = trace, name, tell
        self._start_s = trace.head.started_ms / 1000
        # As in a run: a ledger that counts, and one that merges and gives rows to heavy partitions.
        self.ledger, self._source = Ledger(), Ledger("trace")
        self._source.open_window(0.0, float("inf"))
        self._first_ms: int | None = None
        self._last_ms = self._done_ms = 0

    def rows(self) -> Iterator[TracedOperation]:
        """Every operation, after it was counted; to be read to the end.

        Raises:
            SetupError: there is no operation, or more than two weeks are between two of them.
        """
        done = added = 0
        try:
            for batch in self._trace.batches():
                yield from self._counted(batch)
                done += len(batch)
                added += len(batch)
                if added >= _MERGED_AFTER:
                    self._merge()
                    added = 0
                self._tell(done, self._trace.operations)
            self._merge()
        except ValueError as error:
            raise SetupError(
                f"{cut(self._name)} spans more than two weeks, and every second would be in "
                "memory. Of a log, give the folders of two weeks at a time; `harness whatif` reads "
                "any length"
            ) from error
        self._tell(1, 1)
        if self._first_ms is None:
            why = " ".join(["", *self._trace.notes, *self._trace.damage.sentences()]).rstrip(".")
            raise SetupError(f"{cut(self._name)} has no readable operation.{why}".rstrip("."))

    def _counted(self, batch: Batch) -> Iterator[TracedOperation]:
        ledger = self._source
        if self._first_ms is None:
            self._first_ms = batch.at_ms[0]
        self._last_ms = batch.at_ms[-1]
        self._done_ms = max(self._done_ms, max(batch.done_ms))
        for row in batch.rows():
            ledger.note_due()
            ledger.note_sent()
            ledger.add(row.result(self._start_s))
            yield row

    def _merge(self) -> None:
        self.ledger.merge(self._source.drain())

    @property
    def seconds(self) -> float:
        """From the first operation to the last, as `ReplayPart.seconds`."""
        return (self._last_ms - (self._first_ms or 0)) / 1000

    @property
    def started_s(self) -> float:
        """When the first operation was sent, UTC seconds."""
        return self._start_s + (self._first_ms or 0) / 1000

    @property
    def ended_s(self) -> float:
        """When the last answer was whole, UTC seconds."""
        return self._start_s + self._done_ms / 1000

    def snapshot(self) -> Snapshot:
        """The counts, with the rates over the whole seconds from the first operation to the end."""
        return self.ledger.snapshot(
            start=int(self.started_s), end=int(self.ended_s) + 1, latencies=True
        )

    def close(self) -> None:
        self._source.close()
        self.ledger.close()
