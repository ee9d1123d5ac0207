"""What is said before a run: the practices a profile offends, and where its load will fall.

After the run the shares that were predicted stand beside those that were measured.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from harness.measure.record import RunRecord
from harness.model.target import PUBLISHED
from harness.profile.checklist import Finding, of_severity
from harness.profile.checks.practice import Severity, Source
from harness.report.page import Page, grid
from harness.report.words import number, partition_name, percent, shortened
from harness.workload.prediction import KeyRanges, Prediction

_COLOURS = {Severity.OFFENDS: "red", Severity.CONSIDER: "yellow", Severity.FINE: "green"}
_MOST_NAMED = 4
_NAME_WIDTH = 40
_MUCH = 0.5


def opening_line(name: str, findings: Sequence[Finding]) -> str:
    """What a run says of its profile at its start, in one line."""
    offended = of_severity(findings, Severity.OFFENDS)
    considered = len(of_severity(findings, Severity.CONSIDER))
    if offended:
        names = [finding.practice.name for finding in offended]
        named = ", ".join(names[:_MOST_NAMED])
        if (more := len(names) - _MOST_NAMED) > 0:
            named += f" and {more} more"
        verb = "is" if len(offended) == 1 else "are"
        what = f"{len(offended)} of {len(findings)} practices {verb} offended: {named}"
    else:
        what = f"none of {len(findings)} practices is offended"
    return f"check: {what}; {considered} to consider; harness check {name} tells more"


def check_text(
    name: str, question: str, prediction: Prediction, findings: Sequence[Finding], page: Page
) -> str:
    """The findings, worst first, each with its reason and its sources."""
    parts: list[RenderableType] = [
        Text(page.show(name), style="bold"),
        Text(page.show(question), style="italic"),
        _prediction(prediction, page),
    ]
    for severity in (Severity.OFFENDS, Severity.CONSIDER):
        if found := of_severity(findings, severity):
            parts.append(page.section(severity.value, *_found(found, page)))
    if followed := of_severity(findings, Severity.FINE):
        rows = [(finding.practice.name, page.show(finding.look.why)) for finding in followed]
        parts.append(page.section("fine", grid(rows)))
    parts += [Text(), Text(_count(findings), style="bold")]
    return page.render(Group(*parts))


def check_json(
    name: str, question: str, prediction: Prediction, findings: Sequence[Finding]
) -> str:
    """The same for a program."""
    content = {
        "profile": name,
        "question": question,
        "practices": len(findings),
        "offended": [finding.practice.name for finding in of_severity(findings, Severity.OFFENDS)],
        "prediction": {
            **dataclasses.asdict(prediction),
            "partition_reaches_its_target_at_entities_per_s": _reached(prediction),
        },
        "findings": [_finding(finding) for finding in findings],
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A predicted share beside the measured one.

    Attributes:
        what: Whose share.
        predicted: From 0 to 1.
        measured: From 0 to 1; None where the record cannot tell.
    """

    what: str
    predicted: float
    measured: float | None

    @property
    def sentence(self) -> str:
        """Both in a sentence."""
        measured = "not known" if self.measured is None else percent(self.measured)
        return f"{self.what}: {percent(self.predicted)} predicted, {measured} measured"


def beside(prediction: Prediction, record: RunRecord) -> tuple[Beside, ...]:
    """The shares that were predicted beside those of a run.

    Measured is the share of what was predicted to be the hottest, over the measured window. A
    range can be told only where the record tells all partitions apart.
    """
    everything = record.account.entities_per_s.mean
    if everything <= 0:
        return ()
    rates = {part.key: part.entities_per_s.mean for part in record.partitions}
    shares = []
    if prediction.hottest:
        rate = rates.get(prediction.hottest)
        shares.append(
            Beside(
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
            Beside(
                what=f"keys {_range(prediction, place)}",
                predicted=prediction.hottest_range_share,
                measured=inside / everything if record.partitions_folded is None else None,
            )
        )
    return tuple(shares)


def _prediction(prediction: Prediction, page: Page) -> RenderableType:
    rows: list[tuple[Text, str]] = []
    if prediction.hottest:
        name = shortened(
            partition_name(prediction.hottest, page.ascii_only), _NAME_WIDTH, page.glyphs.ellipsis
        )
        rows.append(
            (Text("hottest partition", style="dim"), f"{name}: {percent(prediction.hottest_share)}")
        )
    place = prediction.hottest_range
    if place is not None and prediction.range_count > 1:
        share = percent(prediction.hottest_range_share)
        rows.append(
            (
                Text("hottest range", style="dim"),
                f"{page.show(_range(prediction, place))}, one of {prediction.range_count}: {share}",
            )
        )
    if prediction.over_partitions_share:
        rows.append(
            (
                Text("over partitions", style="dim"),
                f"{percent(prediction.over_partitions_share)}, of queries that belong to none",
            )
        )
    rows.append((Text("first limit", style="dim"), _first_limit(prediction)))
    return page.section("predicted share of the load", grid(rows))


def _first_limit(prediction: Prediction) -> str:
    reached = _reached(prediction)
    account = number(PUBLISHED.account)
    if reached is None or reached >= PUBLISHED.account:
        limit = f"the account, at {account} entities/s; no partition reaches its target before"
        if prediction.hottest_range_share < _MUCH:
            return limit
        return f"{limit}. But most of the load is for one range of keys, and maybe for one server"
    return (
        f"that partition, which reaches {number(PUBLISHED.partition)} entities/s at "
        f"{number(reached)} in all; the account's target is {account}"
    )


def _reached(prediction: Prediction) -> float | None:
    if not prediction.hottest_share:
        return None
    return prediction.account_rate_at(PUBLISHED.partition)


def _range(prediction: Prediction, place: int) -> str:
    first, last = prediction.ranges[place]
    return first if first == last else f"{first} to {last}"


def _found(findings: Sequence[Finding], page: Page) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for finding in findings:
        look, practice = finding.look, finding.practice
        sign = page.glyphs.no if look.severity is Severity.OFFENDS else "?"
        heading = Text(f"{sign} {practice.name}", style=f"bold {_COLOURS[look.severity]}")
        heading.append(f"  wanted: {practice.title}", style="default").append(
            f"  [{page.show(look.setting)}]", style="dim"
        )
        lines = [
            Text(page.show(look.why)),
            Text(f"Change: {look.change}"),
            *(Text(_cited(source), style="dim") for source in practice.sources),
        ]
        if parts:
            parts.append(Text())
        parts += [heading, Padding(Group(*lines), (0, 0, 0, 2))]
    return parts


def _cited(source: Source) -> str:
    otherwise = "But: " if source.otherwise else ""
    return f'{otherwise}{source.document.value}, "{source.section}": {source.says}'


def _count(findings: Sequence[Finding]) -> str:
    counts = [f"{len(of_severity(findings, severity))} {word}" for severity, word in (
        (Severity.OFFENDS, "offended"),
        (Severity.CONSIDER, "to consider"),
        (Severity.FINE, "fine"),
    )]  # fmt: skip
    return f"{len(findings)} practices apply: {', '.join(counts)}"


def _finding(finding: Finding) -> dict[str, Any]:
    practice, look = finding.practice, finding.look
    return {
        "practice": practice.name,
        "title": practice.title,
        **dataclasses.asdict(look),
        "sources": [dataclasses.asdict(source) for source in practice.sources],
    }
