"""Searches limits that were drawn at random, and writes the table in docs/limit-trial.md.

    python -m benchmarks.limit_trial [--seed N] [--of N]

Half of the limits are enforced by a program without any code of the harness
(`tests.support.throttled_table`), half by the gateway. Searches run side by side as far
as the processors go: one with a high limit takes two, for generator and service, the others one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.gateway.process import start_gateway  # noqa: E402
from harness.measure.record.record import RunRecord  # noqa: E402
from harness.model.figures import number  # noqa: E402

PAGE = ROOT / "docs" / "limit-trial.md"
LEAST, MOST = 200.0, 8000.0
PATIENCE_S = 560
NEAR = 0.05
HIGH_PER_S = 4000.0
"""The gateway reads so many entities/s of transactions in half of the time of a processor."""
HEAD = """\
# Limits found, held against limits drawn

Made by `make limit-trial`: {count} searches (`find-limit`, `find-limit-reads`) on a machine with
{cores} processors. Each limit was drawn between 200 and 8,000 entities/s (seed {seed}), with a
burst of 0.2 to 5 seconds of the rate, but at least two transactions. The *independent* throttle is
a program without any code of the harness: its rate changes every second by 10 % (one standard
deviation), and it refuses 0.3 % of the requests for no reason. The *gateway* refuses as many.
Neither stores anything.

{near} of {count} limits were found within 5 %; {covered} of {count} intervals (99 % confidence)
cover the limit. The dearest search made {dearest} billable transactions.

| throttle | probe | limit | burst | found | off | interval | covers | held | billable |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One limit to be found, in entities per second."""

    place: int
    independent: bool
    reads: bool
    per_s: float
    burst_s: float

    @property
    def processors(self) -> int:
        """How many the generator and the service take together."""
        return 1 if self.independent or self.per_s < HIGH_PER_S else 2

    @property
    def profile(self) -> str:
        return "find-limit-reads" if self.reads else "find-limit"


def drawn(seed: int, count: int) -> list[Case]:
    rng, cases = random.Random(seed), []
    for place in range(count):
        per_s = round(rng.uniform(LEAST, MOST))
        burst_s = max(rng.uniform(0.2, 5.0), 200 / per_s)
        independent = place % 2 == 0
        # The gateway without an upstream has no rows to read.
        reads = independent and place % 4 == 0
        cases.append(
            Case(place=place, independent=independent, reads=reads, per_s=per_s, burst_s=burst_s)
        )
    return cases


@contextlib.contextmanager
def throttling(case: Case, folder: Path) -> Iterator[str]:
    """The address of a service with the limit."""
    if not case.independent:
        limits = folder / "limits.toml"
        limits.write_text(
            f"[partition]\nentities_per_s = {case.per_s}\nburst_s = {case.burst_s}\n"
            "[servers]\nentities_per_s = 1000000.0\n[account]\nentities_per_s = 1000000.0\n"
            f"[moving]\nhot_after_s = 86400.0\n[faults]\nseed = {case.place}\nerror_503 = 0.003\n",
            encoding="utf-8",
        )
        with start_gateway(upstream="none", limits=limits) as gateway:
            yield gateway.url
        return
    said = {"per_s": case.per_s, "burst_s": case.burst_s, "noise": 0.1, "refused": 0.003}
    program = [sys.executable, "-m", "tests.support.throttled_table"]
    with subprocess.Popen(
        [*program, json.dumps(said | {"seed": case.place})],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def search(case: Case) -> RunRecord | None:
    with tempfile.TemporaryDirectory() as name, throttling(case, Path(name)) as url:
        command = [sys.executable, "-m", "harness", "run", case.profile, "-H", url, "--out", name]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command, cwd=ROOT, timeout=PATIENCE_S, check=False, stdout=subprocess.DEVNULL
            )
        paths = list(Path(name).glob("*/run.json"))
        return RunRecord.from_json(paths[0].read_text(encoding="utf-8")) if paths else None


def row(case: Case, record: RunRecord | None) -> tuple[bool, bool, int, str]:
    """Whether the limit was found within 5 %, whether it is covered, the price, and the line."""
    part = None if record is None else record.search
    limit = None if part is None else part.limit
    cells = [
        "independent" if case.independent else "gateway",
        "queries" if case.reads else "transactions",
        number(case.per_s),
        f"{case.burst_s:.1f} s",
    ]
    near = covered = False
    if limit is None or limit.high_per_s is None:
        cells += ["none" if part is None or record is None else record.verdict.result, *[""] * 3]
    else:
        off = limit.per_s / case.per_s - 1.0
        near = abs(off) <= NEAR
        covered = limit.low_per_s <= case.per_s <= limit.high_per_s
        interval = f"{number(limit.low_per_s)} to {number(limit.high_per_s)}"
        cells += [number(limit.per_s), f"{off:+.1%}", interval, "yes" if covered else "**no**"]
    price = sum(step.billable_transactions for step in part.steps) if part else 0
    cells += [number(part.rate_per_s) if part and part.rate_per_s else "", f"{price:,}"]
    return near, covered, price, f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--of", type=int, default=20, help="number of limits")
    asked = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    cases, found = drawn(asked.seed, asked.of), {}
    for each in (1, 2):
        chosen = [case for case in cases if case.processors == each]
        with concurrent.futures.ThreadPoolExecutor(max(1, cores // each)) as pool:
            for case, record in zip(chosen, pool.map(search, chosen), strict=True):
                found[case.place] = row(case, record)
                print(found[case.place][-1], flush=True)
    lines = [found[case.place][-1] for case in cases]
    near = sum(near for near, *_ in found.values())
    covered = sum(covered for _, covered, *_ in found.values())
    dearest = max(one[2] for one in found.values())
    head = HEAD.format(
        count=len(cases), cores=cores, seed=asked.seed, near=near, covered=covered,
        dearest=f"{dearest:,}",
    )  # fmt: skip
    PAGE.write_text(f"{head}{chr(10).join(lines)}\n", encoding="utf-8")
    print(f"{near} within 5 %, {covered} covered, of {len(cases)}; dearest {dearest:,}")
    return 0 if min(near, covered) >= 0.95 * len(cases) and dearest <= 50_000 else 1


if __name__ == "__main__":
    sys.exit(main())
