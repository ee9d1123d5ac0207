"""The traffic of a trace under several key schemes, held against limits in simulated time."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import multiprocessing
import signal
from collections.abc import Generator, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import PhysicalPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import ranked
from harness.model.errors import SetupError, cut
from harness.model.process import search_rarely
from harness.trace.engine import reason_of
from harness.trace.head import TraceError
from harness.trace.operations import ASSUMED_PROPERTIES
from harness.trace.reader import Damage, Trace
from harness.trace.row_properties import moves
from harness.trace.whatif.first_limit import RekeyedTraffic, first_limit
from harness.trace.whatif.projection import BACKOFF, DRAWS, Progress, Projection
from harness.trace.whatif.rows_before import (
    RowsBefore,
    need_counts,
    require_rows_of,
    rows_before,
)
from harness.trace.whatif.scheme import Scheme, as_recorded, require_properties, require_table

_NO_ORDER = (
    "Keys are aliases without the order of the keys: a query over a range of them counts what it "
    "scanned."
)
_MOST_DRAWN = 20_000
"""Of a longer trace, one draw of the waits says enough: chance averages out."""


def _capacity(limits: GatewayLimits) -> dict[str, Any]:
    """The fields of a `WhatIfRecord` about what the limits allow in a second."""
    if (units := limits.units) is None:
        return {
            "partition_per_s": limits.partition.entities_per_s,
            "account_per_s": limits.account.entities_per_s,
        }
    # A PartitionKey has no more than what the physical partition has that it is in.
    per_s = min(units.throughput.partition_ru_per_s, units.partition_ru_per_s)
    return {
        "unit": "RU",
        "partition_per_s": per_s,
        "account_per_s": units.provisioned_ru_per_s,
        "physical": PhysicalPart(count=units.physical_partitions, properties=ASSUMED_PROPERTIES),
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Calculated:
    """What was calculated for a scheme, and what was seen of the trace meanwhile."""

    part: SchemePart
    tables: frozenset[str]
    first_ms: int
    last_ms: int
    damage: Damage


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Calculation:
    """What is to be calculated for a scheme; it can be sent to another process.

    Attributes:
        record: The rates and limits; its schemes are not read.
        rows, before: As of a `RekeyedTraffic`.
        draws: As of a `Projection`.
    """

    scheme: Scheme
    limits: GatewayLimits
    record: WhatIfRecord
    rows: bool
    before: RowsBefore | None
    draws: int

    def of(self, trace: Trace, progress: Progress) -> _Calculated:
        """Read the trace and calculate; a `SetupError` if it has no operation that can be read."""
        scheme, record = self.scheme, self.record
        traffic = RekeyedTraffic(
            trace=trace,
            scheme=scheme,
            limits=self.limits,
            rows=self.rows,
            before=self.before,
            progress=progress,
        )
        projection = Projection(
            traffic.rekeying(),
            self.limits,
            rate=record.rate,
            started_s=record.started_at,
            draws=self.draws,
        )
        tables: set[str] = set()
        first_ms = last_ms = 0
        for batch in trace.batches():
            projection.add(batch)
            progress(scheme.name, len(batch))
            first_ms = first_ms if tables else batch.at_ms[0]
            last_ms = batch.at_ms[-1]
            tables.update(shape.table for shape in batch.shapes)
        if not tables:
            raise trace.unreadable(trace.path.name)
        part = projection.finish()
        if moved := moves(trace, scheme):
            price = dataclasses.replace(part.price, moved=moved)
            part = part.model_copy(update={"price": price})
        if record.most_factor:
            first = first_limit(traffic, part, record)
            part = part.model_copy(update={"first_limit": first})
        return _Calculated(part, frozenset(tables), first_ms, last_ms, trace.damage)


def _calculate(calculations: Sequence[_Calculation], path: Path, parent: Connection) -> None:
    """Work of a process of its own: sends steps, and what was calculated in turn, or an error."""
    # Where no signal can be held back; see `_start`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    search_rarely()
    # Nobody listens once the parent was killed.
    with contextlib.suppress(BrokenPipeError):
        try:
            with contextlib.closing(_opened(path)) as trace:
                for calculation in calculations:
                    parent.send(calculation.of(trace, lambda *step: parent.send(step)))
        except SetupError as error:
            parent.send(error)


def _opened(path: Path) -> Trace:
    """The trace that the parent has read; a `SetupError` if it cannot be read any more."""
    try:
        return Trace(path)
    except (TraceError, OSError) as error:
        raise SetupError(
            f"{cut(path.name)} cannot be read any more ({cut(reason_of(error))})"
        ) from error


def _start(child: SpawnProcess) -> None:
    """Start a process that never gets a Ctrl-C, which reaches all processes of a terminal.

    The parent ends the others. A Ctrl-C takes effect at the end: Python would end with a stack
    trace while it starts, and where the parent does not tell it everything.
    """
    held: list[int] = []
    # The mask of a thread does not hold back what another thread gets.
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    masked = hasattr(signal, "pthread_sigmask")
    try:
        if masked:
            # Its first start lets all signals through again.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        child.start()
    finally:
        if masked:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, handler)
        for number in held:
            signal.raise_signal(number)


def _side_by_side(
    calculations: Sequence[_Calculation], trace: Trace, progress: Progress, processes: int
) -> Generator[_Calculated]:
    """The results in the same order, calculated in so many processes."""
    context = multiprocessing.get_context("spawn")
    # The places of what each child has still to calculate.
    running: dict[Connection, collections.deque[int]] = {}
    children: dict[Connection, SpawnProcess] = {}
    steps: dict[int, tuple[str, int]] = {}
    ready: dict[int, _Calculated] = {}
    place = 0
    try:
        for first in range(min(processes, len(calculations))):
            mine, its = context.Pipe(duplex=False)
            work = calculations[first::processes], trace.path, its
            # Python ends a daemon, also if a Ctrl-C comes before it is noted below.
            child = context.Process(target=_calculate, args=work, daemon=True)
            _start(child)
            its.close()
            children[mine] = child
            running[mine] = collections.deque(range(first, len(calculations), processes))
        while place < len(calculations):
            for connection in {*running}.intersection(wait([*running])):
                places = running[connection]
                match _received(connection, children[connection]):
                    case _Calculated() as one:
                        ready[places.popleft()] = one
                        if not places:
                            del running[connection]
                    case step, operations:
                        before, done = steps.get(places[0], ("", 0))
                        steps[places[0]] = step, operations + (done if step == before else 0)
            # One step at a time is shown: that of the first scheme that is not ready.
            if place in steps:
                progress(*steps.pop(place))
            while place in ready:
                yield ready.pop(place)
                place += 1
    finally:
        for child in children.values():
            child.terminate()
            child.join()


def _received(connection: Connection, child: SpawnProcess) -> _Calculated | tuple[str, int]:
    """What a child sent; its error is raised here."""
    try:
        said = connection.recv()
    except (EOFError, OSError):
        child.join()
        ended = f"a process that calculated a scheme ended with exit code {child.exitcode}; "
        if (child.exitcode or 0) >= 0:
            raise RuntimeError(f"{ended}its error is above") from None
        raise SetupError(
            f"{ended}if the memory of this machine is short, give fewer schemes at once"
        ) from None
    if isinstance(said, Exception):
        raise said
    return said  # type: ignore[no-any-return]


def what_if(
    trace: Trace,
    schemes: Sequence[Scheme],
    limits: GatewayLimits,
    *,
    name: str,
    limits_name: str,
    rate: float = 1.0,
    most_factor: float = 0.0,
    version: str = "",
    rows_said: Mapping[str, int] = MappingProxyType({}),
    recorded: bool = True,
    backoff: bool = True,
    processes: int = 1,
    progress: Progress = lambda step, operations: None,
) -> WhatIfRecord:
    """The recorded keys and ``schemes`` side by side.

    Args:
        trace: It shows rows (`harness.trace.row_properties`) if keys are made of properties.
        most_factor: Also find the multiple, up to this one, at which each scheme meets its first
            limit.
        rows_said: How many rows tables had before the trace; see `rows_before`.
        recorded: Whether the recorded keys come first; who joins schemes without them ranks them.
        backoff: Also calculate with retries.
        processes: So many calculate at the same time; one calculates here.

    Raises:
        SetupError: the trace has no operation, none on the table of a scheme, or no values of its
            properties.
    """
    started_s = trace.head.started_ms // 1000
    record = WhatIfRecord(
        harness_version=version,
        trace=name,
        started_at=started_s,
        seconds=0.0,
        rate=rate,
        limits=limits_name,
        retry=f"{BACKOFF.retries} retries, {BACKOFF.backoff_s:g} s doubling, "
        f"at most {BACKOFF.maximum_s:g} s",
        most_factor=most_factor,
        schemes=(),
        **_capacity(limits),
    )
    for scheme in schemes:
        require_properties(scheme, trace.properties)
    # An upsert of a row that is there costs more request units; entities count in queries alone.
    rows = limits.units is not None or next(trace.queries(), None) is not None
    every = ([as_recorded()] if recorded else []) + [*schemes]
    draws = (DRAWS if trace.operations <= _MOST_DRAWN else 1) if backoff else 0
    # Ranges of aliases without order have no rows.
    ordered = trace.head.keeps_order
    needed = need_counts(trace, every) if ordered else [False] * len(every)
    counted = rows_before(trace, rows_said, progress) if any(needed) else None
    calculations = [
        _Calculation(
            scheme=scheme,
            limits=limits,
            record=record,
            rows=rows,
            before=counted if needs else None,
            draws=draws,
        )
        for scheme, needs in zip(every, needed, strict=True)
    ]
    calculated = (
        _side_by_side(calculations, trace, progress, processes)
        if min(processes, len(every)) > 1
        else (calculation.of(trace, progress) for calculation in calculations)
    )
    found: list[_Calculated] = []
    with contextlib.closing(calculated):
        for one in calculated:
            if not found:
                for tried in schemes:
                    require_table(tried, one.tables)
                require_rows_of(rows_said, one.tables)
            found.append(one)
    first, damage = found[0], trace.damage
    damage.rows, damage.reason = first.damage.rows, damage.reason or first.damage.reason
    update = {
        "seconds": (first.last_ms - first.first_ms) / 1000,
        "damage": (*damage.sentences(), *(() if ordered else (_NO_ORDER,))),
        "schemes": ranked([one.part for one in found]),
    }
    return record.model_copy(update=update)
