"""The recorded traffic in `examples/` can be read, and shows what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gateway.limits import GatewayLimits
from harness.report.whatif import best_of
from harness.report.whatif_rows import rows
from harness.trace.reader import Trace
from harness.trace.whatif.scheme import read_scheme
from harness.trace.whatif.whatif import what_if

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("hot-tenant", "as recorded"),
        ("append-only-log", "hash-prefix"),
        ("even-spread", "as recorded"),
    ],
)
def test_an_example_shows_its_key_pattern(name: str, best: str) -> None:
    """Twenty times the traffic is best under the scheme that spreads it and splits no transaction;
    without one, the recorded keys are the best, throttled or not."""
    folder = EXAMPLES / name
    trace = Trace(folder / f"{name}.parquet")
    assert "/" not in trace.head.name
    schemes = [read_scheme(path) for path in sorted(folder.glob("*.toml"))]
    found = what_if(trace, schemes, GatewayLimits(), name=name, limits_name="published", rate=20)
    found_best = best_of(found)
    assert found_best is not None
    assert found_best.name == best
    assert found.damage == ()
    recorded = found.schemes[0]
    assert recorded.price.operations > 2000
    assert (recorded.once.throttled > 0) is (name != "even-spread")
    assert [part.name for part in found.schemes if part.breaks] == [
        part.name for part in found.schemes if part.price.split
    ]
    for part in found.schemes:
        assert (part.price.collisions, part.price.unmatched, part.price.unknown) == (0, 0, 0)


def test_a_width_beyond_the_traffic_is_shown_once() -> None:
    """The best minute of two seconds of traffic would repeat its best ten seconds, which are the
    mean of all of it."""
    trace = Trace(EXAMPLES / "hot-tenant" / "hot-tenant.parquet")
    for rate, widths in (
        (1, ["best 1 s", "best 10 s", "best minute"]),
        (20, ["best 1 s", "mean of 0:01"]),
    ):
        found = what_if(
            trace, [], GatewayLimits(), name="hot-tenant", limits_name="published", rate=rate
        )
        labels = [row.label for row in rows(found) if "best" in row.label or "mean" in row.label]
        assert [label for label in labels if label.startswith("hottest")] == [
            f"hottest partition, {width}" for width in widths
        ]
