"""The HTML report of a kept record must not change by accident, its scripts and its style apart.

`UPDATE_GOLDEN=1 pytest tests/golden` writes it anew.
"""

from __future__ import annotations

import re

from harness.report.web.document import document, embedded, update
from tests.support.golden import check
from tests.support.records import kept, with_courses, with_heat

KEYS = [f"2026-11-{day:02d}" for day in range(1, 6)]
RECORD = with_heat(
    with_courses(kept("run-v1-search.json")),
    KEYS,
    lambda row, column: 240 if column // 25 == row else 0,
    lambda row, column: 9 if column % 40 == 8 * row else 0,
)


def test_report() -> None:
    """The report of a kept record is the same page."""
    page = re.sub(r"<style>.*?</style>", "<style></style>", document(RECORD), flags=re.S)
    page = re.sub(r"(<script[^>]*>).*?</script>", r"\1</script>", page, flags=re.S)
    check("report.html", re.sub(r"sha256-[A-Za-z0-9+/=]*", "sha256-", page))


def test_charts() -> None:
    """Its charts are the same figures."""
    charts = update(RECORD, live=False)["charts"]
    lines = [f"{name} {embedded(chart)}\n" for name, chart in charts.items()]
    check("report-charts.txt", "".join(lines))
