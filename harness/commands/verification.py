"""Keys verified: replays of a trace on the stand-in, held against what was calculated."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import harness
from harness.commands.records import read_record
from harness.gateway.limits import GatewayLimits
from harness.measure.record.record import RunRecord
from harness.measure.record.whatif import SchemePart
from harness.model.errors import SetupError, cut
from harness.model.figures import percent
from harness.model.process import ChildProcess
from harness.trace.reader import Trace
from harness.trace.whatif.scheme import Scheme, read_scheme
from harness.trace.whatif.whatif import what_if

_OPERATIONS_PER_S = 300.0
"""More is beyond what the emulator and the generator serve on time on a small machine."""
_MOST_BURST_S = 3600.0
_PACKAGES = Path(harness.__file__).parents[1]
_TOLD = 300
_ENDED = (0, 3)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Keys, calculated and measured.

    Attributes:
        throttled: Share of the requests that were throttled: calculated, and measured.
        hottest: Share of the hottest partition of what was served: calculated, and measured.
        at_least: Whether it may have had more: not all partitions were counted from the start.
        busy: Share of the seconds in which the machine was too busy to send on time.
    """

    name: str
    throttled: tuple[float, float]
    hottest: tuple[float, float]
    at_least: bool
    busy: float

    @property
    def row(self) -> tuple[str, ...]:
        *shares, hottest = map(percent, (*self.throttled, *self.hottest))
        return (self.name, *shares, f"{'≥' * self.at_least}{hottest}")


COLUMNS = ("", "throttled", "measured", "hottest partition", "measured")


def replay_speed(operations: int, seconds: float, rate: float) -> float:
    """The speed of a replay that asks about ``rate`` times the traffic."""
    most = _OPERATIONS_PER_S * max(seconds, 1.0) / max(1, operations)
    return min(rate, most)


def slowed(limits: GatewayLimits, factor: float) -> GatewayLimits:
    """Limits that decide about slower traffic as ``limits`` do about all of it.

    Time passes by ``factor`` as fast: rates are smaller, bursts and waits longer.
    """

    def rates(of: str) -> object:
        section = getattr(limits, of)
        changed = {
            "entities_per_s": section.entities_per_s * factor,
            "burst_s": min(_MOST_BURST_S, section.burst_s / factor),
        }
        return section.model_copy(update=changed)

    moving = limits.moving
    waits = {name: min(_MOST_BURST_S, value / factor) for name, value in moving}
    return limits.model_copy(
        update={
            **{name: rates(name) for name in ("partition", "account", "servers")},
            "moving": moving.model_copy(update=waits),
        }
    )


def verify(
    trace: Trace,
    source: Path,
    schemes: Sequence[Path | None],
    limits: GatewayLimits,
    rate: float,
    speed: float,
    scratch: Path,
) -> list[Verified]:
    """Replay a trace, whose file or log is ``source``, under each scheme; None is today's keys.

    A `SetupError` has the end of the output of a replay that failed.
    """
    limits = slowed(limits, speed / rate)
    file = scratch / "limits.toml"
    file.write_text(_toml(limits.model_dump(include={"partition", "account", "servers", "moving"})))
    known: list[Scheme] = [read_scheme(path) for path in schemes if path is not None]
    calculated = what_if(
        trace, known, limits, name=source.name, limits_name=file.stem, rate=speed
    ).schemes
    parts = iter(calculated[1:])
    return [
        _verified(
            calculated[0] if path is None else next(parts),
            _replayed(source, path, file, speed, scratch / f"out-{place}"),
        )
        for place, path in enumerate(schemes)
    ]


def _verified(part: SchemePart, record: RunRecord) -> Verified:
    throttled = sum(record.throttled.values()) / max(1, record.counts.attempts)
    # Of a partition that was not counted from the start, those are known that were counted.
    counted = (one.estimate.at_least if one.estimate else one.entities for one in record.partitions)
    hottest = max(counted, default=0)
    return Verified(
        name=part.name,
        throttled=(part.once.ratio, throttled),
        hottest=(part.once.hottest_share, hottest / max(1, record.counts.entities)),
        at_least=record.partitions_folded is not None,
        busy=record.generator.machine_busy_share,
    )


def _replayed(
    source: Path, scheme: Path | None, limits: Path, speed: float, folder: Path
) -> RunRecord:
    settings = {
        "replay.trace": str(source.absolute()),
        "replay.speed": f"{speed:g}",
        **({} if scheme is None else {"replay.keys": str(scheme.absolute())}),
        "retry.strategy": "none",
        "loading.settle_s": "0",
        "conditions": "[]",
    }
    given = [one for pair in settings.items() for one in ("--set", "=".join(pair))]
    command = [sys.executable, "-m", "harness", "run", "replay", "--session", "wire", *given]
    command += ["--throttling", str(limits), "--out", str(folder), "--metrics-port", "0"]
    folder.mkdir()
    said = folder / "output.txt"
    with said.open("wb") as output:
        environ = {"PYTHONPATH": str(_PACKAGES)}
        with ChildProcess(command, stdout=output, cwd=folder, environ=environ) as child:
            child.wait()
    records = sorted(folder.glob("*/run.json"))
    if child.exit_code not in _ENDED or not records:
        end = said.read_text(encoding="utf-8", errors="replace").strip()[-_TOLD:]
        raise SetupError(f"a replay ended with exit code {child.exit_code}: {cut(end)}")
    return read_record(records[-1])


def _toml(sections: Mapping[str, Mapping[str, float]]) -> str:
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    return "\n".join(lines) + "\n"
