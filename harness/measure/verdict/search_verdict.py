"""The verdict of a run that searched for the highest sustainable rate: what its search found.

The steps above the limit are throttled or slow on purpose, so that the run as a whole says nothing.
"""

from __future__ import annotations

import dataclasses

from harness.measure.record.findings import SearchPart
from harness.measure.verdict.advice import Advice, on_endpoint, on_generator, on_keys, on_throttling
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import Verdict, VerdictResult
from harness.model.outcome import Scope, throttled_of

_LIMITS = {
    "client-limited": (VerdictResult.CLIENT_LIMITED, "generator"),
    "users": (VerdictResult.CLIENT_LIMITED, "users"),
    "latency": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "not-held": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "unfinished": (VerdictResult.INCONCLUSIVE, "unknown"),
}


def judge_search(verdict: Verdict, search: SearchPart, evidence: Evidence) -> Verdict:
    """The verdict, told by the search.

    Args:
        verdict: Of the run as a whole; what was seen is kept.
        search: What was found.
        evidence: Of the whole search.
    """
    snapshot, targets = evidence.snapshot, evidence.targets
    advice: tuple[Advice, ...] = ()
    if search.limited_by == "throttled":
        attempts = snapshot.attempts
        account = throttled_of(attempts, Scope.ACCOUNT) > throttled_of(attempts, Scope.PARTITION)
        result, limited_by = VerdictResult.THROTTLED, "account" if account else "partition"
        advice = tuple(on_throttling(evidence, verdict.throttling, by_account=account))
    elif search.limited_by == "maximum":
        over = targets is not None and (search.rate_per_s or 0.0) > targets.partition
        one = len(snapshot.partitions) == 1
        result = VerdictResult.OVER_TARGET if over and one else VerdictResult.WITHIN_TARGET
        limited_by = "load"
        if result is VerdictResult.OVER_TARGET:
            advice = tuple(on_keys(evidence))
    else:
        result, limited_by = _LIMITS[search.limited_by]
        helps = {"generator": on_generator, "endpoint": on_endpoint}.get(limited_by)
        advice = () if helps is None else tuple(helps(evidence))
    return dataclasses.replace(
        verdict, result=result, limited_by=limited_by, sentence=search.sentence, advice=advice
    )
