"""What a gateway's page tells a run: moves, splits, and what is provisioned."""

from __future__ import annotations

import json
from typing import cast

import pytest

from harness.gateway.limits import GatewayLimits, RequestUnitLimits
from harness.gateway.process import GatewayProcess
from harness.measure.counts.redaction import Aliases
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.model.services.queues import QUEUE_GATEWAY
from harness.model.services.storage import GATEWAY
from harness.model.target import Throughput
from harness.profile.profile_loader import resolve
from harness.swarm.master.rehearsal import Rehearsal, provisioned
from tests.support.locust_process import ROOT

ALIASES = Aliases(b"secret")
KEPT = ROOT / "tests/golden/run-v1-cosmos.json"


class Page:
    """A gateway that has only its page: moves of the run, and one of somebody else's table."""

    limits = GatewayLimits()

    def counters(self) -> str:
        move = {"at_s": 103.0, "until_s": 105.0, "partition_key": "p", "from_server": 0}
        tables = ("Run", "RunByTag", "theirs")
        moves = [{**move, "table": table, "to_server": 1} for table in tables]
        return json.dumps({"counts": [], "moves": moves})


@pytest.mark.parametrize(
    ("name", "keys"),
    [(str, ["p", "ByTag/p"]), (ALIASES, [ALIASES("p"), f"ByTag/{ALIASES('p')}"])],
    ids=["plain", "redacted"],
)
def test_a_moved_partition_has_the_name_of_its_counts(name: type[str], keys: list[str]) -> None:
    """Its key stands behind the suffix of its table, and `--redact-keys` replaces it alike."""
    rehearsal = Rehearsal(cast(GatewayProcess, Page()), GATEWAY, "Run", ["", "ByTag"], name)
    rehearsal.begin(100.0)
    rehearsal.end()
    enforced = rehearsal.enforced()
    assert enforced is not None
    moves = enforced.moves
    assert [move.key for move in moves] == keys
    assert {(move.start_s, move.offline_s) for move in moves} == {(3.0, 2.0)}


def test_moves_are_seen_while_the_run_goes_on() -> None:
    """A page that follows the run shows a move before the load ends."""
    rehearsal = Rehearsal(cast(GatewayProcess, Page()), GATEWAY, "Run", [""], str)
    before = rehearsal.enforced()
    rehearsal.follow()
    after = rehearsal.enforced()
    assert before is not None
    assert after is not None
    # One in a table of the run, and not in the others.
    assert (len(before.moves), len(after.moves)) == (0, 1)


@pytest.mark.parametrize(
    "page",
    [
        *("", "[]", "{}", '{"counts": [5], "moves": []}', '{"counts": [], "moves": [{}]}'),
        '{"counts": [], "moves": [{"table": "Run", "partition_key": "p", "at_s": "x"}]}',
    ],
)
def test_a_page_that_is_none_of_a_gateway_ends_no_run(page: str) -> None:
    """Another server may listen there by now: that its counts are unknown is a sentence."""
    served = FoundPage(page)
    rehearsal = Rehearsal(cast(GatewayProcess, served), GATEWAY, "Run", [""], str)
    rehearsal.begin(100.0)
    rehearsal.follow()
    rehearsal.end()
    assert rehearsal.enforced() is not None
    text = rehearsal.text(RunRecord.from_json(KEPT.read_text(encoding="utf-8")), full=True)
    assert "the counts of the gateway cannot be read: its page is invalid" in text


class FoundPage:
    """What answers where a gateway was found."""

    limits = GatewayLimits()

    def __init__(self, page: str) -> None:
        self.page = page

    def counters(self) -> str:
        return self.page


class QueuePage:
    """A gateway to queues: two of the run, and one of somebody else."""

    limits = GatewayLimits()
    asked = 0

    def counters(self) -> str:
        of = {"requests": self.asked, "exact": True, "result": "refused", "rule": "partition"}
        queues = ("run-mail", "run-orders", "theirs")
        rows = [{"table": "(queues)", "partition": name, **of, "sent": "503"} for name in queues]
        return json.dumps({"counts": rows, "moves": []})


def test_a_queue_has_the_name_of_its_partition() -> None:
    """Without that of the run before it; what others do with their queues counts nowhere."""
    page = QueuePage()
    rehearsal = Rehearsal(
        cast(GatewayProcess, page), QUEUE_GATEWAY, "run", ["-mail", "-orders"], str
    )
    rehearsal.begin(100.0)
    page.asked = 3
    rehearsal.end()
    enforced = rehearsal.enforced()
    assert enforced is not None
    assert enforced.refusals == {"partition": 6}
    text = rehearsal.text(RunRecord.from_json(KEPT.read_text(encoding="utf-8")), full=True)
    [refused] = (line.split() for line in text.splitlines() if " 503 " in line)
    assert refused == ["(other)", "503", "6", "0"]


