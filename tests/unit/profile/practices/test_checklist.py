"""The practices: each is offended by a profile that does so, and by none that does not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.figures import percent
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation
from harness.model.services.blobs import AZURITE_BLOBS
from harness.model.services.storage import AZURITE, GATEWAY, STORAGE
from harness.profile.checks.observed import TableKeys, matching_of, observe
from harness.profile.checks.seen import Seen
from harness.profile.practices.checklist import PRACTICES, findings_of, of_severity
from harness.profile.practices.keys import refused_keys
from harness.profile.practices.practice import Severity
from tests.support.command import Command
from tests.support.profiles import look_of, profile_of, severity_of, shipped

OFFENDS, CONSIDER, FINE = Severity.OFFENDS, Severity.CONSIDER, Severity.FINE
SAMPLE = 600
"""Operations: enough for what is looked for here, and soon made."""
SPREAD: dict[str, Any] = {
    "fields.key.values": 20,
    "fields.key.prefix": "p",
    "keys.partition_key": "{key}",
    "keys.rows_per_partition": 50,
}


def seen_of(settings: dict[str, Any], **parts: Any) -> Seen:
    return observe(profile_of(settings, **parts), SAMPLE).seen()


def test_names_of_practices_differ() -> None:
    """A practice is found by its name."""
    names = [practice.name for practice in PRACTICES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("practice", PRACTICES, ids=lambda practice: practice.name)
def test_every_practice_names_who_says_so(practice: Any) -> None:
    """A document and a section ask for it; what advises otherwise only stands beside that."""
    assert any(not source.otherwise for source in practice.sources)
    assert all(source.section and source.says for source in practice.sources)


def test_documents_disagree_about_long_keys() -> None:
    """Over 512 characters it depends on the document, and only Azurite's tables refuse the run."""
    long = {"entity.size_bytes": 4096, "keys.partition_key": "p" * 512}
    seen, longer = seen_of(long), seen_of({**long, "keys.partition_key": "p" * 513})
    look, other = look_of("key-length", seen), look_of("key-length", longer)
    assert "disagree" not in look.why
    assert "The documents disagree whether the service takes it: 1,024" in other.why
    assert refused_keys(seen, AZURITE) is None
    assert refused_keys(longer, STORAGE) is None
    assert refused_keys(longer, AZURITE_BLOBS) is None
    assert "513 characters" in str(refused_keys(longer, GATEWAY))


def test_inserts_are_no_more_than_all_operations() -> None:
    """Rows of a transaction are one operation: a log in batches of 100 has 80 % of them."""
    seen = observe(shipped("log-in-tables"), SAMPLE).seen()
    look = look_of("append-only", seen)
    assert f"All inserts, {percent(seen.written / seen.operations)} of the operations" in look.why
    assert 0.7 < seen.written / seen.operations < 0.9


@pytest.mark.parametrize("name", ["date-key", "guid-partition-key", "tiny-partitions"])
def test_where_documents_disagree_both_are_cited(name: str) -> None:
    """A date, a GUID and small partitions are advised by one and warned of by another."""
    (practice,) = [practice for practice in PRACTICES if practice.name == name]
    assert {source.otherwise for source in practice.sources} == {True, False}


SCENARIO = """
from harness.model.operation import Kind
from harness.workload.scenarios.scenario import Scenario


class {name}(Scenario):
    actions = {{"look": 1}}

    def loading(self):
        return (self.insert(f"user-{{n}}", "row", {{}}) for n in range(20))

    def look(self, rng):
        key = f"user-{{rng.randrange(20)}}"
        yield self.get(key, "row")
        yield {change}
"""


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ('self.merge(key, "row", {"Visits": 1})', OFFENDS),
        ('self.write(Kind.UPDATE_MERGE, key, "row", {"Visits": 1}, etag="*")', FINE),
        ('self.merge(key, "other", {"Visits": 1})', FINE),
        ('self.delete(key, "row")', FINE),
    ],
)
def test_a_users_own_scenario_is_looked_at_by_what_it_does(
    tmp_path: Path, change: str, severity: Severity
) -> None:
    """A read before a write of the same key is found in code too, but for what needs the read."""
    file = tmp_path / "own.py"
    file.write_text(SCENARIO.format(name="Own", change=change), encoding="utf-8")
    look = look_of("upsert", seen_of({}, scenario=f"{file}:Own"))
    assert look.severity is severity
    assert look.setting == f"scenario {file}:Own"


def test_a_scenario_that_raises_is_bad_input(tmp_path: Path, command: Command) -> None:
    """The mistake in a user's own file is told with its file and line, and exit code 2."""
    file = tmp_path / "broken.py"
    text = SCENARIO.format(name="Broken", change="None").replace('f"user-{rng', 'f"user-{ring')
    file.write_text(text, encoding="utf-8")
    of = ("--set", f"scenario={file}:Broken", "--set", "actions={}")
    line = 1 + text.splitlines().index('        key = f"user-{ring.randrange(20)}"')
    assert f"{file}:{line}: in look: NameError" in command.refused("check", "saas", *of)


def insert(partition_key: str) -> Operation:
    return Operation(
        kind=Kind.INSERT, partition_key=partition_key, row_key="r", properties={"Number": 1}
    )


