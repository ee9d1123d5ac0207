"""The runs of ``--repeat``: their records, their exit code, and what is shown at the end."""

from __future__ import annotations

import shlex

from harness.measure.record.record import RunRecord
from harness.report.compare.repeats import repeats_text
from harness.report.terminal.page import Page

_SEVEREST_FIRST = (2, 4, 3, 1, 0)


class Repeats:
    """The runs that have ended. One that could not begin has an exit code and no record."""

    def __init__(self) -> None:
        self._records: dict[str, RunRecord] = {}
        self._exit_codes: list[int] = []

    @property
    def exit_code(self) -> int:
        """The severest of all runs."""
        return min(self._exit_codes, key=_SEVEREST_FIRST.index)

    def __len__(self) -> int:
        return len(self._exit_codes)

    def take(self, record: RunRecord | None, exit_code: int) -> None:
        """Add a run that has ended. ``record`` is None, or an earlier run's, if it has none."""
        self._exit_codes.append(exit_code)
        if record is not None:
            self._records[record.run_id] = record

    def text(self, page: Page, folder: str) -> str:
        """The runs side by side, and how to compare them with others; empty for a single run."""
        if len(self._records) < 2:
            return ""
        command = f"harness compare {shlex.quote(folder)}"
        return (
            f"{repeats_text(list(self._records.values()), page)}\n\n"
            f"Records: {folder}\n"
            f"This table again: {command}\n"
            f"Against other runs: {command} OTHER_FOLDER\n"
            f"Exit code: {self.exit_code} (the severest of {len(self)} runs)"
        )
