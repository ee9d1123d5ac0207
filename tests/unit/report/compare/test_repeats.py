"""Repeats of one run: a line each, and what is typical of them."""

from __future__ import annotations

from harness.measure.record.record import RunRecord
from harness.report.compare.repeats import repeats_text
from harness.report.terminal.page import Page
from tests.support.records import altered, kept

RECORD = kept()


def repeat(place: int, rate: float, verdict: str, exit_code: int) -> RunRecord:
    """The kept record at a rate, with a verdict and an exit code of its own."""
    rates = altered(RECORD.account.entities_per_s, mean=rate)
    return altered(
        RECORD,
        run_id=f"20261122T00000{place}Z-0000000{place}",
        account={"entities_per_s": rates},
        verdict={"result": verdict},
        exit_code=exit_code,
    )


REPEATS = [
    repeat(1, 1000.0, "within_target", 0),
    repeat(2, 400.0, "client_limited", 3),
    repeat(3, 1100.0, "within_target", 0),
]


def test_each_run_has_its_verdict_and_all_have_median_and_spread() -> None:
    """The median is not the mean, which one bad run would move."""
    lines = repeats_text(REPEATS, Page(width=120)).splitlines()
    assert "3 runs of single-partition" in lines[1]
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["20261122T000002Z-00000002"][1] == "400"
    assert "client limited" in next(line for line in lines if "Z-00000002" in line)
    assert rows["20261122T000002Z-00000002"][-1] == "3"
    assert rows["median"][1:3] == ["1,000", "8.7%"]
    assert rows["spread"][1:3] == ["700", "0%"]


def test_what_was_not_measured_has_no_column() -> None:
    """A closed loop has no response latency; a run without latencies is left out of the median."""
    unmeasured = altered(REPEATS[0], service_ms=None)
    text = repeats_text([unmeasured, *REPEATS[1:]], Page(width=120))
    assert "response" not in text
    assert "n/a" in next(line for line in text.splitlines() if "Z-00000001" in line)


def test_a_narrow_page_shortens_the_run_ids_only() -> None:
    """All figures stay whole in 80 columns."""
    text = repeats_text(REPEATS, Page(width=80, ascii_only=True))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "..." in text
    assert "client limited" in text
