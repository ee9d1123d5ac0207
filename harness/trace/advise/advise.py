"""Which PartitionKey the traffic of each table of a trace needs.

Candidates are screened on the busiest seconds of the traffic. The best are calculated exactly, and
of the best of these the traffic at which each meets its first limit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from harness.gateway.limits import GatewayLimits
from harness.measure.record.advice import (
    AdviceRecord,
    FieldPart,
    KeyAnswer,
    ProposalPart,
    TableAdvicePart,
)
from harness.measure.record.whatif import WhatIfRecord
from harness.measure.verdict.ranking import THROTTLED_NOISE, ranked
from harness.model.errors import SetupError, cut
from harness.trace.advise.candidates import (
    Candidate,
    candidates,
    each_row,
    of_longer_time,
    splitting,
)
from harness.trace.advise.judging import (
    ENOUGH,
    PLENTY,
    TODAY,
    Trial,
    by_keys,
    finalists,
    helps,
    is_candidate,
    proposed,
    screened,
    sustained,
)
from harness.trace.advise.reasons import (
    KeyEvidence,
    conclusion,
    far_from_limits,
    reservations,
    trade,
)
from harness.trace.advise.traffic import MOST_TABLES, TableTraffic, TraceTables
from harness.trace.advise.understanding import KeyPart, understood
from harness.trace.head import TraceError
from harness.trace.reader import Trace
from harness.trace.whatif.projection import Progress
from harness.trace.whatif.rows_before import EVERY_TABLE, require_rows_of
from harness.trace.whatif.scheme import as_recorded
from harness.trace.whatif.screening import screen
from harness.trace.whatif.whatif import what_if

_MOST_SIMULATED = 20
_OPERATIONS = 200_000
"""About so many requests are simulated to compare candidates."""
_FINALISTS, _FINALISTS_OF_MANY = 5, 3
_MOST_UNKNOWN = 0.5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a trace.

    Attributes:
        rate: Multiple of the recorded traffic.
        given: Regular expressions of the keys, as in `understood`.
        rows: The rows of tables before the trace; see `harness.trace.whatif.rows_before`.
    """

    limits: GatewayLimits
    limits_name: str
    rate: float = 1.0
    given: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def about(self, table: str) -> Question:
        """The question of a trace that has no other table."""
        said = self.rows.get(table.lower(), self.rows.get(EVERY_TABLE))
        return dataclasses.replace(self, rows={} if said is None else {EVERY_TABLE: said})

    def asked(
        self,
        trace: Trace,
        tried: Sequence[Candidate],
        first_limits: bool,
        backoff: bool,
        progress: Progress = lambda step, operations: None,
        processes: int = 1,
    ) -> WhatIfRecord:
        """The tried keys side by side, of which the first are taken for today's."""
        return what_if(
            trace,
            [one.scheme for one in tried],
            self.limits,
            name=trace.path.name,
            limits_name=self.limits_name,
            rate=self.rate,
            most_factor=PLENTY * self.rate if first_limits else 0.0,
            rows_said=self.rows,
            recorded=False,
            backoff=backoff,
            processes=processes,
            progress=progress,
        )


Calculate = Callable[[Question, Trace, Sequence[Candidate], bool, bool], WhatIfRecord]
"""Does what `Question.asked` does."""


