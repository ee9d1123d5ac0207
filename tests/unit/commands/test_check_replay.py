"""``harness check`` of a replay: what the recorded traffic does, and what of it can be changed."""

from __future__ import annotations

import json
from pathlib import Path

from harness.profile.build.workload import read_trace
from harness.profile.profile_loader import resolve
from tests.support.command import Command
from tests.support.records import altered, kept

TRACE = Path(__file__).parents[3] / "examples" / "append-only-log" / "append-only-log.parquet"
REPLAY = f"replay.trace={TRACE}"


def findings(command: Command, *arguments: str) -> dict[str, tuple[str, str]]:
    """Severity and setting of each practice."""
    content = json.loads(command("check", *arguments, "--json"))
    return {one["practice"]: (one["severity"], one["setting"]) for one in content["findings"]}


def test_a_replay_is_told_what_it_can_change(command: Command) -> None:
    """Keys by a scheme, and the load; what the application did has no setting. Rows that the trace
    itself inserts were not there before, so that an append-only log is seen.
    """
    found = findings(command, "replay", "--set", REPLAY)
    assert found["append-only"] == ("offends", "replay.keys")
    assert found["projection"] == ("consider", "")
    assert found["connections"][0] == "fine"
    assert found["account-target"] == ("fine", "replay.speed")
    assert "entity-size" not in found
    assert "tiny-partitions" not in found
    settings = {setting.partition(".")[0] for _, setting in found.values() if setting}
    assert settings <= {"replay", "load", "retry", "session"}
    said = command.words("check", "replay", "--set", REPLAY)
    assert f"harness whatif {TRACE} --keys scheme.toml" in said


def test_the_record_of_a_replay_is_checked(tmp_path: Path, command: Command) -> None:
    """Its settings leave out what the trace holds, which stands elsewhere in the record."""
    named, _ = read_trace(resolve("replay", [REPLAY]))
    replay = named.profile.replay
    assert replay is not None
    settings = named.profile.model_dump(mode="json", exclude={"replay": {"found"}})
    record = altered(kept(), profile={"name": "replay", **settings}, replay=replay.found)
    path = tmp_path / "run.json"
    path.write_text(record.to_json(), encoding="utf-8")
    found = findings(command, "--record", str(path))
    assert found["hot-partition"][1] == "replay.keys"
    assert found["large-partitions"][0] == "untold"
