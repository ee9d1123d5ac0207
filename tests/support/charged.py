"""Hand-made snapshots of a service that charges request units."""

from __future__ import annotations

from collections.abc import Mapping

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Scope
from harness.model.target import Throughput
from tests.support.evidence import START
from tests.support.results import done

SECONDS = 10
THREE = Throughput(ru_per_s=18_000, physical_partitions=3)
UNKNOWN = Throughput()
SPREAD: dict[str, tuple[int, float]] = {f"p{number:02d}": (600, 0) for number in range(20)}
ALL_REFUSED: dict[str, tuple[int, float]] = dict.fromkeys(SPREAD, (880, 5))


def charged(rates: Mapping[str, tuple[int, float]], cap: int = 200) -> Snapshot:
    """Each key used so many RU/s in 20 operations, and had so many attempts a second refused.

    0.1 attempts a second are one in all.
    """
    ledger = Ledger(cap=cap)
    ledger.open_window(START, START + SECONDS)
    for second in range(SECONDS):
        at_s = float(START + second)
        busy = Attempt(
            status=429, sent_s=at_s, latency_s=0.1, scope=Scope.PARTITION, error_code="TooMany"
        )
        for key, (rate, refused) in rates.items():
            for number in range(20):
                ok = Attempt(status=204, sent_s=at_s, latency_s=0.004, request_charge=rate * 5)
                kind = Kind.QUERY if key == WHOLE_TABLE else Kind.UPSERT_MERGE
                first = second == 0 and number == 0
                few = refused < 1 and not first
                attempts = (busy, ok) if number < refused and not few else (ok,)
                asked = Operation(kind=kind, partition_key=key)
                ledger.add(done(asked, at_s, 0.004, attempts=attempts))
    return ledger.snapshot(start=START, end=START + SECONDS)
