"""The checklist of a profile or a run: violated practices, and the distribution of the load."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from harness.measure.record.findings import PredictionPart, RecordPart
from harness.measure.record.measured import INVERSE
from harness.measure.record.record import RunRecord
from harness.model.figures import counted, number, percent
from harness.model.outcome import Outcome
from harness.model.services.service import RAISED, LimitUnit
from harness.profile.checks.listed_keys import ListedKeys
from harness.profile.checks.seen import OTHER_KEYS, Seen
from harness.profile.practices.checklist import Finding, of_severity
from harness.profile.practices.practice import Severity, Source
from harness.report.export.output import CommandOutput
from harness.report.names import partition_name, shortened
from harness.report.predicted import range_words
from harness.report.terminal.keys import KeysPart, keys_part, keys_shown, keys_verdict
from harness.report.terminal.page import Page, grid, section_of
from harness.report.terminal.request_units import ChargesPart, charges_part, charges_shown

_TITLES = {
    Severity.OFFENDS: "violated",
    Severity.CONSIDER: "to consider",
    Severity.FINE: "followed",
    Severity.UNTOLD: "not in the record",
}
_COLOURS = {Severity.OFFENDS: "red", Severity.CONSIDER: "yellow"}
_NAME_WIDTH = 40
_MUCH = 0.5
_MOST_NAMED = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was compared with the practices, as in `CheckOutput`; ``keys`` only for keys alone."""

    name: str
    question: str
    seen: Seen
    facts: tuple[tuple[str, str], ...] = ()
    keys: ListedKeys | None = None


def check_text(checked: Checked, findings: Sequence[Finding], page: Page) -> str:
    """The findings, worst first, each with its reason, its remedy and its sources."""
    title = "measured" if checked.seen.recorded else "predicted"
    charges, profile = checked.seen.charges, checked.seen.profile
    limited = checked.seen.limited_in is LimitUnit.ENTITIES
    shares = [] if checked.keys else _shares(checked.seen, page, limited=limited)
    parts: list[RenderableType] = [Text(page.show(checked.name), "bold")]
    if checked.question:
        parts.append(Text(page.show(checked.question), "italic"))
    if checked.keys is not None:
        parts.append(Text(keys_verdict(findings), "bold"))
        parts += keys_shown(checked.keys, page)
    parts += section_of("what the run sent", checked.facts, page)
    parts += section_of(f"{title} share of the load", shares, page)
    if charges is not None:
        parts.append(
            page.section(
                f"{title} request units",
                *charges_shown(charges, page, measured=checked.seen.recorded),
            )
        )
    for severity in (Severity.OFFENDS, Severity.CONSIDER):
        if found := of_severity(findings, severity):
            parts.append(page.section(_TITLES[severity], *_found(found, page)))
    for severity in (Severity.FINE, Severity.UNTOLD):
        if found := of_severity(findings, severity):
            rows = [(finding.practice.name, page.show(finding.look.why)) for finding in found]
            parts.append(page.section(_TITLES[severity], grid(rows)))
    if profile is not None and profile.replay is not None and _about_keys(findings):
        trace = shlex.quote(profile.replay.trace)
        parts.append(
            page.section(
                "other keys",
                Text(page.show(f"Calculate them first: harness whatif {trace} --keys scheme.toml")),
                Text(f"Then send the traffic under them: --set {OTHER_KEYS}=scheme.toml"),
            )
        )
    return page.render(*parts, Text(), Text(_count(findings), "bold"))


def _about_keys(findings: Sequence[Finding]) -> bool:
    bad = [*of_severity(findings, Severity.OFFENDS), *of_severity(findings, Severity.CONSIDER)]
    return any(finding.look.setting == OTHER_KEYS for finding in bad)


class FindingPart(RecordPart):
    """A practice, what was seen of it, and what to change."""

    practice: str
    title: str
    severity: Severity
    why: str
    setting: str
    change: str
    sources: tuple[Source, ...]


class CheckOutput(CommandOutput):
    """What was compared with the practices, and the findings, worst first.

    Attributes:
        name: Name of a profile, id of a run, or file of keys.
        measured: Of what a run sent; otherwise of what a profile would send.
        practices: How many apply.
        offended: Names of the violated ones.
        shares: Of the load; None for keys alone.
        partition_reaches_its_target_at_entities_per_s: Total rate at which the hottest partition
            reaches its target; None if unknown, and where limits are in request units.
        keys: None but for keys alone; ``verdict`` says what is wrong with them.
    """

    name: str
    question: str
    measured: bool
    practices: int
    offended: tuple[str, ...]
    findings: tuple[FindingPart, ...]
    shares: PredictionPart | None = None
    partition_reaches_its_target_at_entities_per_s: float | None = None
    request_units: ChargesPart | None = None
    verdict: str = ""
    keys: KeysPart | None = None