@pytest.mark.parametrize(
    ("loaded", "created", "growth"),
    [
        ([f"k{n:03d}" for n in range(50)], [f"k{n:03d}" for n in range(50, 90)], 1),
        ([f"k{n:03d}" for n in range(50, 90)], [f"k{n:03d}" for n in range(49, 9, -1)], -1),
        ([f"k{n:03d}" for n in range(50)], ["k049"] * 40, 1),
        ([f"k{n:03d}" for n in range(50)], ["k000"] * 40, -1),
        ([f"k{n:03d}" for n in range(50)], ["k025"] * 40, 0),
        ([f"k{n:03d}" for n in range(50)], [f"k{n * 7 % 50:03d}" for n in range(40)], 0),
        ([f"k{n:03d}" for n in range(50)], [f"k{n * 17 % 50:03d}x" for n in range(40)], 0),
        ([], [f"k{n:03d}" for n in range(40)], 1),
        ([], ["k"] * 40, 0),
        (["k"], ["k"] * 40, 0),
        ([f"k{n:03d}" for n in range(50)], [f"k{n:03d}" for n in range(50, 60)], 0),
    ],
)
def test_growth_is_told_from_scatter(loaded: list[str], created: list[str], growth: int) -> None:
    """New rows at one end of key order are growth; at one inner place, scattered, or few not."""
    keys = TableKeys()
    for key in loaded:
        keys.load(key)
    for key in created:
        keys.add(insert(key))
    assert keys.growth == growth


@pytest.mark.parametrize(
    ("filter_text", "matching"),
    [
        (None, 500),
        ("Group lt 20", 10),
        ("Number ge 100 and Number lt 150", 50),
        ("Group lt 200 and Number ge 100 and Number lt 150", 10),
        ("Name eq 'x'", None),
        ("Group lt 20 and Name eq 'x'", None),
    ],
)
def test_what_a_filter_lets_through_is_known_of_the_harness_own(
    filter_text: str | None, matching: int | None
) -> None:
    """The properties that the harness fills tell the density; of others nothing is claimed."""
    query = Operation(
        kind=Kind.QUERY,
        partition_key=WHOLE_TABLE,
        filter=filter_text,
        key_range=KeyRange(entities=500, exact=True),
    )
    assert matching_of(query) == matching


def test_findings_come_worst_first() -> None:
    """What offends stands before what is to be considered, and that before what is fine."""
    findings = findings_of(seen_of({"keys.partition_key": "p0"}))
    order = [finding.severity for finding in findings]
    assert order == sorted(order, key=list(Severity).index)
    assert of_severity(findings, OFFENDS)


@pytest.mark.parametrize(("share", "said"), [(0.8, True), (1.0, False)])
def test_a_hot_row_hides_a_constant_key_only_if_nothing_else_is_loaded(
    share: float, said: bool
) -> None:
    """Another key spreads what is beside the row."""
    seen = dataclasses.replace(seen_of({"keys.partition_key": "p0"}), hot_row_share=share)
    assert (severity_of("constant-partition-key", seen) is not None) is said


def test_the_command_says_the_same_as_text_and_as_json(command: Command) -> None:
    """Both forms name each offended practice; JSON has the shares and every source."""
    arguments = ["check", "single-partition"]
    text = command(*arguments)
    content = json.loads(command(*arguments, "--json"))
    assert content["shares"]["hottest_share"] == 1.0
    assert content["partition_reaches_its_target_at_entities_per_s"] == 2000.0
    assert "constant-partition-key" in content["offended"]
    for finding in content["findings"]:
        assert finding["practice"] in text
        assert finding["sources"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "single-partition", "--strict"], 1),
        (["check", "key-spread", "--strict"], 0),
        (["check", "no-such-profile"], 2),
        (["check", "key-spread", "--set", "fields.key.values=0"], 2),
    ],
)
def test_exit_codes_of_the_command(arguments: list[str], code: int, command: Command) -> None:
    """Strict fails where something is offended; bad input is 2, with a sentence."""
    command(*arguments, code=code)
    assert bool(command.err) == (code == 2)


FEW = 60
"""Operations of a hundred lines each."""


def test_practices_of_tables_are_not_held_against_blobs() -> None:
    """Blobs have names in place of keys, no rows and no targets: what is left is about them."""
    looks = {}
    for name in ("log-in-blobs", "log-in-blobs-hashed", "log-in-tables"):
        seen = observe(shipped(name), FEW).seen()
        found = ((practice.name, practice.look(seen)) for practice in PRACTICES)
        looks[name] = {practice: look for practice, look in found if look is not None}
    about = {"blob-names", "blobs", "parallelism", "connections", "back-off"}
    assert set(looks["log-in-blobs"]) == set(looks["log-in-blobs-hashed"]) == about
    assert looks["log-in-blobs"]["blob-names"].severity is CONSIDER
    assert looks["log-in-blobs-hashed"]["blob-names"].severity is FINE
    said = " ".join(look.why + look.change for look in looks["log-in-blobs"].values())
    assert not {"key", "entit", "table", "target"} & {
        word for word in ("key", "entit", "table", "target") if word in said.lower()
    }
    assert "append-only" in looks["log-in-tables"]
    assert "blob-names" not in looks["log-in-tables"]
