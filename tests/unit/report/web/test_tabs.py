"""The rows of the tab "Partitions": figures that can be sorted, what is most in demand first."""

from __future__ import annotations

from typing import Any

import pytest

from harness.measure.record.measured import EstimatePart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.report.web.tabs import PARTITION_HEADINGS, in_demand, rows_of, verdict_rows
from tests.support.records import altered, enforcing, kept

RECORD = kept()
PART = RECORD.partitions[0]


def part(key: str, entities: int, throttled: int = 0, **parts: Any) -> PartitionPart:
    attempts = {"204": entities, "503 ServerBusy partition": throttled}
    changes = {"key": key, "entities": entities, "attempts_by_status": attempts, **parts}
    return PART.model_copy(update=changes)


def record(*partitions: PartitionPart, **parts: Any) -> RunRecord:
    return altered(RECORD, partitions=partitions, **parts)


def test_the_account_stands_above_the_partitions() -> None:
    """Each row is held against the limit that was in force."""
    account, first = rows_of(RECORD)[:2]
    assert account["partition"] == "The whole account"
    assert str(account["of_target"]).endswith("of\N{NO-BREAK SPACE}20,000")
    assert first["partition"] == PART.key
    assert str(first["of_target"]).endswith("of\N{NO-BREAK SPACE}2,000")
    held = enforcing()
    account, first = rows_of(altered(RECORD, enforced=held))[:2]
    assert str(account["of_target"]).endswith("of\N{NO-BREAK SPACE}2,500")
    assert str(first["of_target"]).endswith("of\N{NO-BREAK SPACE}250")


def test_a_bar_is_as_long_as_its_share() -> None:
    """Half of a limit is half a bar; little is not nothing, and nothing is an empty cell."""
    shares = (0.0, 0.0001, 0.11, 0.54, 1.04)
    parts = [part(f"{share}", 10, throttled_ratio=share) for share in shares]
    cells = {str(row["partition"]): str(row["throttled"]) for row in rows_of(record(*parts))}
    assert cells["0.0"] == ""
    assert [cells[f"{share}"].count("█") for share in shares[1:]] == [1, 1, 5, 10]
    assert [cells[f"{share}"].split("\N{NO-BREAK SPACE}")[1] for share in shares[1:]] == [
        "0.01%", "11%", "54%", "104%",
    ]  # fmt: skip


def test_only_answers_that_occurred_are_named() -> None:
    """Statuses that never came take no room, and any other status has its place."""
    counts = {"204": 5, "500 OperationTimedOut partition": 9, "409 EntityAlreadyExists": 90}
    busy, calm = rows_of(record(part("a", 9, attempts_by_status=counts), part("calm", 5)))[1:]
    assert calm["answers"] == ""
    first, second = str(busy["answers"]).split(", ")
    assert first.startswith("500: 0.")
    assert second.startswith("409 EntityAlreadyExists: ")
    assert PARTITION_HEADINGS.keys().isdisjoint({"throttled_503", "throttled_429"})


def test_the_verdict_has_a_tab_of_its_own() -> None:
    """The phase of the run, its conditions, the verdict, and the figures; first a warm-up."""
    rows = {row["what"]: row["said"] for row in verdict_rows("running", RECORD, live=True)}
    assert rows["Run"] == "running"
    assert str(rows["Conditions so far"]).startswith("FAIL: ")
    assert str(rows["Verdict so far"]).startswith("Throttled. Partition 'p0' was throttled")
    assert rows["Limited by"] == "the partition"
    ended = [row["what"] for row in verdict_rows("ended", RECORD, live=False)]
    assert ended[:3] == ["Run", "Conditions", "Verdict"]
    new = altered(RECORD.verdict, result="inconclusive")
    early = altered(RECORD, verdict=new, measured_s=0)
    _, verdict, *_ = verdict_rows("running", early, live=True)
    assert str(verdict["said"]).startswith("Warming up")
    assert verdict_rows("No run yet.", None, live=True) == [{"what": "Run", "said": "No run yet."}]


def test_every_row_fills_every_column() -> None:
    """A missing cell would be shown as nothing, and sorted as nothing."""
    parts = [part("a", 5), part("b", 3, service_ms=None, response_ms=None)]
    for row in rows_of(record(*parts, partitions_folded=part("", 9))):
        assert row.keys() == PARTITION_HEADINGS.keys()


