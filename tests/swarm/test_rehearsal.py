"""The moves that a gateway's page has, as a record names them."""

from __future__ import annotations

import json
from typing import cast

import pytest

from harness.gateway.limits import GatewayLimits
from harness.gateway.process import GatewayProcess
from harness.measure.counts.redaction import Aliases
from harness.swarm.master.rehearsal import Rehearsal

ALIASES = Aliases(b"secret")


class Page:
    """A gateway that has only its page."""

    limits = GatewayLimits()

    def truth(self) -> str:
        move = {"at_s": 103.0, "until_s": 105.0, "partition_key": "p", "from_server": 0}
        moves = [{**move, "table": table, "to_server": 1} for table in ("Run", "RunByTag")]
        return json.dumps({"counts": [], "moves": moves})


@pytest.mark.parametrize(
    ("name", "keys"),
    [(str, ["p", "ByTag/p"]), (ALIASES, [ALIASES("p"), f"ByTag/{ALIASES('p')}"])],
    ids=["plain", "redacted"],
)
def test_a_moved_partition_has_the_name_of_its_counts(name: type[str], keys: list[str]) -> None:
    """Its key stands behind the suffix of its table, and `--redact-keys` replaces it alike."""
    rehearsal = Rehearsal(cast(GatewayProcess, Page()), "Run", ["", "ByTag"], name)
    rehearsal.begin(100.0)
    rehearsal.end()
    moves = rehearsal.enforced().moves
    assert [move.key for move in moves] == keys
    assert {(move.start_s, move.offline_s) for move in moves} == {(3.0, 2.0)}


def test_moves_are_seen_while_the_run_goes_on() -> None:
    """A page that follows the run shows a move before the load ends."""
    rehearsal = Rehearsal(cast(GatewayProcess, Page()), "Run", [""], str)
    assert rehearsal.enforced().moves == ()
    rehearsal.follow()
    assert len(rehearsal.enforced().moves) == 2
