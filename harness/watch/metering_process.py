"""The metering processes, as the watch sees them."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from harness.model.errors import SetupError
from harness.model.process import ChildProcess
from harness.watch.metering import MeteringReport, MeteringSettings

_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_MOST_OUTPUT_BYTES = 64 * 1024

Reports = queue.SimpleQueue[tuple[str, MeteringReport | None]]
"""Name of a process and its report; None when its output ended."""


class MeteringProcess(ChildProcess):
    """One metering process; a thread puts its reports after the first into ``reports``.

    ``log`` is the file for its errors; ``proxies`` are variables that name proxies.
    """

    def __init__(
        self, settings: MeteringSettings, reports: Reports, log: Path, proxies: Mapping[str, str]
    ) -> None:
        self.settings = settings
        self._reports = reports
        self._first: queue.SimpleQueue[MeteringReport | None] = queue.SimpleQueue()
        self._log = log
        receiving, sending = os.pipe()
        with os.fdopen(sending, "wb") as stdout, log.open("wb") as stderr:
            super().__init__(
                [sys.executable, "-m", "harness.watch.metering", settings.to_json()],
                stdout=stdout,
                stderr=stderr,
                environ={"PYTHONPATH": str(_PACKAGES), **proxies},
            )
        self._frames = os.fdopen(receiving, "rb")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._frames:
            self._first.put(MeteringReport.read(self._frames))
            while (report := MeteringReport.read(self._frames)) is not None:
                self._reports.put((self.settings.name, report))
        self._reports.put((self.settings.name, None))

    @property
    def last_words(self) -> str:
        """The end of its errors."""
        return self._log.read_bytes()[-_MOST_OUTPUT_BYTES:].decode("utf-8", "replace").strip()

    def first_report(self) -> MeteringReport:
        """Wait until the process listens.

        Raises:
            SetupError: it cannot listen, or its settings are invalid.
        """
        try:
            report = self._first.get(timeout=_READY_WITHIN_S)
        except queue.Empty:
            report = None
        if report is None:
            self.stop()
            raise SetupError(
                self.last_words or f"the gateway did not start within {_READY_WITHIN_S:g} s"
            )
        return report

    def stop(self) -> None:
        super().stop()
        self._reader.join()