def test_figures_are_numbers() -> None:
    """Columns are sorted by value, not by their first digit."""
    row = rows_of(RECORD)[1]
    service = PART.service_ms
    assert service is not None
    assert row["entities_per_s"] == round(PART.entities_per_s.mean)
    assert row["service_p99"] == pytest.approx(service.p99, rel=0.05)
    series = RECORD.series
    seconds = series[-1].t + series[-1].width_s - series[0].t
    refused = sum(
        count for name, count in PART.attempts_by_status.items() if name.startswith("503 ")
    )
    assert refused > 0
    assert row["throttled_per_s"] == pytest.approx(refused / seconds, rel=0.05)


def test_the_most_accessed_and_the_most_throttled_come_first() -> None:
    """Neither a busy partition nor a refused one is far down."""
    cold = [part(f"cold{number}", 10) for number in range(50)]
    parts = [*cold, part("refused", 1, throttled=90), part("hot", 900), part("warm", 100, 10)]
    assert [one.key for one in in_demand(record(*parts))][:3] == ["refused", "hot", "warm"]


def test_partitions_that_are_alike_keep_their_order() -> None:
    """A table that is drawn again every other second does not jump about."""
    parts = [part(f"p{number}", 10) for number in range(9)]
    assert in_demand(record(*parts)) == parts


def test_the_folded_rest_is_named() -> None:
    """What is not told apart is one row, last, held against no target."""
    last = rows_of(record(part("a", 5), partitions_folded=part("", 7)))[-1]
    assert last["partition"] == "all others, beyond the 1 counted separately"
    assert last["of_target"] == ""
    assert all(row["partition"] != "" for row in rows_of(RECORD))


def test_a_partition_that_was_told_apart_late_is_marked() -> None:
    """Its figures are too low by what came before."""
    estimate = EstimatePart(at_least=1, at_most=9)
    late = part("late", 5, exact=False, since=1_700_000_000.0, estimate=estimate)
    assert rows_of(record(late))[1]["partition"] == "late ~"


def test_before_the_window_opens_rates_cover_the_ramp() -> None:
    """The table is not full of zeros while users come."""
    nothing = altered(PART.entities_per_s, mean=0.0, best_1s=0.0, best_10s=0.0)
    series = tuple(
        altered(RECORD.series[0], t=1_700_000_000 + second, width_s=1) for second in range(4)
    )
    early = record(part("a", 800, entities_per_s=nothing), measured_s=0, series=series)
    row = rows_of(early)[1]
    assert row["entities_per_s"] == 200
    assert "10%" in str(row["of_target"])


def test_where_nothing_was_sent_nothing_is_divided() -> None:
    """A run that has just begun has rows all the same."""
    rows = rows_of(record(part("a", 0), measured_s=0, series=()))
    assert rows[1]["entities_per_s"] == rows[1]["throttled_per_s"] == 0


def test_where_no_target_holds_none_is_shown() -> None:
    """Request units are no entities a second."""
    account = altered(RECORD.account, target=None, ratio=None)
    rows = rows_of(record(part("a", 5, target=None, ratio=None), account=account))
    assert [row["of_target"] for row in rows] == ["no target", "no target"]


def test_long_and_strange_keys_stay_in_their_cell() -> None:
    """A key of a kilobyte is shortened in the middle; what cannot be printed is spelt out."""
    long = "<b>" + "x" * 1018 + "end"
    names = [row["partition"] for row in rows_of(record(part(long, 5), part("a\x9bb", 4)))]
    assert len(str(names[1])) <= 80
    assert str(names[1]).startswith("<b>x")
    assert str(names[1]).endswith("xend")
    assert names[2] == "a\\u009bb"


def test_a_share_that_is_a_lower_bound_has_its_sign() -> None:
    """The rates are numbers, by which the tab sorts; the share is a text."""
    record = kept()
    parts = tuple(altered(part, uncertain=1) for part in record.operations)
    bound = altered(record, operations=parts)
    assert all("\u2265" not in str(row["of_target"]) for row in rows_of(record))
    assert "\N{NO-BREAK SPACE}\u2265" in str(rows_of(bound)[0]["of_target"])
