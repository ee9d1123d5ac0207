"""Holds what-ifs against replays at the same limits, and writes the table in docs/whatif-trial.md.

    python -m benchmarks.whatif_trial [--only TRACE] [--out FOLDER]

Replays run one after the other, each of some 15 seconds, against the embedded Azurite behind the
gateway. What was replayed is kept in FOLDER, so that a trial can be continued.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.whatif_trial.traces import MADE, make  # noqa: E402
from harness.gateway.limits import load_limits  # noqa: E402
from harness.measure.record.record import RunRecord  # noqa: E402
from harness.measure.record.whatif import DrawPart, SchemePart  # noqa: E402
from harness.model.figures import percent  # noqa: E402
from harness.model.outcome import Outcome  # noqa: E402
from harness.model.partition import Partition  # noqa: E402
from harness.trace.reader import Trace  # noqa: E402
from harness.trace.whatif.scheme import as_recorded, read_scheme  # noqa: E402
from harness.trace.whatif.whatif import what_if  # noqa: E402

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "whatif-trial.md"
POINTS, RELATIVE = 0.02, 0.1
PATIENCE_S = 180
SLOW_MS = 500.0
WANTED = [outcome.value for outcome in Outcome if outcome.wanted_again]
THROTTLED = Outcome.THROTTLED.value
HASHED = '[keys]\npartition_key = "{partition_key:hash1}-{partition_key}"\n'
BUCKETS = '[keys]\npartition_key = "{partition_key}-{row_key:bucket8}"\n'
ONE_EACH = '[keys]\npartition_key = "{row_key}"\nrow_key = "{partition_key}"\n'
HEAD = """\
# What-ifs held against replays

Made by `make whatif-trial`. A what-if calculates what recorded traffic meets under other keys.
Here the same traffic is really sent (`replay.keys`), at the same limits, to the embedded Azurite
behind the gateway. `orders`, `bursts` and `stock` are made from a seed
(`benchmarks/whatif_trial/traces.py`); the others are the recordings in `examples/`.

In each pair the first figure is calculated, the second replayed. *Outside* names what differs by
more than it should: the share of throttled attempts by more than a tenth and one point, the share
of the hottest partition by more than 2 points, billable requests by more than 2 %, failed requests
by more than a tenth and one percent of the operations. With back-off, the waits are random: a
what-if of a short trace draws them nine times, and a replay is one draw, held against the nearest
of them. A replay shows the entities of a query over
several partitions for no partition: then its hottest partition is left out. *Emulator too slow*:
one in a hundred requests failed otherwise than by throttling, was not answered, or was a query of a
type whose median is above half a second, because Azurite reads and sorts the table for each page of
a query. A slow query finds what was written meanwhile, and its load is spread over the time. The
gateway takes one entity for a query until its answer says what it scanned; a what-if knows that
after the same millisecond, and so throttles less where many queries find nothing (`even-spread`,
buckets). A replay is
late where the machine is busy, and then sends in bursts: *busy* is the share of the time in which
other programs had the processors.

