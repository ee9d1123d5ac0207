"""The figures at the top of a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.measure.record.measured import LatencyPart
from harness.measure.record.record import RunRecord
from harness.model.figures import agreed, milliseconds, number, percent
from harness.model.outcome import Outcome
from harness.report import answers
from harness.report.columns import best_over, has_rates
from harness.report.limits import (
    account_limit,
    account_rate,
    busiest,
    judged_rate,
    judged_sign,
    least,
    limit_word,
    partition_limit,
    unit_of,
)
from harness.report.names import partition_name
from harness.report.passing import failed_latency
from harness.report.web.tables import named

_MORE_THAN_EXPECTED = 1.02


@dataclasses.dataclass(frozen=True, slots=True)
class KeyFigure:
    """A figure at the top of a page. ``title`` is the whole name where ``name`` is shortened."""

    name: str
    value: str
    unit: str = ""
    note: str = ""
    _: dataclasses.KW_ONLY
    tone: str = ""
    title: str = ""


def key_figures(record: RunRecord) -> Iterator[KeyFigure]:
    """What decides the verdict first; the tables of the page have the rest."""
    yield from _rates(record)
    by_status = answers.throttled_by_status(record.attempts_by_status)
    yield KeyFigure(
        "throttled",
        percent(record.throttled_ratio),
        "of attempts",
        ", ".join(f"{name}: {count:,}" for name, count in by_status.items() if count) or "none",
        tone="bad" if record.throttled_ratio else "",
    )
    ended = sum(record.outcomes.values())
    failed = sum(record.outcomes.get(outcome, 0) for outcome in Outcome if outcome.failed)
    attempts = sum(answers.failed_attempts(record.attempts_by_status).values())
    of = record.counts.attempts
    hidden = f"; {percent(attempts / of)} of attempts" if attempts and of else ""
    yield KeyFigure(
        "failed",
        f"{failed:,}",
        agreed(failed, "operation", "operations"),
        f"{percent(failed / ended if ended else 0.0)} of {ended:,}{hidden}",
        tone="bad" if failed or attempts else "",
    )
    yield from _latency(record, "service", record.service_ms)
    yield from _latency(record, "response", record.response_ms)
    if (offered := record.offered_per_s) is not None and has_rates(record):
        achieved = record.account.entities_per_s.mean
        unit, sign = record.endpoint.service.unit.rate, least(record)
        share = percent(min(1.0, achieved / offered) if offered else 1.0, sign)
        note = f"{sign}{number(achieved)} of {number(offered)} {unit}"
        if achieved > offered * _MORE_THAN_EXPECTED:
            # What queries scan is known afterwards only.
            note = f"{sign}{number(achieved)} {unit}, {number(offered)} expected"
        yield KeyFigure("served of asked", share, "", note)


def _rates(record: RunRecord) -> Iterator[KeyFigure]:
    """The hottest partition, and the account unless both are the same.

    Of what is provisioned, a single partition has a share only.
    """
    if not has_rates(record):
        return
    hot, when = busiest(record), f", {best_over(record)}" if record.by_best else ""
    if hot is not None:
        name = named(partition_name(hot.key), 24)
        alone, sign = len(record.partitions) == 1, judged_sign(record, hot)
        yield KeyFigure(
            f"{'partition' if alone else 'hottest:'} {name.text}{when}",
            f"{sign}{number(rate := judged_rate(record, hot))}",
            unit_of(record),
            _of(limit_word(record), rate, partition_limit(record, hot), sign),
            title=name.title,
        )
        if alone and record.partitions_folded is None and record.request_units is None:
            return
    rate, sign = account_rate(record), judged_sign(record)
    whole, limit = "account", account_limit(record)
    if record.accounts:
        whole, limit = "all accounts", None if limit is None else limit * len(record.accounts)
    beside = _of(limit_word(record, "account"), rate, limit, sign)
    yield KeyFigure(f"{whole}{when}", f"{sign}{number(rate)}", unit_of(record), beside)


def _of(word: str, rate: float, limit: float | None, sign: str) -> str:
    if limit is None:
        return ""
    return f"{percent(rate / limit, sign)} of the {word}, {number(limit)}"


def _latency(record: RunRecord, kind: str, part: LatencyPart | None) -> Iterator[KeyFigure]:
    late = failed_latency(record)
    if part is not None:
        note = f"median {milliseconds(part.p50)} ms"
        tone = "bad" if late is not None and late.form.of == kind else ""
        yield KeyFigure(f"p99 {kind}", milliseconds(part.p99), "ms", note, tone=tone)
