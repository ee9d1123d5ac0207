"""The predicted share of the load beside the measured share, of the hottest keys."""

from __future__ import annotations

import dataclasses

from harness.measure.figures import percent
from harness.measure.record.record import RunRecord
from harness.report.names import partition_name
from harness.workload.prediction import KeyRanges, Prediction


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """A predicted share of the load beside the measured one.

    Attributes:
        what: The partition or the range of keys.
        predicted: From 0 to 1.
        measured: From 0 to 1; None where the record does not show it.
    """

    what: str
    predicted: float
    measured: float | None

    @property
    def sentence(self) -> str:
        """Both shares."""
        measured = "not known" if self.measured is None else percent(self.measured)
        return f"{self.what}: {percent(self.predicted)} predicted, {measured} measured"


def predicted_shares(record: RunRecord) -> tuple[Predicted, ...]:
    """The shares predicted from mix and keys beside the measured shares of the same keys."""
    part = record.prediction
    return () if part is None else beside(Prediction(**part.model_dump()), record)


def beside(prediction: Prediction, record: RunRecord) -> tuple[Predicted, ...]:
    """A prediction beside the measured window of a run.

    The share of a range is known only where the record counts all partitions separately.
    """
    everything = record.account.entities_per_s.mean
    if everything <= 0:
        return ()
    rates = {part.key: part.entities_per_s.mean for part in record.partitions}
    shares = []
    if prediction.hottest:
        rate = rates.get(prediction.hottest)
        shares.append(
            Predicted(
                what=f"partition {partition_name(prediction.hottest)}",
                predicted=prediction.hottest_share,
                measured=None if rate is None else rate / everything,
            )
        )
    place = prediction.hottest_range
    if place is not None and prediction.range_count > 1:
        ranges = KeyRanges(prediction.ranges)
        inside = sum(rate for key, rate in rates.items() if ranges.of(key) == place)
        shares.append(
            Predicted(
                what=f"keys {range_words(prediction, place)}",
                predicted=prediction.hottest_range_share,
                measured=inside / everything if record.partitions_folded is None else None,
            )
        )
    return tuple(shares)


def range_words(prediction: Prediction, place: int) -> str:
    """A range of keys of a prediction: its first key and its last."""
    first, last = prediction.ranges[place]
    return first if first == last else f"{first} to {last}"
