"""The traces that the runs of a process record, each in a file of its own."""

from __future__ import annotations

from pathlib import Path

from harness.measure.record.record import BODIES_ONLY
from harness.swarm.master.master_run import MasterRun
from harness.trace.members import BODIES, RUN, WHOLE, TraceHead
from harness.trace.writer import TraceWriter


class Traces:
    """Opens the files; that of a further run of this process gets a number in its name."""

    def __init__(self) -> None:
        self._opened = 0

    def open(self, run: MasterRun, name: str | None) -> None:
        """Begin the trace of ``run``; None for no trace.

        Raises:
            SetupError: the file exists, or cannot be written.
        """
        if name is None:
            return
        path = Path(name)
        if self._opened:
            path = path.with_stem(f"{path.stem}-{self._opened + 1}")
        accounts, aliases = run.accounts, run.aliases
        head = TraceHead(
            started_ms=int(run.started_s) * 1000,
            source=RUN,
            name=run.plan.name,
            run_id=run.plan.run_id,
            endpoint=accounts.kind.described,
            account="" if aliases else ", ".join(one.account for one in accounts),
            keys="" if aliases is None else aliases.kept,
            bytes_of=BODIES if run.plan.session in BODIES_ONLY else WHOLE,
        )
        run.trace = TraceWriter(path, head, None if aliases is None else aliases.key)
        self._opened += 1
