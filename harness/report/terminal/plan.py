"""The plan of a run for a terminal: what the run would do and cost."""

from __future__ import annotations

import math

from rich.console import RenderableType
from rich.text import Text

from harness.model.figures import counted, data_size, duration, number, percent
from harness.model.services.service import Service
from harness.profile.build.plan import Cost, Plan, PlanFigures, PlannedPhase
from harness.profile.practices.practice import CHECKLIST
from harness.report.export.output import CommandOutput
from harness.report.terminal.page import Page, facts, section_of, table_of
from harness.report.terminal.request_units import ChargesPart, charges_part, charges_shown

_TABLE_NAME = "stress + UTC time + 8 hex digits"
_SECTION = "Targets for data operations"


def plan_text(name: str, question: str, plan: Plan, page: Page) -> str:
    """The tables, the time, the operations, the billable transactions and the bytes of a run."""
    return page.render(
        Text(page.show(name), "bold").append(
            f" on {plan.endpoint.described}; no request is sent", style="default"
        ),
        Text(page.show(question), "italic"),
        page.section(f"{plan.endpoint.store}s", facts(_tables(plan), page)),
        page.section(
            "time",
            facts(_time(plan), page),
            *([Text(plan.may_end_early)] if plan.may_end_early else []),
        ),
        *section_of("fields from files", plan.values, page),
        page.section("operations under load", *_operations(plan)),
        *([page.section("the trace", *map(Text, plan.notes))] if plan.notes else []),
        _limits(plan, page),
        page.section(
            "billable transactions" if plan.charges is None else "requests",
            facts(_transactions(plan), page),
        ),
        Text(),
        Text("No price is shown: prices differ by region and redundancy, and change.", "dim"),
    )


class PlanOutput(PlanFigures, CommandOutput):
    """What a run would do and cost; None where the load has no rate, or no bound.

    Attributes:
        reads: What all reads would do, as ``writes``.
        expected_transactions: Billable, with loading and the tables.
        most_transactions: With every possible retry, as far as the budget allows.
        accounts: Needed by the target of one.
    """

    profile: str
    question: str
    endpoint: str
    reads: Cost | None
    writes: Cost | None
    expected_transactions: float | None
    most_transactions: float | None
    accounts: int | None
    request_units: ChargesPart | None


def plan_json(name: str, question: str, plan: Plan) -> str:
    most = plan.most_transactions
    output = PlanOutput(
        profile=name,
        question=question,
        endpoint=str(plan.endpoint),
        reads=plan.cost(reads=True),
        writes=plan.cost(reads=False),
        expected_transactions=plan.expected_transactions,
        most_transactions=None if math.isinf(most) else most,
        accounts=plan.accounts,
        request_units=charges_part(plan.charges),
        **{name: getattr(plan, name) for name in PlanFigures.model_fields},
    )
    return output.to_json()


def _tables(plan: Plan) -> list[tuple[str, str]]:
    names = [f"...{ending}" for ending in plan.tables if ending]
    named = f"{_TABLE_NAME}{', ending in ' + ', '.join(names) if names else ''}"
    return [
        ("created", f"{counted(len(plan.tables), plan.endpoint.store)}: {named}"),
        (
            "loaded",
            f"{plan.endpoint.unit.counted(plan.loaded_entities)} by "
            f"{counted(plan.loading_requests, 'request')}, about "
            f"{data_size(round(plan.loading_bytes))} sent"
            if plan.loaded_entities
            else "nothing",
        ),
    ]


def _time(plan: Plan) -> list[tuple[str, str]]:
    known = sum(phase.seconds or 0.0 for phase in plan.phases)
    more = "" if all(phase.seconds is not None for phase in plan.phases) else ", plus loading"
    bound = "at most" if any(phase.at_most for phase in plan.phases) else "at least"
    total = f"{duration(known)} {bound}{more}"
    return [*((phase.name, _length(phase)) for phase in plan.phases), ("total", total)]