def advise(
    trace: Trace,
    question: Question,
    scratch: Path,
    calculate: Calculate = Question.asked,
    *,
    name: str,
    version: str = "",
) -> AdviceRecord:
    """The advice for every table; ``scratch`` takes parts of the trace.

    Raises:
        SetupError: the trace has no operation, or cannot be read.
    """
    tables = TraceTables(trace, scratch)
    try:
        overview = tables.overview()
        if not overview:
            raise trace.unreadable(name)
        require_rows_of(question.rows, [traffic.table for traffic in overview])
        advised = [
            _advised(tables, traffic, question.about(traffic.table), calculate, first=not place)
            for place, traffic in enumerate(overview[:MOST_TABLES])
        ]
    except TraceError as error:
        raise SetupError(f"{cut(name)} cannot be read ({cut(str(error))})") from error
    finally:
        tables.close()
    _require_used(question.given, advised)
    seconds = max(one.seconds for one in overview)
    said = reservations(trace, overview, seconds)
    return AdviceRecord(
        harness_version=version,
        trace=name,
        operations=trace.operations,
        seconds=seconds,
        rate=question.rate,
        limits=question.limits_name,
        notes=(*said, *trace.notes, *trace.damage.sentences()),
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
        table=traffic.table, operations=traffic.operations, answer=KeyAnswer.FINE, headline=""
    )
    if traffic.unknown > _MOST_UNKNOWN * traffic.operations:
        said = "The trace lacks the keys of most operations, so nothing can be said of other keys."
        return bare.model_copy(update={"answer": KeyAnswer.UNKNOWN, "headline": said})
    if not first and (said := far_from_limits(traffic, question.limits, question.rate)):
        return bare.model_copy(update={"headline": said})
    calculated = functools.partial(calculate, question)

    def beside(tried: Sequence[Candidate], first_limits: bool) -> WhatIfRecord:
        """The busiest traffic under keys, beside today's."""
        if not tried:
            return today.found
        found = calculated(busiest, tried, first_limits, False)
        return found.model_copy(update={"schemes": ranked((today.part, *found.schemes))})

    traffic, rows_said = tables.looked_at(traffic), bool(question.rows)
    own = tables.alone(traffic.table)
    # A first limit is met in the busiest seconds, so that these are enough to find it.
    busiest = tables.busiest(own)
    found = calculated(busiest, (TODAY,), True, False)
    today = Trial(found, found.schemes[0])
    understanding = understood(traffic.keys, traffic.together, question.given, traffic.properties)
    bare = bare.model_copy(update={"fields": tuple(map(_field, understanding.parts))})
    longer = of_longer_time(understanding, traffic.table, traffic.ranges)
    if today.far or not traffic.keys:
        whole = _whole(calculated, own, found, ())
        bare = bare.model_copy(update={"found": whole})
        today = Trial(whole, whole.schemes[0])
        fine = KeyEvidence(traffic=traffic, today=today, rows_said=rows_said, longer=longer)
        return bare.model_copy(update=conclusion(fine))
    tried = candidates(
        understanding,
        traffic.table,
        transactions=traffic.transactions > 0,
        queries=any(not query.whole for query in traffic.queries),
    )
    bounds = [each_row(understanding, traffic.table)]
    if traffic.transactions:
        bounds.append(splitting(understanding, traffic.table))
    served, by_account = _served(busiest, found)
    loads = screen(
        busiest,
        [one.scheme for one in tried],
        partition_per_s=served,
        account_per_s=by_account,
        rate=question.rate,
    )
    chosen = screened(loads, tried, served, _OPERATIONS)[:_MOST_SIMULATED]
    exact = beside([*chosen, *bounds], False)
    many = busiest.operations * _MOST_SIMULATED > _OPERATIONS
    most = _FINALISTS_OF_MANY if many else _FINALISTS
    trials = _trials(exact, chosen)
    held = _held(question, calculate, busiest, trials)
    last = finalists(trials, today, most, held)
    found = beside(last, True)
    judged = _trials(found, last)
    # What is rare shows in the whole traffic only.
    while True:
        tried_whole = [one.candidate for one in proposed(judged, today)]
        whole = _whole(calculated, own, found, tried_whole)
        kept_today = Trial(whole, whole.schemes[0])
        trials = _trials(whole, tried_whole)
        helping = [one.candidate.name for one in trials if helps(one, kept_today)]
        lost = {one.name for one in tried_whole}.difference(helping)
        if not lost:
            break
        judged = [one for one in judged if one.candidate.name not in lost]
    # The busiest seconds may have them in another order than the whole traffic, which is shown.
    proposals = proposed(trials, kept_today)
    shown = ranked((kept_today.part, *(one.part for one in proposals)))
    whole = whole.model_copy(update={"schemes": shown})
    rows, *split = (Trial(exact, part) for part in exact.schemes[-len(bounds) :])
    # Of these no first limit was calculated.
    rough = Trial(exact, today.part.model_copy(update={"first_limit": None}))
    evidence = KeyEvidence(
        traffic=traffic,
        today=kept_today,
        best=proposals[0] if proposals else None,
        each_row=rows,
        each_row_helps=helps(rows, rough),
        splitting=next((one for one in split if helps(one, rough)), None),
        rows_said=rows_said,
        longer=longer,
        tried=len(tried),
        simulated=len(chosen),
        aliased=bool(busiest.head.keys),
    )
    return bare.model_copy(
        update={
            "proposals": tuple(_proposal(one, proposals[0]) for one in proposals),
            "tried": len(tried),
            "simulated": len(chosen),
            "found": whole,
            **conclusion(evidence),
        }
    )


