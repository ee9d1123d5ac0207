"""The shares of the load on partitions, calculated from the fields of the keys.

Every field is drawn by a distribution of its own, so that the probability of a partition is a
product. The actions of the mix say how many entities go there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from harness.measure.record.findings import PredictionPart
from harness.model.partition import Partition
from harness.profile.checks.prediction import KeyRanges, thinned
from harness.profile.settings.schema import Profile
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action
from harness.workload.queries import Queries, QueryShape


@dataclasses.dataclass(slots=True)
class _Amounts:
    """Entities of a mix, weighted: those of existing rows, of new rows, and over partitions.

    Attributes:
        by_rows: Further entities of existing rows, by the number of rows in a partition.
    """

    existing: float = 0.0
    new: float = 0.0
    over: float = 0.0
    by_rows: Callable[[int], float] = lambda rows: 0.0


def exact_shares(profile: Profile) -> PredictionPart | None:
    """The prediction for a mix; None where it cannot be calculated, as for a scenario.

    A delete takes a row that was inserted before, so that its partition is that of an insert.
    """
    if not profile.mixed:
        return None
    design = profile.design
    read, new = design.shares(), design.new_shares()
    unordered = design.row_order == 0 or not design.in_order
    if read is None or len(design.tables) > 1 or (profile.query.by_key_bounds and unordered):
        return None
    found = _amounts(profile, design)
    if new is None and found.new and not design.in_order and not design.hashed:
        # Where new partitions come in the order of keys is found by making them.
        return None
    amounts = [
        share * (found.existing + found.by_rows(design.rows.of(number)))
        for number, share in enumerate(read)
    ]
    if new is not None:
        for number, share in enumerate(new):
            amounts[number] += share * found.new
    total = sum(amounts) + found.over + (found.new if new is None else 0.0)
    names = [Partition("", design.partition_key(number)).name for number in range(design.count)]
    ranges = KeyRanges.over(thinned(names)[0])
    by_range = [0.0] * len(ranges.bounds)
    for name, amount in zip(names, amounts, strict=True):
        by_range[ranges.of(name) or 0] += amount
    if new is None and found.new:
        _place_new(design, found.new, ranges, by_range)
    hottest = max(range(design.count), key=amounts.__getitem__)
    hottest_range = max(range(len(by_range)), key=by_range.__getitem__)
    somewhere = amounts[hottest] > 0
    return PredictionPart(
        hottest=names[hottest] if somewhere else "",
        hottest_share=amounts[hottest] / total,
        ranges=ranges.bounds,
        hottest_range=hottest_range if by_range[hottest_range] > 0 else None,
        hottest_range_share=by_range[hottest_range] / total,
        over_partitions_share=found.over / total,
    )


def _amounts(profile: Profile, design: KeyDesign) -> _Amounts:
    found, weights = _Amounts(), profile.mix.weights()
    for action, weight in weights.items():
        found.existing += weight * action.existing
        found.new += weight * action.new
    entities = weights[Action.TRANSACTION] * profile.transaction.operations
    if all(profile.transaction.moving):
        found.new += entities
    else:
        found.existing += entities
    types = Queries(design, QueryShape(**profile.query.model_dump()), moving=False).types()
    asked = [(weights[action], query) for action, query in types.items() if weights[action]]
    inside = [(weight, query.entities) for weight, query in asked if not query.cross_partition]
    found.over = sum(weight * query.entities(0) for weight, query in asked if query.cross_partition)
    found.by_rows = lambda rows: sum(weight * entities(rows) for weight, entities in inside)
    return found


def _place_new(design: KeyDesign, amount: float, ranges: KeyRanges, by_range: list[float]) -> None:
    """Add the entities of new partitions: all to one range if keys grow, else to all evenly."""
    key = design.new(0, 0, 1).partition_key
    place = ranges.of(Partition("", key).name)
    if design.in_order and place is not None:
        by_range[place] += amount
        return
    for number in range(len(by_range)):
        by_range[number] += amount / len(by_range)
