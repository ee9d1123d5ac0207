"""Which PartitionKey the traffic of each table of a trace needs.

Candidates are screened on the busiest seconds of the traffic. The best are calculated exactly, and
of the best of these the traffic at which each meets its first limit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.gateway.limits import GatewayLimits
from harness.measure.record.advice import (
    AdviceRecord,
    Answer,
    FieldPart,
    ProposalPart,
    TableAdvicePart,
)
from harness.measure.record.whatif import WhatIfRecord
from harness.model.errors import SetupError, cut
from harness.trace.advise.candidates import Candidate, candidates, each_row, splitting
from harness.trace.advise.judging import (
    Trial,
    alternatives,
    breaks,
    finalists,
    helps,
    recommended,
)
from harness.trace.advise.reasons import Evidence, conclusion, far_from_limits, reservations, trade
from harness.trace.advise.traffic import TableTraffic, TraceTables
from harness.trace.advise.understanding import Understanding, understood
from harness.trace.head import TraceError
from harness.trace.reader import Trace
from harness.trace.whatif.whatif import Progress, what_if

MOST_SIMULATED = 20
_FINALISTS = 5
_MOST_UNKNOWN = 0.5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a trace.

    Attributes:
        rate: Multiple of the recorded traffic.
        given: Regular expressions of the keys, as in `understood`.
    """

    limits: GatewayLimits
    limits_name: str
    rate: float = 1.0
    given: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def asked(
        self,
        trace: Trace,
        tried: Sequence[Candidate],
        *,
        factors: bool,
        progress: Progress = lambda step, operations: None,
    ) -> WhatIfRecord:
        """Today's keys and the tried ones side by side."""
        return what_if(
            trace,
            [one.scheme for one in tried],
            self.limits,
            name=trace.path.name,
            limits_name=self.limits_name,
            rate=self.rate,
            factors=factors,
            progress=progress,
        )


Calculate = Callable[[Trace, Sequence[Candidate], bool], WhatIfRecord]
"""Does what `Question.asked` does; the last argument is ``factors``."""


def advise(
    trace: Trace,
    question: Question,
    scratch: Path,
    calculate: Calculate,
    *,
    name: str,
    version: str = "",
) -> AdviceRecord:
    """The advice for every table.

    Args:
        scratch: A folder for parts of the trace.

    Raises:
        SetupError: the trace has no operation, or cannot be read.
    """
    tables = TraceTables(trace, scratch)
    try:
        overview = tables.overview()
        if not overview:
            raise SetupError(f"{cut(name)} has no readable operation")
        advised = [
            _advised(tables, traffic, question, calculate, first=not place)
            for place, traffic in enumerate(overview)
        ]
    except TraceError as error:
        raise SetupError(f"{cut(name)} cannot be read ({cut(str(error))})") from error
    finally:
        tables.close()
    seconds = max(one.seconds for one in overview)
    return AdviceRecord(
        harness_version=version,
        trace=name,
        operations=trace.operations,
        seconds=seconds,
        rate=question.rate,
        limits=question.limits_name,
        notes=(*reservations(trace, overview, seconds), *trace.damage.sentences()),
        tables=tuple(advised),
    )


def _advised(
    tables: TraceTables,
    traffic: TableTraffic,
    question: Question,
    calculate: Calculate,
    *,
    first: bool,
) -> TableAdvicePart:
    bare = TableAdvicePart(
        table=traffic.table, operations=traffic.operations, answer=Answer.FINE, headline=""
    )
    if traffic.unknown > _MOST_UNKNOWN * traffic.operations:
        said = "The trace lacks the keys of most operations, so nothing can be said of other keys."
        return bare.model_copy(update={"answer": Answer.UNKNOWN, "headline": said})
    if not first and (said := far_from_limits(traffic, question.limits, question.rate)):
        return bare.model_copy(update={"headline": said})
    traffic = tables.looked_at(traffic)
    own = tables.alone(traffic.table)
    found = calculate(own, (), True)
    today = Trial(found, found.schemes[0])
    understanding = understood(traffic.keys, traffic.together, question.given)
    bare = bare.model_copy(update=_understood(understanding) | {"found": found})
    evidence = Evidence(traffic=traffic, today=today)
    if today.far or not traffic.keys:
        return bare.model_copy(update=conclusion(evidence))
    tried = candidates(
        understanding,
        traffic.table,
        transactions=traffic.transactions > 0,
        queries=any(not query.whole for query in traffic.queries),
    )
    beyond = [each_row(understanding, traffic.table)]
    if traffic.transactions:
        beyond.append(splitting(understanding, traffic.table))
    screened = _trials(calculate(tables.busiest(own), [*tried, *beyond], False), tried)
    chosen = finalists(screened, today, MOST_SIMULATED)
    exact = calculate(own, [*(one.candidate for one in chosen if one.candidate), *beyond], False)
    simulated = _trials(exact, tried)
    bounds = [Trial(exact, part) for part in exact.schemes[-len(beyond) :]]
    last = [one.candidate for one in finalists(simulated, today, _FINALISTS) if one.candidate]
    found = calculate(own, last, True)
    today = Trial(found, found.schemes[0])
    judged = _trials(found, tried)
    best = recommended(judged, today)
    others = [] if best is None else alternatives(judged, best, today)
    proposals = [] if best is None else [best, *others]
    evidence = Evidence(
        traffic=traffic,
        today=today,
        best=best,
        each_row=bounds[0],
        splitting=bounds[1] if traffic.transactions and helps(bounds[1], today) else None,
        tried=len(tried),
    )
    kept = found.model_copy(update={"schemes": (today.part, *(one.part for one in proposals))})
    return bare.model_copy(
        update={
            "proposals": tuple(_proposal(one, best) for one in proposals),
            "tried": len(tried),
            "simulated": len(chosen),
            "found": kept,
            **conclusion(evidence),
        }
    )


def _trials(found: WhatIfRecord, tried: Sequence[Candidate]) -> list[Trial]:
    """The candidates among the schemes that break nothing."""
    by_name = {one.name: one for one in tried}
    return [
        Trial(found, part, by_name[part.name])
        for part in found.schemes[1:]
        if part.name in by_name and not breaks(part, found.schemes[0])
    ]


def _proposal(trial: Trial, best: Trial | None) -> ProposalPart:
    candidate = trial.candidate
    assert candidate is not None
    return ProposalPart(
        name=candidate.name,
        idea=candidate.idea,
        partition_key=candidate.partition_key,
        row_key=candidate.row_key,
        scheme=candidate.toml,
        trade="" if best is None or trial is best else trade(trial, best),
    )


def _understood(found: Understanding) -> dict[str, object]:
    fields = [
        FieldPart(
            key="RowKey" if part.of_row else "PartitionKey",
            name=part.name,
            kind=f"{part.token.kind}: {part.token.form}" if part.token.form else part.token.kind,
            different=len(part.values),
            examples=tuple(part.token.examples[:3]),
        )
        for part in found.parts
    ]
    keys = found.examples[0][0] if found.examples else ("", "")
    return {"fields": tuple(fields), "example": keys}
