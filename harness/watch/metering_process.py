"""The metering processes, as the watch sees them."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path

from harness.model.children import ChildProcess
from harness.model.errors import SetupError
from harness.watch.metering import MeteringReport, MeteringSettings

_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_MOST_OUTPUT_BYTES = 64 * 1024

Reports = queue.SimpleQueue[tuple[str, MeteringReport | None]]
"""Name of a process and its report; None when its output ended."""


class MeteringProcess(ChildProcess):
    """One metering process; a thread puts its reports into ``reports``.

    ``log`` is the file for its errors.
    """

    def __init__(self, settings: MeteringSettings, reports: Reports, log: Path) -> None:
        self.settings = settings
        self._reports = reports
        self._log = log
        receiving, sending = os.pipe()
        with os.fdopen(sending, "wb") as stdout, log.open("wb") as stderr:
            super().__init__(
                [sys.executable, "-m", "harness.watch.metering", settings.to_json()],
                stdout=stdout,
                stderr=stderr,
                environ={"PYTHONPATH": str(_PACKAGES)},
            )
        self._frames = os.fdopen(receiving, "rb")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._frames:
            while (report := MeteringReport.read(self._frames)) is not None:
                self._reports.put((self.settings.name, report))
        self._reports.put((self.settings.name, None))

    @property
    def last_words(self) -> str:
        """The end of its errors."""
        return self._log.read_bytes()[-_MOST_OUTPUT_BYTES:].decode("utf-8", "replace").strip()

    def stop(self) -> None:
        super().stop()
        self._reader.join()


def first_report(process: MeteringProcess, reports: Reports) -> MeteringReport:
    """Wait until a process listens.

    Raises:
        SetupError: it cannot listen, or its settings are invalid.
    """
    deadline = time.monotonic() + _READY_WITHIN_S
    try:
        _, report = reports.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        report = None
    if report is None:
        process.stop()
        raise SetupError(
            process.last_words or f"the gateway did not start within {_READY_WITHIN_S:g} s"
        )
    return report
