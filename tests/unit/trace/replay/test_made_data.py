"""What the entities of a replay are filled with."""

from __future__ import annotations

import pytest

from harness.gateway.key_ranges import index_range
from harness.trace.operations import ASSUMED_PROPERTIES
from harness.trace.replay.operations import MadeData, continuation_filter, filter_for
from harness.workload.entity_factory import wire_bytes


@pytest.mark.parametrize("sent_bytes", [600, 1000, 5001, 100_000, 400_000])
def test_entities_have_the_properties_that_request_units_are_estimated_for(sent_bytes: int) -> None:
    """They have about the wanted size, and more properties only where one text cannot hold it."""
    made = MadeData("run").properties("p", "r", (), sent_bytes)
    assert wire_bytes("p", "r", made) == pytest.approx(sent_bytes, rel=0.1)
    assert len(made) == ASSUMED_PROPERTIES or sent_bytes > 100_000


def test_a_small_entity_has_fewer_properties() -> None:
    """Names and quotes of five would be larger than it."""
    assert len(MadeData("run").properties("p", "r", (), 120)) < ASSUMED_PROPERTIES


def test_a_filter_of_keys_that_narrows_nothing_is_of_a_made_property() -> None:
    """Because each row has a key of its own, which tells no share of the rows."""
    made = MadeData("run").properties("p", "r", ("RowKey", "Price"), 500)
    assert made["RowKeyGroup"] == made["Price"]
    assert filter_for(("RowKey", "Price"), 1, 4) == "RowKeyGroup lt 250 and Price ge 0"
    rest = continuation_filter(("o'clock", "r"))
    assert index_range(f"PartitionKey ge 'o''clock' and {rest}").first == ("o'clock", "")
