"""The result of a run as one JSON object, for scripts: what a shell would otherwise parse."""

from __future__ import annotations

from harness.measure.record.findings import ConditionPart, RecordPart
from harness.measure.record.record import RunRecord
from harness.report.columns import has_rates
from harness.report.export.output import CommandOutput
from harness.report.headline import headline
from harness.report.passing import passing_of
from harness.report.sentences import alarms, hottest, next_step


class HottestPart(RecordPart):
    """The partition with the highest mean rate in the measured window."""

    partition: str
    entities_per_s: float


class RunOutput(CommandOutput):
    """Verdict, conditions and main figures of a run or a watch.

    Attributes:
        record: Path of its ``run.json``, which has every figure.
        exit_code: That of the run; a watch passes on a failure of its command.
        headline: The verdict in a few words; ``sentence`` has it with its reason.
        passed: None where the run has no conditions, or does not decide them.
        entities_per_s: Mean of the measured window; None where it did not open.
        throttled_ratio: Throttled attempts of all attempts.
        hottest: None without a partition of its own.
    """

    run: str
    profile: str | None
    record: str
    exit_code: int
    verdict: str
    limited_by: str
    headline: str
    sentence: str
    next_step: str | None
    alarms: tuple[str, ...]
    passed: bool | None
    conditions: tuple[ConditionPart, ...]
    entities_per_s: float | None
    throttled_ratio: float
    hottest: HottestPart | None


class RepeatsOutput(CommandOutput):
    """The runs of ``harness run --repeat``.

    Attributes:
        folder: Holds their folders; ``harness compare`` reads it.
        exit_code: The severest of all runs.
    """

    folder: str
    exit_code: int
    runs: tuple[RunOutput, ...]


def run_output(record: RunRecord, path: str, exit_code: int | None = None) -> RunOutput:
    """The result of ``record``, which is kept at ``path``."""
    verdict, passing, hot = record.verdict, passing_of(record), hottest(record)
    return RunOutput(
        run=record.run_id,
        profile=record.profile.get("name"),
        record=path,
        exit_code=record.exit_code if exit_code is None else exit_code,
        verdict=verdict.result,
        limited_by=verdict.limited_by,
        headline=headline(record),
        sentence=verdict.whole,
        next_step=next_step(record),
        alarms=tuple(alarms(record)),
        passed=None if passing is None or passing.tone == "warn" else passing.tone == "good",
        conditions=record.conditions,
        entities_per_s=record.account.entities_per_s.mean if has_rates(record) else None,
        throttled_ratio=record.throttled_ratio,
        hottest=None
        if hot is None
        else HottestPart(partition=hot.key, entities_per_s=hot.entities_per_s.mean),
    )