| trace | keys | back-off | throttled | hottest | billable | failed | outside | busy |
|---|---|---|---|---|---|---|---|---|
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A trace with its limits in entities/s, and the TOML of schemes."""

    trace: str
    partition: int
    account: int
    schemes: tuple[str, ...]
    speed: float = 1.0


CASES = (
    Case("orders", 120, 5000, ("by-day", "buckets", "one-each")),
    Case("bursts", 100, 5000, ("hashed", "buckets", "by-day")),
    Case("stock", 80, 3000, ("hashed", "buckets", "by-day")),
    Case("hot-tenant", 100, 2000, ("by-ten", "buckets", "hashed")),
    Case("append-only-log", 60, 2000, ("by-sensor", "hash-prefix", "buckets")),
    Case("even-spread", 2000, 150, ("in-one", "hashed", "buckets")),
)
SHARED = {
    "hashed": HASHED,
    "buckets": BUCKETS,
    "one-each": ONE_EACH,
    "by-day": '[keys]\npartition_key = "{partition_key}_{row_key:day}"\n',
}


@dataclasses.dataclass(frozen=True)
class Figures:
    """What is compared of a calculation and a replay.

    Attributes:
        hottest: None if the replay shows it without what queries over several partitions scan.
        limited: Other failures than throttling, no answers, or slow queries: the emulator was too
            slow.
    """

    throttled: float
    hottest: float | None
    billable: int
    failed: int
    operations: int
    busy: float = 0.0
    limited: bool = False

    @classmethod
    def replayed(cls, record: RunRecord, backoff: bool) -> Figures:
        counts, keys = record.counts, []
        for part in record.partitions:
            if not Partition.named(part.key).whole_table:
                keys.append(part.entities)
        shown = sum(keys) > 0.99 * counts.entities
        others = sum(record.outcomes.get(name, 0) for name in WANTED if name != THROTTLED)
        slow = 0
        # With back-off, latencies include the waits between attempts.
        if not backoff:
            for of in record.operations:
                latency = of.service_ms
                if of.type == "query" and latency is not None and latency.p50 > SLOW_MS:
                    slow += of.count
        return cls(
            sum(record.throttled.values()) / max(1, counts.attempts),
            max(keys, default=0) / max(1, counts.entities) if shown else None,
            counts.attempts,
            record.outcomes.get(THROTTLED, 0),
            counts.operations,
            record.generator.machine_busy_share,
            slow + others + counts.in_flight > 0.01 * counts.operations,
        )


class Calculated(NamedTuple):
    """The least and the most of all draws of the waits in back-off."""

    least: Figures
    most: Figures

    @classmethod
    def of(cls, part: SchemePart, backoff: bool) -> Calculated:
        of = part.retried if backoff else part.once
        one = DrawPart(ratio=of.ratio, attempts=of.attempts, failed=of.failed)
        return cls(
            *(
                Figures(
                    draw.ratio,
                    of.hottest_share,
                    draw.attempts,
                    draw.failed,
                    part.price.operations,
                )
                for draw in (part.draws if backoff else None) or (one, one)
            )
        )

    def outside(self, found: Figures) -> Iterator[str]:
        """What differs by more than it should."""
        if found.limited:
            yield "emulator too slow"
            return
        few = 0.01 * self.least.operations
        hottest = self.least.hottest or 0.0
        if self._differs(found, lambda one: one.throttled, RELATIVE, 0.01):
            yield "throttled"
        if found.hottest is not None and abs(hottest - found.hottest) > POINTS:
            yield "hottest"
        if self._differs(found, lambda one: one.billable, 0.02, 0):
            yield "billable"
        if self._differs(found, lambda one: one.failed, RELATIVE, few):
            yield "failed"

    def _differs(
        self, found: Figures, figure: Callable[[Figures], float], share: float, least: float
    ) -> bool:
        there = figure(found)
        nearest = min(max(there, figure(self.least)), figure(self.most))
        return not math.isclose(nearest, there, rel_tol=share, abs_tol=least)


def files(case: Case, folder: Path) -> tuple[Path, dict[str, Path | None]]:
    """The trace of a case, and its schemes by name; None is as recorded."""
    if case.trace in MADE:
        trace = folder / f"{case.trace}.parquet"
        if not trace.exists():
            make(case.trace, trace)
    else:
        trace = EXAMPLES / case.trace / f"{case.trace}.parquet"
    schemes: dict[str, Path | None] = {"as recorded": None}
    for name in case.schemes:
        path = EXAMPLES / case.trace / f"{name}.toml"
        if not path.exists():
            path = folder / f"{name}.toml"
            path.write_text(SHARED[name], encoding="utf-8")
        schemes[name] = path
    return trace, schemes


def limits_of(case: Case, folder: Path) -> Path:
    path = folder / f"{case.trace}-limits.toml"
    path.write_text(
        f"[partition]\nentities_per_s = {case.partition}\n"
        f"[account]\nentities_per_s = {case.account}\n",
        encoding="utf-8",
    )
    return path


def replayed(
    trace: Path, keys: Path | None, limits: Path, case: Case, backoff: bool, folder: Path
) -> Figures:
    """What a replay met; one that was made before is read again."""
    if not (kept := sorted(folder.rglob("run.json"))):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "locust", "-f", str(ROOT / "locustfile.py")]
        settings = {
            "loading.settle_s": "0",
            "retry.strategy": "exponential" if backoff else "none",
            "replay.trace": str(trace),
            "replay.speed": str(case.speed),
            **({} if keys is None else {"replay.keys": str(keys)}),
        }
        command += ["--headless", "--profile", "replay", "--session", "wire", "--metrics-port", "0"]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        command += ["--throttling", str(limits)]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode not in (0, 3):
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        kept = sorted(folder.rglob("run.json"))
    return Figures.replayed(RunRecord.from_json(kept[-1].read_bytes()), backoff)


class Orders:
    """Whether keys are in the same order by throttled share, as calculated and as replayed.

    Two keys of a trace are compared if their replays differ by more than draws of one case do.
    """

    def __init__(self) -> None:
        self._figures: dict[tuple[str, bool], list[tuple[float, float]]] = {}

    def add(self, trace: str, backoff: bool, said: Calculated, found: Figures) -> None:
        if not found.limited:
            pair = said.least.throttled + said.most.throttled, found.throttled
            self._figures.setdefault((trace, backoff), []).append(pair)

    def __str__(self) -> str:
        compared = [
            (one, other)
            for figures in self._figures.values()
            for one, other in itertools.combinations(figures, 2)
            if not math.isclose(one[1], other[1], rel_tol=RELATIVE, abs_tol=POINTS)
        ]
        equal = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in compared)
        return (
            f"Of {len(compared)} pairs of keys whose replays differ by more than 2 points, "
            f"and a tenth, {equal} are in the order that the what-if says."
        )


def rows(only: list[str], folder: Path, orders: Orders) -> Iterator[str]:
    for case in CASES:
        if only and case.trace not in only:
            continue
        trace, schemes = files(case, folder)
        limits = limits_of(case, folder)
        for name, keys in schemes.items():
            found = what_if(
                Trace(trace),
                [as_recorded() if keys is None else read_scheme(keys)],
                load_limits(limits),
                name=trace.name,
                limits_name="trial",
                rate=case.speed,
                # Nothing was there before what a replay loads.
                rows_said={} if case.trace not in MADE else {"": 0},
            ).schemes[-1]
            limited = False
            for backoff in (False, True):
                place = folder / f"{case.trace}-{name}-{'back-off' if backoff else 'none'}".replace(
                    " ", "-"
                )
                there = replayed(trace, keys, limits, case, backoff, place)
                # A server that is too slow for the keys is so with back-off, too.
                limited = there.limited or limited
                there = dataclasses.replace(there, limited=limited)
                said = Calculated.of(found, backoff)
                orders.add(case.trace, backoff, said, there)
                yield row(case.trace, name, backoff, said, there)


def row(trace: str, name: str, backoff: bool, said: Calculated, found: Figures) -> str:
    def pair(say: Callable[[Figures], str]) -> str:
        least, most = map(say, said)
        return f"{least if least == most else f'{least} to {most}'}, {say(found)}"

    cells = [trace, name, "yes" if backoff else "no"]
    cells.append(pair(lambda one: percent(one.throttled)))
    cells.append(pair(lambda one: "-" if one.hottest is None else percent(one.hottest)))
    cells.append(pair(lambda one: f"{one.billable:,}"))
    cells.append(pair(lambda one: f"{one.failed:,}"))
    cells += [", ".join(said.outside(found)), percent(found.busy)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="TRACE")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "whatif-trial")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines, orders = [], Orders()
    for line in rows(args.only, args.out.resolve(), orders):
        print(line, flush=True)
        lines.append(line)
    print(f"\n{orders}")
    if not args.only:
        PAGE.write_text(HEAD + "\n".join([*lines, "", str(orders)]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
