"""The predicted shares of the load beside those that a run measured."""

from __future__ import annotations

import dataclasses

from harness.measure.record.findings import PredictionPart
from harness.measure.record.measured import ABOUT
from harness.measure.record.record import RunRecord, share_sign
from harness.model.figures import percent
from harness.profile.checks.prediction import KeyRanges
from harness.report.limits import limited_rates
from harness.report.names import partition_name


@dataclasses.dataclass(frozen=True, slots=True)
class Predicted:
    """The predicted and the measured share of the load, of a partition or of a range of keys.

    The measured share is None where the record does not show it; ``sign`` is that of a bound.
    """

    what: str
    predicted: float
    measured: float | None
    sign: str = ""

    @property
    def found(self) -> str:
        """The measured share, as text."""
        known = self.measured is not None
        return f"{percent(self.measured or 0.0, self.sign)} measured" if known else "not known"

    @property
    def sentence(self) -> str:
        return f"{self.what}: {percent(self.predicted)} predicted, {self.found}"


def predicted_shares(record: RunRecord) -> tuple[Predicted, ...]:
    """The shares predicted from mix and keys, and the measured shares of the same keys.

    They are of request units where the service charges them, else of entities. The share of a range
    is known only where the record counts all partitions separately.
    """
    prediction, units = record.prediction, record.request_units
    if prediction is None or (record.endpoint.service.charges and units is None):
        return ()
    everything = (record.account.entities_per_s if units is None else units.per_s).mean
    if everything <= 0:
        return ()
    parts = {part.key: part for part in record.partitions if not part.partition.whole_table}
    measured = {key: limited_rates(part).mean / everything for key, part in parts.items()}
    shares = []
    if hot := prediction.hottest:
        name = f"partition {partition_name(hot)}"
        sign = share_sign(record, parts.get(hot))
        shares.append(Predicted(name, prediction.hottest_share, measured.get(hot), sign))
    place = prediction.hottest_range
    if place is not None and prediction.range_count > 1:
        ranges = KeyRanges(prediction.ranges)
        inside = [key for key in parts if ranges.of(key) == place]
        known = (
            None if record.partitions_folded is not None else sum(map(measured.__getitem__, inside))
        )
        signs = {share_sign(record, parts[key]) for key in inside} - {""}
        sign = signs.pop() if len(signs) == 1 else ABOUT * bool(signs)
        name = f"keys {range_words(prediction, place)}"
        shares.append(Predicted(name, prediction.hottest_range_share, known, sign))
    return tuple(shares)


def range_words(prediction: PredictionPart, place: int) -> str:
    """The first and the last key of a range of a prediction."""
    first, last = prediction.ranges[place]
    return first if first == last else f"{first} to {last}"
