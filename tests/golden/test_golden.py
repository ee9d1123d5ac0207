"""Files that must not change by accident. `UPDATE_GOLDEN=1 pytest tests/golden` writes them anew.

The record of version 1 is never written anew: it was kept by a run, and stays readable.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.measure.record.record import SCHEMA_VERSION, RecordError, RunRecord
from harness.report.terminal.page import Page
from harness.report.terminal.summary import compact, summary
from tests.support.golden import check
from tests.support.records import KEPT, kept


@pytest.mark.parametrize("width", [80, 120])
def test_summary_of_the_kept_record(width: int) -> None:
    """The report of a kept record is the same text, year after year."""
    check(f"summary-{width}.txt", summary(kept(), Page(width=width)) + "\n")


def test_what_a_run_prints_fits_on_a_screen() -> None:
    """The result, with the hottest partitions."""
    shown = compact(kept(), Page(width=80))
    check("summary-compact.txt", f"{shown}\n")


def test_summary_in_ascii() -> None:
    """Where nothing but ASCII can be shown the report says the same."""
    check("summary-ascii.txt", summary(kept(), Page(width=80, ascii_only=True)) + "\n")


def holds(read: Any, stored: Any) -> bool:
    """Whether everything ``stored`` was read; fields may have been added since."""
    if isinstance(stored, dict):
        return all(name in read and holds(read[name], part) for name, part in stored.items())
    if isinstance(stored, list):
        return len(read) == len(stored) and all(map(holds, read, stored))
    return bool(read == stored)


def test_a_record_of_version_1_stays_readable() -> None:
    """A record of version 1 is read whole; what is written again reads the same."""
    text = KEPT.read_text(encoding="utf-8")
    record = RunRecord.from_json(text)
    assert record.schema_version == 1
    assert record.verdict.result == "throttled"
    assert record.partitions[0].attempts_by_status["503 ServerBusy partition"] > 0
    assert RunRecord.from_json(record.to_json()) == record
    assert holds(record.model_dump(mode="json"), json.loads(text))


def test_fields_of_later_minor_additions_are_ignored() -> None:
    """A field that this harness does not know does not make a record unreadable."""
    content = json.loads(KEPT.read_text(encoding="utf-8"))
    content["added_later"] = {"x": 1}
    assert RunRecord.from_json(json.dumps(content)).run_id == content["run_id"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": SCHEMA_VERSION + 1}, "this harness reads up to 1"),
        ({"users": "many"}, "not a run record: users:"),
        ({"counts": {}}, r"not a run record: counts\.due:"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, Any], message: str) -> None:
    """A later version and a broken record are refused with the place that is wrong."""
    content = json.loads(KEPT.read_text(encoding="utf-8")) | change
    with pytest.raises(RecordError, match=message):
        RunRecord.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "{}"])
def test_other_files_are_refused(text: str) -> None:
    """A file that is no JSON object of a run is refused with a sentence."""
    with pytest.raises(RecordError, match="not a run record"):
        RunRecord.from_json(text)
