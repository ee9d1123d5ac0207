"""``harness advise`` says what can be said, and writes schemes that other commands take."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.commands.advise import beside, replay_speed, slowed
from harness.gateway.limits import GatewayLimits
from harness.measure.record.advice import (
    AdviceRecord,
    KeyAnswer,
    ProposalPart,
    TableAdvicePart,
)
from harness.model.operation import WHOLE_TABLE, Kind
from harness.report.advise import Given, commands, scheme_files
from harness.trace.head import TraceHead
from harness.trace.reader import Trace
from harness.trace.whatif.whatif import what_if
from harness.trace.writer import TraceWriter
from tests.support.command import Command
from tests.support.known_keys import KNOWN, LIMITS, record_known
from tests.support.records import altered, kept, with_partitions
from tests.support.traced import trace_of, traced

EXAMPLES = Path(__file__).parents[3] / "examples"
LIMITS_TOML = """\
[partition]
entities_per_s = 40.0
[account]
entities_per_s = 400.0
[servers]
entities_per_s = 80.0
"""


def recorded(name: str, folder: Path) -> Path:
    path = folder / "app.parquet"
    record_known(next(one for one in KNOWN if one.name == name), path)
    return path


def test_the_written_schemes_are_those_of_a_what_if(tmp_path: Path, command: Command) -> None:
    """What is recommended, with its commands, and a page with both heat maps."""
    trace = recorded("log by day", tmp_path)
    limits, keys, page = tmp_path / "limits.toml", tmp_path / "keys", tmp_path / "page.html"
    limits.write_text(LIMITS_TOML)
    said = command.words("advise", trace, "--limits", limits, "--write", keys, "--html", page)
    assert "PartitionKey {partition_key}-{row_key:bucket4}: nothing throttled" in said
    assert "The trace covers 0:30 only" in said
    scheme = keys / "key-row-bucket4.toml"
    assert f"replay.keys={scheme}" in said
    assert "nothing is throttled" in command.words(
        "whatif", trace, "--keys", scheme, "--limits", limits
    )
    shown = page.read_text()
    assert "Today" in shown
    assert "Recommended" in shown


def test_an_empty_trace_is_refused(tmp_path: Path, command: Command) -> None:
    """There is nothing to say of it."""
    path = tmp_path / "app.parquet"
    with TraceWriter(path, TraceHead(started_ms=0, source="watch")):
        pass
    assert "has no readable operation" in command.refused("advise", path)


@pytest.mark.parametrize("asked", ["trace", "whatif", "advise"])
def test_a_trace_of_a_far_future_is_refused_with_the_reason(
    asked: str, tmp_path: Path, command: Command
) -> None:
    """By every command that reads it."""
    rows = [traced(Kind.UPSERT_MERGE, "p", "r", at_ms=4_200_000_000_000 + at) for at in range(9)]
    path = trace_of(tmp_path / "future.parquet", rows).path
    said = command.refused(asked, path)
    assert "9 operations in damaged parts cannot be read (an instant is before 1970" in said


def test_fields_that_are_wrong_are_refused_all_at_once(tmp_path: Path, command: Command) -> None:
    """Each mistake has its sentence."""
    given = ("--fields", "tenant={a}", "--fields", "row_key={a}{b}")
    said = command.refused("advise", EXAMPLES / "hot-tenant" / "hot-tenant.parquet", *given)
    assert "write partition_key=TEMPLATE" in said
    assert "nothing shows where a ends" in said


def test_what_is_said_of_no_table_is_refused(tmp_path: Path, command: Command) -> None:
    """Rows of a table, and parts of keys, that the trace does not have."""
    path = recorded("even load", tmp_path)
    assert "has no table 'orders'" in command.refused("advise", path, "--rows", "orders=5")
    said = command.refused("advise", path, "--fields", "row_key={tenant}_{day}")
    assert "--fields row_key: it matches fewer than half of the keys" in said


def test_schemes_of_equal_names_are_files_of_their_own() -> None:
    """Two tables may need the same keys."""
    proposal = ProposalPart(name="key-row", idea="", partition_key="", row_key="", scheme="")
    change = TableAdvicePart(
        table="Orders", operations=1, answer=KeyAnswer.CHANGE, headline="", proposals=(proposal,)
    )
    found = AdviceRecord(
        trace="t", operations=2, seconds=1, rate=1, limits="published", tables=(change,)
    )
    assert scheme_files(found) == [[("key-row.toml", "")]]
    found = found.model_copy(
        update={"tables": (change, change.model_copy(update={"table": "Log"}))}
    )
    assert scheme_files(found) == [[("Orders-key-row.toml", "")], [("Log-key-row.toml", "")]]
    given = Given("t", "published", rows=("--rows", "9"), folder="keys")
    said = commands(found, given)
    assert sum("replay.keys=keys/Orders-key-row.toml" in one for one in said) == 1
    assert ["--rows 9" in one for one in said if " whatif " in one] == [True, True]


def test_a_page_does_not_replace_the_trace_that_is_read(tmp_path: Path, command: Command) -> None:
    """A recording cannot be made again."""
    path = tmp_path / "app.parquet"
    path.write_bytes(b"recorded")
    assert "name another file" in command.refused("advise", path, "--html", path)


@pytest.mark.parametrize("factor", [0.5, 0.1])
def test_slowed_limits_decide_about_slower_traffic_as_the_limits_do(
    factor: float, tmp_path: Path
) -> None:
    """A replay at a speed that the machine can send is of the same question."""
    trace = Trace(recorded("hot tenant", tmp_path))

    def throttled(limits: GatewayLimits, rate: float) -> float:
        found = what_if(trace, [], limits, name="", limits_name="", rate=rate)
        return found.schemes[0].once.ratio

    whole = throttled(LIMITS, 2.0)
    assert whole > 0.1
    assert throttled(slowed(LIMITS, factor), 2.0 * factor) == pytest.approx(whole, rel=0.02)


def test_a_replay_is_no_faster_than_a_small_machine_sends() -> None:
    """300 operations/s; slower traffic is replayed at the asked rate."""
    assert replay_speed(1000, 10.0, 20.0) == 3.0
    assert replay_speed(1000, 100.0, 20.0) == 20.0


def test_queries_over_several_partitions_are_not_the_hottest_partition(tmp_path: Path) -> None:
    """Which partitions they read is not known, so that what is measured is a lower bound."""
    rows = [traced(Kind.INSERT, "p", f"r{place}", at_ms=place) for place in range(9)]
    trace = trace_of(tmp_path / "few.parquet", rows)
    found = what_if(trace, [], GatewayLimits(), name="", limits_name="", rate=1, version="")
    over, single = with_partitions(kept(), [WHOLE_TABLE, "p"]).partitions
    record = kept().model_copy(update={"partitions": (over, altered(single, entities=1))})
    measured = beside(found.schemes[0], record)
    assert measured.hottest[1] == 1 / record.counts.entities
    assert measured.row[-1].startswith("≥")
    assert not beside(found.schemes[0], kept()).at_least
