"""Charges in request units: the published figures, and what holds for every size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import Kind
from harness.model.request_units import (
    QUERY_PAGE,
    READ_CHARGES,
    RU,
    WRITE_CHARGES,
    charge,
    charge_text,
    hundredths,
)

KB = 1024
SIZES = st.integers(min_value=0, max_value=5_000_000)


@pytest.mark.parametrize(("kb", "charged"), READ_CHARGES)
def test_a_point_query_costs_the_published_charge(kb: int, charged: int) -> None:
    """A point query of a published size costs the published charge; one of 1 KB costs 1 RU."""
    assert charge(Kind.POINT_QUERY, kb * KB) == charged
    assert charge(Kind.POINT_QUERY, KB) == RU


@pytest.mark.parametrize(("kb", "charged"), WRITE_CHARGES)
def test_a_write_costs_the_published_charge(kb: int, charged: int) -> None:
    """Inserts and deletes of a published size cost the published charge, updates twice as much."""
    assert charge(Kind.INSERT, kb * KB) == charge(Kind.DELETE, kb * KB) == charged
    assert charge(Kind.UPDATE_REPLACE, kb * KB) == 2 * charged


def test_indexed_properties_cost_what_is_published() -> None:
    """A 1 KB entity with 10 properties costs 2 RU more, as in the published example."""
    assert charge(Kind.INSERT, KB, properties=10) == charge(Kind.INSERT, KB) + 2 * RU


def test_an_upsert_costs_what_it_does() -> None:
    """An upsert costs as much as the insert or the update that it turns out to be."""
    for upsert in (Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE):
        assert charge(upsert, KB) == charge(Kind.INSERT, KB)
        assert charge(upsert, KB, replaces=True) == charge(Kind.UPDATE_MERGE, KB)


def test_a_query_is_charged_for_what_it_asks_returns_and_scans() -> None:
    """A query pays for each physical partition, each returned entity, and a little for the rest."""
    assert charge(Kind.QUERY, 0) == QUERY_PAGE
    assert charge(Kind.QUERY, 0, physical=3) == 3 * QUERY_PAGE
    assert charge(Kind.QUERY, 5 * KB, scanned=5, returned=5) == QUERY_PAGE + 5 * RU
    # The published scan of 60,951 entities costs 4,059.95 RU; ours is within 10 % of it.
    assert charge(Kind.QUERY, 510, scanned=60_951, returned=7) == pytest.approx(405_995, rel=0.1)


@given(
    kind=st.sampled_from([Kind.POINT_QUERY, *(kind for kind in Kind if kind.part)]),
    sizes=st.tuples(SIZES, SIZES),
)
def test_a_larger_entity_never_costs_less(kind: Kind, sizes: tuple[int, int]) -> None:
    """Charges are positive and grow with the size."""
    small, large = sorted(sizes)
    assert 0 < charge(kind, small) <= charge(kind, large)


def test_a_transaction_has_no_charge_of_its_own() -> None:
    """The charge of a transaction is that of its parts: asking for its own is refused."""
    with pytest.raises(ValueError, match="each of its parts"):
        charge(Kind.TRANSACTION, KB)


@given(st.integers(min_value=0, max_value=10**10))
def test_every_charge_survives_the_header(charged: int) -> None:
    """A charge that is written as the header states it is read back exactly."""
    assert hundredths(charge_text(charged)) == charged


@pytest.mark.parametrize(
    ("text", "charged"),
    [("1", 100), (" 2.8499999999999996 ", 285), ("0", 0), ("1e2", 10_000), ("4.955", 496)],
)
def test_the_header_of_the_service_is_read(text: str, charged: int) -> None:
    """The service may state more than two digits; the charge is rounded."""
    assert hundredths(text) == charged


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-1", "1e99", "1,5"])
def test_what_is_no_charge_is_not_read(text: str) -> None:
    """A header that states no charge gives None instead of a figure."""
    assert hundredths(text) is None