def check_json(checked: Checked, findings: Sequence[Finding]) -> str:
    seen, keys = checked.seen, checked.keys
    output = CheckOutput(
        name=checked.name,
        question=checked.question,
        measured=seen.recorded,
        practices=len(findings),
        offended=tuple(one.practice.name for one in of_severity(findings, Severity.OFFENDS)),
        findings=tuple(
            FindingPart(
                practice=finding.practice.name,
                title=finding.practice.title,
                sources=finding.practice.sources,
                **dataclasses.asdict(finding.look),
            )
            for finding in findings
        ),
        shares=None if keys else seen.shares,
        partition_reaches_its_target_at_entities_per_s=None
        if keys or seen.charges
        else _reached(seen),
        request_units=charges_part(seen.charges),
        verdict=keys_verdict(findings) if keys else "",
        keys=None if keys is None else keys_part(keys),
    )
    return output.to_json()


def facts_of(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """What a run sent, in a few lines."""
    total = sum(part.count for part in record.operations) or 1
    often = sorted(record.operations, key=lambda part: -part.count)
    named = [f"{part.kind} {percent(part.count / total)}" for part in often[:_MOST_NAMED]]
    if len(often) > _MOST_NAMED:
        named.append(f"{len(often) - _MOST_NAMED} more")
    counts, watched, unit = record.counts, record.watched, record.endpoint.service.unit
    best = number(record.account.entities_per_s.best_1s)
    rows = [
        ("operations", f"{counts.operations:,}: {', '.join(named)}"),
        ("requests", f"{counts.attempts:,}, {sum(record.throttled.values()):,} of them throttled"),
        (unit.many, f"{counts.entities:,}, best second {best} {unit.rate}"),
    ]
    if watched is not None and watched.clients:
        clients = watched.senders
        if len(watched.clients) > 1:
            busiest = watched.known_clients[0].requests / max(1, watched.requests)
            clients += f"; {percent(busiest)} of the requests from one of them"
        rows.append(("clients", clients))
    return tuple(rows)


def _shares(seen: Seen, page: Page, *, limited: bool) -> list[tuple[str, str]]:
    """The rows of the shares; with the first limit where limits are in entities/s."""
    prediction, record = seen.shares, seen.record
    if record is not None and not record.counts.entities:
        succeeded = any(record.outcomes.get(one) for one in Outcome if one.succeeded)
        none = f"no {record.endpoint.service.unit.one} was counted"
        return [("none", none + ("" if succeeded else ": nothing succeeded"))]
    rows = []
    if prediction.hottest_share:
        name = partition_name(prediction.hottest, page.ascii_only)
        name = shortened(name, _NAME_WIDTH, page.ascii_only)
        share = percent(prediction.hottest_share, seen.hottest_sign)
        rows.append(("hottest partition", f"{name}: {share}"))
    place = prediction.hottest_range
    if place is not None and prediction.range_count > 1:
        share = f"1 of {prediction.range_count}: {percent(prediction.hottest_range_share)}"
        rows.append(("hottest range", f"{range_words(prediction, place)}, {share}"))
    if prediction.over_partitions_share:
        share = percent(prediction.over_partitions_share)
        rows.append(("no single partition", f"{share}, queries over several partitions"))
    if limited and rows:
        rows.append(("first limit", _first_limit(seen)))
    if prediction.sampled and rows:
        rows.append(("counted in", f"a sample of {counted(prediction.sampled, 'operation')}"))
    return rows


def _first_limit(seen: Seen) -> str:
    reached, targets = _reached(seen), seen.targets
    account = number(targets.account) + (" (raised)" if targets.word("account") == RAISED else "")
    if reached is None or reached >= targets.account:
        limit = f"the account, at {account} entities/s, before any partition reaches its target"
        if seen.shares.hottest_range_share < _MUCH:
            return limit
        return f"{limit}. Most of the load is in one range of keys, which one server may hold"
    return (
        f"this partition: it reaches its {targets.named('partition')} entities/s at "
        f"{INVERSE[seen.hottest_sign]}{number(reached)} entities/s in total; the account's target "
        f"is {account}"
    )


def _reached(seen: Seen) -> float | None:
    if not seen.shares.hottest_share:
        return None
    return seen.shares.account_rate_at(seen.targets.partition)


def _found(findings: Sequence[Finding], page: Page) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for finding in findings:
        look, practice = finding.look, finding.practice
        sign = page.glyphs.no if look.severity is Severity.OFFENDS else "?"
        heading = Text(f"{sign} {practice.name}", style=f"bold {_COLOURS[look.severity]}")
        heading.append(f"  {practice.title}", style="default")
        if look.setting:
            heading.append(f"  [{page.show(look.setting)}]", style="dim")
        lines = [
            Text(page.show(look.why)),
            Text(f"Change: {look.change}"),
            *(Text(_cited(source), "dim") for source in practice.sources),
        ]
        if parts:
            parts.append(Text())
        parts += [heading, Padding(Group(*lines), (0, 0, 0, 2))]
    return parts


def _cited(source: Source) -> str:
    otherwise = "Contradicting: " if source.otherwise else ""
    return f'{otherwise}{source.document.value}, "{source.section}": {source.says}'


def _count(findings: Sequence[Finding]) -> str:
    counts = [
        f"{len(found)} {word}"
        for severity, word in _TITLES.items()
        if (found := of_severity(findings, severity)) or severity is not Severity.UNTOLD
    ]
    return f"{counted(len(findings), 'applicable practice')}: {', '.join(counts)}"
