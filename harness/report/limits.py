"""The limits beside a chart of rates: published targets, and what a gateway enforced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.model.figures import listed, number
from harness.measure.record.record import RunRecord
from harness.model.operation import over_partitions


class ShownLimit(NamedTuple):
    """A limit of a partition or of the account: published, or enforced by a gateway.

    The limit of several accounts is that of all together.
    """

    value: float
    of: str
    enforced: bool = False


def limits_of(record: RunRecord) -> list[ShownLimit]:
    """The limits of the account, and before them those of the partition if there is only one.

    An enforced limit that equals the published target is one limit with it.
    """
    single = [part for part in record.partitions if not over_partitions(part.key)]
    alone = len(single) == 1 and record.partitions_folded is None
    whole = "all accounts" if record.accounts else "account"
    targets = {"partition": single[0].target if alone else None, whole: record.account.target}
    enforced: dict[str, float | None] = dict.fromkeys(targets)
    if (part := record.enforced) is not None and part.limits:
        enforced["partition"] = part.partition_per_s if alone else None
        enforced[whole] = part.account_per_s
    found = []
    for of, target in targets.items():
        same = target is not None and enforced[of] == target
        if target is not None:
            found.append(ShownLimit(target, f"{of}, enforced" if same else of))
        if (held_to := enforced[of]) is not None and not same:
            found.append(ShownLimit(held_to, of, enforced=True))
    return found


def above_words(limits: Sequence[ShownLimit]) -> str:
    """A sentence about limits that are not drawn; empty without such limits."""
    groups = []
    for word, enforced in (("target", False), ("enforced limit", True)):
        named = [f"{number(one.value)} ({one.of})" for one in limits if one.enforced == enforced]
        if named:
            groups.append(f"{word}{'s' if len(named) > 1 else ''} {listed(named)}")
    verb = "is" if len(limits) == 1 else "are"
    return f"{', and '.join(groups)} {verb} above the range of this chart" if groups else ""
