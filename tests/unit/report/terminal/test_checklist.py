"""The checklist of a run in the terminal."""

from __future__ import annotations

import pytest

from harness.measure.record.origin import ClientPart, WatchedPart
from harness.model.operation import FOLDED
from harness.profile.checks.recorded import seen_in
from harness.profile.practices.checklist import findings_of
from harness.report.sentences import application_setup
from harness.report.terminal.checklist import Checked, check_text, facts_of
from harness.report.terminal.page import Page
from tests.support.evidence import evidence, recorded, scanned
from tests.support.records import altered, kept

RECORD = kept()


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"forbidden": 9}, "no entity was counted: nothing succeeded"),
        ({"forbidden": 9, "success": 1}, "no entity was counted\n"),
    ],
)
def test_a_run_without_entities_has_no_hottest_partition(
    outcomes: dict[str, int], said: str
) -> None:
    """It has no first limit either: a share of nothing would be 0%."""
    counts = altered(RECORD.counts, entities=0)
    parts = tuple(altered(part, entities=0) for part in RECORD.partitions)
    record = altered(RECORD, counts=counts, partitions=parts, outcomes=outcomes)
    checked = Checked(name="run", question="", seen=seen_in(record))
    shares = check_text(checked, [], Page(width=100)).partition("0 applicable")[0]
    assert said in shares
    assert "hottest" not in shares
    assert "first limit" not in shares


def test_the_share_of_a_partition_has_the_sign_of_a_bound() -> None:
    """In the figures and in the practice, as in the report of the run."""
    record = recorded(evidence(scanned(("p0", "p1"), estimated=True)))
    checked = Checked(name="run", question="", seen=seen_in(record))
    text = check_text(checked, findings_of(checked.seen), Page(width=1000))
    assert ": ~50%" in text
    assert "Partition 'p0' takes ~50% of the load" in text


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        (("", "a", "b"), "3 clients; 50% of the requests from one of them"),
        (("a",), "1 client"),
        (("a", FOLDED), "more than 1 client; 50% of the requests from one of them"),
    ],
)
def test_clients_are_those_of_the_report(agents: tuple[str, ...], said: str) -> None:
    """User agents of all requests, also of those about tables."""
    requests = 2 * (len(agents) > 1) or 1
    clients = tuple(ClientPart(user_agent=one, requests=2) for one in agents)
    watched = WatchedPart(requests=2 * requests, clients=clients)
    assert ("clients", said) in facts_of(altered(RECORD, watched=watched))


def test_clients_that_are_summed_up_are_no_client() -> None:
    """However many requests all of them sent."""
    sent = {FOLDED: 6, "a": 2, "b": 1, "c": 1, "d": 0}
    clients = tuple(ClientPart(user_agent=one, requests=count) for one, count in sent.items())
    watched = WatchedPart(requests=10, clients=clients)
    record = altered(RECORD, watched=watched)
    said = "more than 4 clients; 20% of the requests from one of them"
    assert ("clients", said) in facts_of(record)
    shown = [text for _, text in application_setup(record, watched)]
    first = shown.index("2 a")
    assert shown[first : first + 4] == ["2 a", "1 b", "1 c", "and at least 2 more clients"]