def _length(phase: PlannedPhase) -> str:
    if phase.seconds is None:
        return "as fast as possible"
    return f"{duration(phase.seconds)}{' at most' if phase.at_most else ''}"


def _operations(plan: Plan) -> list[RenderableType]:
    rows = [
        (
            planned.label,
            "GET" if planned.kind.reads else "PUT",
            percent(planned.share),
            number(planned.entities),
            number(planned.requests),
            "" if plan.operations is None else number(planned.share * plan.operations),
        )
        for planned in plan.kinds
    ]
    unit = plan.endpoint.unit
    headers = ("operation", "", "share", f"{unit.many}\neach", "requests\neach", "expected")
    shown: list[RenderableType] = [table_of(headers, rows), Text()]
    reads, writes = plan.cost(reads=True), plan.cost(reads=False)
    if reads is None or writes is None:
        return [*shown, Text(f"How many to expect is unknown: {plan.without_rate}.")]
    return [
        *shown,
        table_of(
            ("", "operations", unit.many, unit.rate, "billable", "sent", "received"),
            [_cost("GET (reads)", reads), _cost("PUT (writes)", writes)],
        ),
        Text("Expected at the wanted rate without retries; bytes are estimates.", "dim"),
    ]


def _cost(name: str, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        *map(number, (cost.operations, cost.entities, cost.entities_per_s, cost.requests)),
        *(data_size(round(count)) for count in (cost.sent_bytes, cost.received_bytes)),
    )


def _limits(plan: Plan, page: Page) -> RenderableType:
    """What the load takes of the limits: accounts, or request units."""
    if plan.charges is None:
        return page.section("accounts", facts(_accounts(plan), page))
    return page.section("request units", *charges_shown(plan.charges, page))


def _no_target(kind: Service) -> str:
    if kind.targets is not None:
        return f"the documents name no target of an account in {kind.unit.rate}"
    if not kind.documented:
        return f"the documents name no target for {kind.partitions}"
    return f"no target in {kind.unit.rate} applies"


def _accounts(plan: Plan) -> list[tuple[str, str]]:
    """How many accounts the wanted rate needs, and the source of the target."""
    targets = plan.endpoint.targets
    if targets is None or targets.of_account is None:
        return [("needed", f"unknown: {_no_target(plan.endpoint)}")]
    target = f"the published target of one is {number(targets.account)} ({CHECKLIST}, {_SECTION!r})"
    if (word := targets.word("account")) != "target":
        target = f"the {word} of one is {number(targets.account)} (endpoint.targets)"
    if plan.accounts is None or plan.peak_per_s is None:
        return [("needed", f"unknown: the load has no highest rate; {target}")]
    accounts = counted(plan.accounts, "account")
    unit = plan.endpoint.unit
    rows = [("needed", f"{accounts} for {number(plan.peak_per_s)} {unit.rate}: {target}")]
    if plan.accounts > 1:
        rows.append(
            (
                "spread",
                "give -H once for each account; a hash of the PartitionKey chooses the account, so "
                "that only many partitions spread evenly",
            )
        )
    return rows


def _transactions(plan: Plan) -> list[tuple[str, str]]:
    reads, writes = plan.cost(reads=True), plan.cost(reads=False)
    expected = f"unknown: {plan.without_rate}"
    if reads is not None and writes is not None:
        expected = (
            f"{number(plan.expected_transactions or 0.0)}: {number(reads.requests)} reads, "
            f"{number(writes.requests)} writes, {plan.loading_requests:,} to load, "
            f"{plan.table_requests:,} for the {plan.endpoint.store}s"
        )
    most = "unlimited: the plan has neither a rate nor a budget"
    if not math.isinf(plan.most_transactions):
        most = f"{number(plan.most_transactions)}, with every possible retry"
        if plan.budget == plan.most_transactions:
            most = f"{plan.budget:,} (limits.billable_transactions), where the run ends"
    return [("expected", expected), ("at most", most)]
