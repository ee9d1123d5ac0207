"""A screening has the loads and the prices of the exact calculation."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from harness.gateway.limits import GatewayLimits
from harness.trace.reader import Trace
from harness.trace.whatif.digests import digests_of, joined
from harness.trace.whatif.scheme import as_recorded, parse_scheme, read_scheme
from harness.trace.whatif.screening import ScreenedScheme, screen
from harness.trace.whatif.whatif import what_if
from tests.unit.trace.whatif.test_simulation import Requests, recorded, steady

EXAMPLES = Path(__file__).parents[4] / "examples"
KEYS = {
    "a hash as prefix": {"partition_key": "{partition_key:hash2}-{partition_key}"},
    "the RowKey": {"partition_key": "{row_key}", "row_key": "{partition_key}"},
    "one for all": {"partition_key": "all"},
    "of both keys": {"partition_key": "{partition_key+row_key:hash1}"},
    "parts": {"partition_key": "{row_key:first9}-{partition_key:lower}"},
}
A_PARTITION_EACH = ("the RowKey", "parts")
"""Under these a query of the log goes over thousands of partitions, which takes a minute."""
COUNTS = ("operations", "unknown", "unmatched", "transactions", "split", "queries", "spread")


def screened(
    trace: Trace, keys: dict[str, str], partition_per_s: float = 1e9, account_per_s: float = 1e9
) -> ScreenedScheme:
    scheme = parse_scheme("tried", {"keys": keys}, "tried.toml")
    [found] = screen(trace, [scheme], partition_per_s=partition_per_s, account_per_s=account_per_s)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("hot-tenant", "append-only-log"),
        pytest.param("even-spread", marks=(pytest.mark.long, pytest.mark.thorough)),
    ],
)
def test_screened_schemes_are_as_calculated(name: str) -> None:
    """Peaks, partitions and prices of recorded applications are equal under each scheme; a
    screening divides what a query scans exactly, a calculation by whole entities. A screening does
    not count what widened queries scan besides."""
    folder = EXAMPLES / name
    left_out = A_PARTITION_EACH if name == "append-only-log" else ()
    schemes = [
        parse_scheme(one, {"keys": keys}, one) for one, keys in KEYS.items() if one not in left_out
    ]
    schemes += [read_scheme(path) for path in sorted(folder.glob("*.toml"))]
    trace = Trace(folder / f"{name}.parquet")
    exact = what_if(trace, schemes, GatewayLimits(), name=name, limits_name="published").schemes
    found = screen(
        trace, [as_recorded(), *schemes], partition_per_s=2000, account_per_s=20_000, rate=1.0
    )
    for one, part in zip(found, exact, strict=True):
        for count in COUNTS:
            assert getattr(one.price, count) == getattr(part.price, count), (part.name, count)
        assert one.price.collisions == part.price.collisions
        assert one.entities == part.total - part.price.scanned + exact[0].price.scanned
        if part.price.scanned > exact[0].price.scanned:
            continue
        if not one.price.spread:
            assert one.partitions == part.partitions, part.name
            assert one.peak_per_s == pytest.approx(part.partition_peaks[1].per_s)


def test_what_is_over_a_limit_is_counted_second_by_second(tmp_path: Path) -> None:
    """Of 300 entities in each second of a partition that serves 100, two thirds are over, and of
    these 100 the account serves half."""
    trace = recorded(tmp_path, steady(300, 5, ["hot"]))
    keys = {"partition_key": "{partition_key}"}
    assert screened(trace, keys, partition_per_s=100).over == pytest.approx(2 / 3)
    both = screened(trace, keys, partition_per_s=100, account_per_s=50)
    assert both.over == pytest.approx(5 / 6)
    assert screened(trace, keys, partition_per_s=math.inf).over == 0


def test_many_partitions_are_counted_in_fixed_memory(tmp_path: Path) -> None:
    """Above 65,536 partitions the number is an estimate; the highest rate is exact nevertheless."""
    requests: Requests = [(place / 10_000, f"{place:08}", "r") for place in range(100_000)]
    requests += [(10.0 + place / 100, "hot", f"r{place}") for place in range(200)]
    found = screened(recorded(tmp_path, requests), {"partition_key": "{partition_key}"})
    assert found.partitions == pytest.approx(100_001, rel=0.05)
    assert found.partitions != 100_001
    assert found.peak_per_s == 20


def test_the_digest_of_a_key_is_that_of_its_parts() -> None:
    """Joined digests are those of the joined texts, whatever their lengths are."""
    parts = ["", "a", "tenant-07", "ü€", "x" * 1000]
    found = joined(digests_of(parts).value, digests_of(parts[::-1]))
    whole = [first + then for first, then in zip(parts, parts[::-1], strict=True)]
    assert found.tolist() == digests_of(whole).value.tolist()
