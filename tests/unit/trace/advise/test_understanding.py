"""Keys are taken apart into named parts, which a key scheme can use."""

from __future__ import annotations

import re

import pytest

from harness.trace.advise.candidates import candidates
from harness.trace.advise.understanding import fields_of, understood

TENANTS = [(f"tenant-{one % 7}_2026-11", f"order-{one:05}_line-{one % 3}") for one in range(200)]


def test_a_part_is_named_by_the_word_before_it_or_by_what_it_is() -> None:
    """The patterns split every key, and the parts that differ are named."""
    found = understood([*TENANTS, ("tenant-1_2026-12", "order-00007_line-1")])
    assert [part.name for part in found.parts] == ["tenant", "date", "order", "line"]
    assert found.patterns["partition_key"] == "tenant-(?P<tenant>[0-9]+)_(?P<date>.+)"


def test_a_key_of_another_layout_leaves_the_whole_key_as_a_part() -> None:
    """The hot tenant may be the one with another name: it must not keep its key."""
    found = understood([*TENANTS, *((f"contoso{one}", "order-1_line-1") for one in "abc")])
    assert [part.name for part in found.of(row=False)] == ["partition_key"]


def test_rows_of_several_layouts_have_a_common_beginning() -> None:
    """An order and its lines; a PartitionKey is a part itself then."""
    keys = [
        (tenant, f"order-{one:05}{end}")
        for one in range(50)
        for tenant in ("a-1", "b")
        for end in ("", "-line-1", "-line-2")
    ]
    found = understood(keys, [("b", ("order-00001", "order-00001-line-1"))])
    assert [part.name for part in found.parts] == ["partition_key", "order"]
    assert found.patterns == {"row_key": "order-(?P<order>[0-9]{5}).*"}
    assert found.parts[1].tied()


def test_what_differs_within_a_transaction_is_not_tied() -> None:
    """Rows of one order are written together; their lines differ."""
    together = [("tenant-1_2026-11", ("order-00001_line-0", "order-00001_line-1"))]
    order, line = understood(TENANTS, together).of(row=True)
    assert order.tied()
    assert not line.tied()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("partition_key={customer}_{month}", ["customer", "month"]),
        (r"partition_key=(?P<kind>\w+)-(?P<rest>.*)", ["kind", "rest"]),
    ],
)
def test_fields_override_what_is_found(given: str, names: list[str]) -> None:
    """A template, or a regular expression with named groups."""
    found = understood(
        [*TENANTS, ("user-1_2026-12", "order-00007_line-1")], (), dict([fields_of(given)])
    )
    assert [part.name for part in found.of(row=False)] == names


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("tenant={a}", "write partition_key=TEMPLATE or row_key=TEMPLATE"),
        ("row_key={a}{b}", "nothing shows where a ends"),
        ("row_key={a", "a brace has no partner"),
        ("row_key={1}", "is no name of a field"),
        ("row_key=plain", "names no field"),
        ("row_key=(?P<a>", "is no regular expression"),
    ],
)
def test_a_wrong_template_is_refused_with_a_sentence(given: str, said: str) -> None:
    """The message repeats the template and names the mistake."""
    with pytest.raises(ValueError, match=re.escape(said)):
        fields_of(given)


@pytest.mark.parametrize("queries", [False, True])
def test_no_row_is_a_partition_of_its_own_where_partitions_are_read(queries: bool) -> None:
    """Rows of a room that begin with an instant, of which the newest are read."""
    rows = [("room-1", f"{8_000_000_000_000 - 977 * one:013}_x") for one in range(200)]
    tried = candidates(understood(rows), "", transactions=False, queries=queries)
    alone = {one.partition_key for one in tried if ":" not in one.partition_key}
    assert bool(alone) is not queries


@pytest.mark.parametrize("key", ["2026-11-27", "2026-11-27_{tenant}", "{tenant}-2026"])
def test_what_all_keys_have_in_common_is_in_the_new_ones(key: str) -> None:
    """Rows of another day, which the trace does not show, may have the same RowKeys."""
    rows = [(key.format(tenant="abcde"[one % 5]), f"{one % 50:04}-x") for one in range(200)]
    tried = candidates(understood(rows), "", transactions=False, queries=False)
    assert len(tried) > 10
    assert all("{partition_key}" in one.partition_key + one.row_key for one in tried)