def _held(
    question: Question, calculate: Calculate, busiest: Trace, trials: Iterable[Trial]
) -> set[str]:
    """The names of those under which `ENOUGH` times the traffic meets no limit of keys.

    The limits of servers are not among the peaks: they show at more traffic.
    """
    passing = [one.candidate for one in trials if not one.throttled]
    if not passing:
        return set()
    more = dataclasses.replace(question, rate=ENOUGH * question.rate)
    found = calculate(more, busiest, passing, False, False)
    return {part.name for part in found.schemes if by_keys(part) < THROTTLED_NOISE}


def _served(busiest: Trace, found: WhatIfRecord) -> tuple[float, float]:
    """About the entities a second that a partition serves, and the account.

    Request units are taken to be those of a mean entity.
    """
    if found.physical is None:
        return found.partition_per_s, found.account_per_s
    [today] = screen(busiest, [as_recorded()], partition_per_s=math.inf, account_per_s=math.inf)
    entities = today.entities / max(1, found.schemes[0].total)
    return found.partition_per_s * entities, found.account_per_s * entities


def _whole(
    calculated: Callable[[Trace, Sequence[Candidate], bool, bool], WhatIfRecord],
    own: Trace,
    found: WhatIfRecord,
    proposed: Sequence[Candidate],
) -> WhatIfRecord:
    """Today's keys and the proposed ones in the whole traffic, with their first limits.

    ``found`` has those of the busiest seconds, of which a burst may pass.
    """
    limits = {part.name: part.first_limit for part in found.schemes}
    whole = calculated(own, (TODAY, *proposed), False, True)
    ordered = []
    for part in whole.schemes:
        met = [one for one in (limits[part.name], sustained(whole, part)) if one is not None]
        first = min(met, key=lambda one: one.factor, default=None)
        if first is not None and first.factor > found.most_factor:
            first = None
        ordered.append(part.model_copy(update={"first_limit": first}))
    return whole.model_copy(update={"most_factor": found.most_factor, "schemes": ranked(ordered)})


def _trials(found: WhatIfRecord, tried: Sequence[Candidate]) -> list[Trial]:
    """What became of each, of those that an application can have."""
    by_name = {one.name: one for one in tried}
    parts = [part for part in found.schemes[1:] if part.name in by_name]
    return [*filter(is_candidate, (Trial(found, part, by_name[part.name]) for part in parts))]


def _proposal(trial: Trial, best: Trial) -> ProposalPart:
    candidate = trial.candidate
    return ProposalPart(
        name=candidate.name,
        idea=candidate.idea,
        partition_key=candidate.partition_key,
        row_key=candidate.row_key,
        scheme=candidate.toml,
        trade="" if trial is best else trade(trial, best),
    )


def _field(part: KeyPart) -> FieldPart:
    token = part.token
    return FieldPart(
        key="property" if part.of_property else "RowKey" if part.of_row else "PartitionKey",
        name=part.name,
        kind=f"{token.kind}: {token.form}" if token.form else token.kind,
        different=len(part.values),
        examples=tuple(token.examples[:3]),
    )


def _require_used(given: Mapping[str, str], tables: Iterable[TableAdvicePart]) -> None:
    """Raise `SetupError` if a template of ``--fields`` named nothing in any table."""
    names = {field.name for table in tables for field in table.fields}
    for key, pattern in given.items():
        if names.isdisjoint(re.compile(pattern).groupindex):
            raise SetupError(
                f"--fields {key}: it matches fewer than half of the keys of any table that was "
                "looked at, or names no part that differs"
            )
