"""Which keys are better."""

from __future__ import annotations

import dataclasses

import pytest

from harness.measure.record.whatif import PricePart
from harness.measure.verdict.ranking import Standing, breaks, ranks

WHOLE = Standing(throttled=0.1, billable=1000, scanned=1000, hottest=100.0)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"throttled": 0.09}, [2, 1]),
        ({"throttled": 0.1005}, [1, 1]),
        ({"throttled": 0.09, "billable": 9000}, [2, 1]),
        ({"billable": 1005}, [1, 1]),
        ({"billable": 995, "scanned": 5000}, [1, 2]),
        ({"billable": 900, "scanned": 5000}, [2, 1]),
        ({"billable": 900, "billable_most": 1000, "scanned": 5000}, [1, 2]),
        ({"scanned": 900, "hottest": 200.0}, [2, 1]),
        ({"hottest": 98.0}, [2, 1]),
        ({"throttled": 0.0, "breaks": ("it loses an entity",)}, [1, 0]),
    ],
)
def test_the_better_keys_come_first(other: dict[str, object], expected: list[int]) -> None:
    """By throttling, then billable requests, entities scanned and the hottest partition; what
    breaks the application has no rank, and what is equal within noise or by chance shares one."""
    assert ranks([WHOLE, dataclasses.replace(WHOLE, **other)]) == expected  # type: ignore[arg-type]


def test_ranks_count_equals() -> None:
    """Behind two equals follows the third."""
    worse = dataclasses.replace(WHOLE, throttled=0.5)
    assert ranks([worse, WHOLE, WHOLE]) == [3, 1, 1]
    assert ranks([]) == []


def test_what_breaks_an_application_is_said() -> None:
    """Each reason is a clause of its own."""
    said = breaks(
        PricePart(operations=10, unmatched=6, transactions=4, split=1, collisions=1, refused=2)
    )
    assert said == (
        "the service would refuse 25% of the transactions, whose entities would be in several "
        "partitions",
        "1 entity would be lost, because it has the keys of another one",
        "the service would refuse the keys of 2 operations",
        "60% of the operations keep their keys, because no pattern matches them",
    )
    [said_once] = breaks(PricePart(operations=10, unmatched=3, unknown=3))
    assert said_once == "the new keys of 60% of the operations are not known"
