"""The result of a run as one JSON object, for scripts: what a shell would otherwise parse."""

from __future__ import annotations

import json

from harness.measure.record.record import RunRecord
from harness.report.headline import headline
from harness.report.passing import passing_of
from harness.report.sentences import alarms, hottest, next_step


def result_json(record: RunRecord, path: str) -> str:
    """Verdict, conditions and the main figures of ``record``, which is kept at ``path``, in a line.

    Rates are entities/s of the measured window, shares are of 1. ``passed`` is null where the run
    has no conditions, or does not decide them. ``hottest`` is null without a partition of its own.
    """
    verdict, passing, hot = record.verdict, passing_of(record), hottest(record)
    content = {
        "run": record.run_id,
        "profile": record.profile.get("name"),
        "record": path,
        "exit_code": record.exit_code,
        "verdict": verdict.result,
        "limited_by": verdict.limited_by,
        "headline": headline(record),
        "sentence": verdict.whole,
        "next_step": next_step(record),
        "alarms": alarms(record),
        "passed": None if passing is None or passing.tone == "warn" else passing.tone == "good",
        "conditions": [
            part.model_dump(include={"text", "value", "passed", "note"})
            for part in record.conditions
        ],
        "entities_per_s": record.account.entities_per_s.mean,
        "throttled_ratio": record.throttled_ratio,
        "hottest": hot and {"partition": hot.key, "entities_per_s": hot.entities_per_s.mean},
    }
    return json.dumps(content, ensure_ascii=False)
