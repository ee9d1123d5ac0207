"""Aliases for PartitionKeys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.redaction import Aliases
from harness.measure.verdict.conditions import parse_condition
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from tests.support.results import done

START = 1_700_000_000
keys = st.text(max_size=30).filter(lambda key: "/" not in key)


@given(keys, keys)
def test_an_alias_stands_for_one_key_in_every_run_with_the_secret(one: str, other: str) -> None:
    """Equal keys have equal aliases, different keys have not, and another secret gives others."""
    earlier, later, stranger = Aliases(b"secret"), Aliases(b"secret"), Aliases(b"other")
    assert earlier(one) == later(one)
    assert (earlier(one) == earlier(other)) is (one == other)
    assert (stranger(one) == earlier(one)) is (not one)


def test_an_empty_key_stays_empty() -> None:
    """As in a trace, so that both name the same partitions."""
    for prefixes in (False, True):
        alias = Aliases(b"secret", prefixes=prefixes)
        assert (alias(""), alias("Orders/")) == ("", "Orders/")


@given(keys, keys)
def test_aliases_keep_prefixes(one: str, other: str) -> None:
    """As many leading words are equal in two aliases as in their keys; separators stay."""
    alias = Aliases(b"secret", prefixes=True)
    assert (alias(one) == alias(other)) is (one == other)
    assert alias("ab-cd_1").count("-") == 1
    first, second = alias("2026-11-22|ann").split("|")
    assert alias("2026-11-22|bob").split("|")[0] == first
    assert alias("2025-11-22|ann").split("|")[1] != second
    assert alias("2026-11-22").split("-")[:2] == first.split("-")[:2]


def test_an_alias_is_a_valid_key() -> None:
    """A key of many words has an alias as a whole, since that of each word would be too long."""
    alias = Aliases(b"secret", prefixes=True)
    assert len(alias("-".join("a" * 500))) < 30


def test_tables_keep_their_names() -> None:
    """What is no PartitionKey is shown as it is."""
    alias = Aliases(b"secret")
    assert alias(WHOLE_TABLE) == WHOLE_TABLE
    assert alias(f"Orders/{WHOLE_TABLE}") == f"Orders/{WHOLE_TABLE}"
    assert alias("Orders/ann@example.org") == f"Orders/{alias('ann@example.org')}"


def test_no_key_is_left_in_a_snapshot() -> None:
    """Partitions and the edges of key ranges have aliases, and figures stay."""
    ledger = Ledger()
    for number in range(300):
        operation = Operation(
            kind=Kind.POINT_QUERY, partition_key=f"ann{number}@example.org", row_key="r"
        )
        ledger.add(done(operation, START, entities_returned=1))
    snapshot = ledger.snapshot(start=START, end=START + 1)
    redacted = Aliases(b"secret").snapshot(snapshot)
    assert "example.org" in repr(snapshot)
    assert "example.org" not in repr(redacted)
    assert redacted.counts == snapshot.counts
    assert redacted.entities_per_s == snapshot.entities_per_s


def test_no_key_is_left_in_a_failed_attempt() -> None:
    """PartitionKey and RowKey have aliases, what was said is gone, the rest stays for support."""
    alias = Aliases(b"secret")
    error = {
        "partition_key": "ann",
        "row_key": "bob",
        "status": 503,
        "message": "not for ann",
        "request_id": "r1",
    }
    assert alias.error(error) == {
        "partition_key": alias("ann"),
        "row_key": alias("bob"),
        "status": 503,
        "message": "",
        "request_id": "r1",
    }


def test_a_condition_is_told_of_the_alias() -> None:
    """Its text and what it is compared of have the alias, and it still says the same."""
    alias = Aliases(b"secret")
    condition = parse_condition('p99(service, partition="Orders/o\'ann \\"x\\"") < 50ms')
    redacted = condition.renamed(alias)
    assert redacted.name == alias(condition.name)
    assert "ann" not in redacted.text
    assert parse_condition(redacted.text) == redacted


def test_a_condition_of_no_partition_stays() -> None:
    """A name of an operation is no key."""
    for text in ('p99(service, op="insert") < 50ms', "throttled_ratio < 1%"):
        condition = parse_condition(text)
        assert condition.renamed(Aliases(b"secret")) == condition