def test_a_profile_learns_what_is_provisioned_at_the_stand_in() -> None:
    """A profile that does not say it gets the stand-in's throughput; one that fits stays."""
    limits = GatewayLimits(
        cosmos=RequestUnitLimits(provisioned_ru_per_s=900.0, physical_partitions=3)
    )
    plain, hot = resolve("single-partition"), resolve("cosmos-hot-key")
    known = provisioned(plain, limits).profile.endpoint.throughput
    assert known == Throughput(ru_per_s=900.0, physical_partitions=3)
    assert provisioned(plain, GatewayLimits()) is plain
    assert provisioned(hot, limits.provisioned(hot.profile.endpoint.throughput)) == hot


def test_a_profile_for_another_throughput_is_refused() -> None:
    """The stand-in of the web UI was provisioned for the profile that it was started with."""
    limits = GatewayLimits(
        cosmos=RequestUnitLimits(provisioned_ru_per_s=900.0, physical_partitions=3)
    )
    with pytest.raises(SetupError, match=r"is for 1,800 RU/s, .* with 900 RU/s over 3 physical"):
        provisioned(resolve("cosmos-hot-key"), limits)


class SplitPage:
    """A stand-in for Cosmos DB of which two physical partitions were split."""

    limits = GatewayLimits(
        cosmos=RequestUnitLimits(provisioned_ru_per_s=900.0, physical_partitions=2)
    )

    def counters(self) -> str:
        splits = [
            {"at_s": at_s, "number": 0, "new": count - 1, "count": count}
            for at_s, count in ((99.0, 3), (107.0, 4))
        ]
        return json.dumps({"counts": [], "moves": [], "splits": splits})


class LossyPage:
    """A stand-in that charged 7.15 RU for a write, and as much for one whose answer was lost."""

    limits = SplitPage.limits
    sent: tuple[str, ...] = ()

    def counters(self) -> str:
        row = {"table": "Run", "partition": "p", "requests": 1, "exact": True, "result": "passed"}
        counts = [{**row, "sent": sent, "request_units_hundredths": 715} for sent in self.sent]
        return json.dumps({"counts": counts, "moves": [], "splits": []})


def test_what_lost_answers_were_charged_is_a_line_of_its_own() -> None:
    """No client can know it: the sums of what was answered are compared without it."""
    page = LossyPage()
    rehearsal = Rehearsal(cast(GatewayProcess, page), GATEWAY, "Run", [""], str)
    rehearsal.begin(100.0)
    page.sent = ("204", "reset", "half")
    rehearsal.end()
    text = rehearsal.text(RunRecord.from_json(KEPT.read_text(encoding="utf-8")), full=True)
    lines = {line[:41].strip(): line[41:].split() for line in text.splitlines()}
    assert lines["request units"][0] == "7.15"
    assert lines["request units of lost answers"] == ["14.30"]


def test_a_row_of_an_earlier_run_that_was_folded_is_no_request_of_this_one() -> None:
    """A gateway that serves run after run has rows for some partitions only."""
    refused = {"requests": 3, "exact": True, "sent": "503", "result": "refused", "rule": "account"}
    before = [{"table": "Earlier", "partition": "p", **refused}]
    after = [{**before[0], "table": "", "partition": "(other)", "requests": 5}]
    page = FoundPage(json.dumps({"counts": before, "moves": []}))
    rehearsal = Rehearsal(cast(GatewayProcess, page), GATEWAY, "Run", [""], str)
    rehearsal.begin(100.0)
    page.page = json.dumps({"counts": after, "moves": []})
    rehearsal.end()
    enforced = rehearsal.enforced()
    assert enforced is not None
    assert enforced.refusals == {"account": 2}
    text = rehearsal.text(RunRecord.from_json(KEPT.read_text(encoding="utf-8")), full=True)
    [row] = (line.split() for line in text.splitlines() if " 503 " in line)
    assert row == ["(other)", "503", "2", "0"]


def test_splits_since_the_load_began_are_told() -> None:
    """The text below the summary names each split under load, and the share since the last."""
    rehearsal = Rehearsal(cast(GatewayProcess, SplitPage()), GATEWAY, "Run", [""], str)
    rehearsal.begin(100.0)
    rehearsal.end()
    assert rehearsal.enforced() is None
    record = RunRecord.from_json(KEPT.read_text(encoding="utf-8"))
    text = rehearsal.text(record, full=True)
    assert text.count("was split") == 1
    assert "physical partition 0 was split 7 s after the load began" in text
    assert "4 physical partitions with 225 RU/s each now" in text
