"""What a what-if calculates is what a real replay meets, with the same limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gateway.limits import load_limits
from harness.measure.record.whatif import SchemePart
from harness.trace.reader import Trace
from harness.trace.whatif.scheme import as_recorded, read_scheme
from harness.trace.whatif.whatif import what_if
from tests.support.locust_process import LocustProcess, Stress

pytestmark = [pytest.mark.azurite, pytest.mark.long, pytest.mark.serial]

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEED = 2.0
POINTS, RELATIVE = 0.02, 0.1
TRIES = 3


def limits_file(folder: Path, partition: int, account: int) -> Path:
    path = folder / "limits.toml"
    path.write_text(
        f"[partition]\nentities_per_s = {partition}\n[account]\nentities_per_s = {account}\n",
        encoding="utf-8",
    )
    return path


def calculated(trace: Path, limits: Path, scheme: Path | None) -> SchemePart:
    schemes = [] if scheme is None else [read_scheme(scheme)]
    found = what_if(
        Trace(trace),
        schemes or [as_recorded()],
        load_limits(limits),
        name=trace.name,
        limits_name="test",
        rate=SPEED,
    )
    return found.schemes[-1]


def replayed(
    stress: Stress,
    trace: Path,
    limits: Path,
    retry: str,
    keys: Path | None = None,
    speed: float = SPEED,
) -> LocustProcess:
    for _ in range(TRIES):
        # The session on the wire is on time: the SDK takes milliseconds to encode a transaction.
        replay = stress(
            *("--headless", "--profile", "replay", "--session", "wire"),
            *("--set", "loading.settle_s=0", "--set", f"retry.strategy={retry}"),
            *("--set", f"replay.trace={trace}", "--set", f"replay.speed={speed}"),
            *(("--set", f"replay.keys={keys}") if keys else ()),
            *("--throttling", str(limits)),
        )
        assert replay.wait() in (0, 3), replay.said
        # What is sent late, because others need the processor, comes in bursts.
        if replay.record.generator.machine_busy_share < 0.2:
            break
    return replay


@pytest.mark.parametrize(
    ("name", "scheme", "partition", "account", "retry"),
    [
        ("even-spread", "", 4000, 300, "none"),
        ("hot-tenant", "by-ten", 15, 4000, "exponential"),
    ],
)
def test_a_replay_lands_where_the_calculation_said(
    stress: Stress,
    tmp_path: Path,
    name: str,
    scheme: str,
    partition: int,
    account: int,
    retry: str,
) -> None:
    """The share of throttled requests is equal within a tenth, that of the hottest partition within
    2 points: as recorded and under other keys, by the limit of the account and of a partition,
    without retries and with back-off.

    `make whatif-trial` holds more cases. Bounds: 3,605 operations in 12 seconds, about twenty
    seconds in all.
    """
    folder = EXAMPLES / name
    trace, keys = folder / f"{name}.parquet", folder / f"{scheme}.toml" if scheme else None
    limits = limits_file(tmp_path, partition, account)
    expected = calculated(trace, limits, keys)
    replay = replayed(stress, trace, limits, retry, keys)
    found = replay.record
    throttled = found.throttled["partition"] + found.throttled["account"]
    simulated = expected.once if retry == "none" else expected.retried
    assert throttled / found.counts.attempts == pytest.approx(simulated.ratio, rel=RELATIVE)
    hottest = max(part.entities for part in found.partitions) / found.counts.entities
    assert hottest == pytest.approx(simulated.hottest_share, abs=POINTS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "partition", "account"),
    [("hot-tenant", 250, 4000), ("append-only-log", 400, 460), ("even-spread", 4000, 220)],
)
def test_a_replay_meets_its_first_limit_at_the_calculated_factor(
    stress: Stress, tmp_path: Path, name: str, partition: int, account: int
) -> None:
    """At 0.8 times the factor of the first limit a replay is not throttled, at 1.2 times it is, by
    the limit that the calculation names.

    Bounds: two replays of 20 seconds of traffic, about a minute in all.
    """
    trace = EXAMPLES / name / f"{name}.parquet"
    limits = limits_file(tmp_path, partition, account)
    found = what_if(
        Trace(trace), [], load_limits(limits), name=name, limits_name="test", most_factor=10_000.0
    )
    first = found.schemes[0].first_limit
    assert first is not None
    for share, throttled in ((0.8, False), (1.2, True)):
        replay = replayed(stress, trace, limits, "none", speed=share * first.factor)
        by_scope = replay.record.throttled
        assert (sum(by_scope.values()) > 0) is throttled, (share, first)
        if throttled:
            scope = "account" if first.rule == "account" else "partition"
            assert by_scope[scope] == max(by_scope.values())


def test_a_replay_at_the_stand_in_lands_there_too(stress: Stress, tmp_path: Path) -> None:
    """At limits in request units, although their charges are estimated from the recorded bytes.

    Bounds: 3,186 operations in 12 seconds, about twenty seconds in all.
    """
    trace = EXAMPLES / "hot-tenant" / "hot-tenant.parquet"
    limits = tmp_path / "limits.toml"
    limits.write_text("[cosmos]\nprovisioned_ru_per_s = 4500\n", encoding="utf-8")
    simulated = calculated(trace, limits, None).retried
    found = replayed(stress, trace, limits, "exponential").record
    ratio = found.throttled["partition"] / found.counts.attempts
    assert ratio == pytest.approx(simulated.ratio, rel=RELATIVE)
    charged = found.request_units
    assert charged is not None
    hottest = max(part.request_units.total for part in found.partitions if part.request_units)
    assert hottest / charged.total == pytest.approx(simulated.hottest_share, abs=2 * POINTS)
