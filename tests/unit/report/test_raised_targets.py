"""An account with raised limits: every output says that its targets are not the published ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.measure.record.record import RunRecord
from harness.model.services.service import PUBLISHED, Targets
from harness.model.services.storage import STORAGE
from harness.profile.build.plan import plan_of
from harness.profile.checks.observed import observe
from harness.profile.practices.checklist import findings_of
from harness.profile.profile_loader import resolve
from harness.report.compare.comparison import compare
from harness.report.compare.outputs import side_by_side
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.headline import headline
from harness.report.limits import limits_of
from harness.report.terminal.checklist import Checked, check_text
from harness.report.terminal.page import Page
from harness.report.terminal.plan import plan_text
from harness.report.terminal.summary import summary
from harness.report.web.document import document
from tests.support.evidence import evidence, recorded, snapshot_of
from tests.support.records import kept, subjects

TARGETS = Targets(partition=5_000, account=50_000)
SETTINGS = ["endpoint.targets.partition=5000", "endpoint.targets.account=50000"]
PAGE = Page(width=200, colour=False, ascii_only=True)
RAISED = recorded(evidence(snapshot_of({"p0": 2500}), kind=STORAGE.held_to(TARGETS)))
PLAIN = recorded(evidence(snapshot_of({"p0": 1500})))


def compared(record: RunRecord) -> str:
    return side_by_side(compare(subjects(record, record), []), PAGE)


OUTPUTS: dict[str, Callable[[RunRecord], str]] = {
    "terminal": lambda record: summary(record, PAGE),
    "Markdown": markdown,
    "report": document,
    "JUnit": junit,
    "compare": compared,
    "headline": headline,
    "chart": lambda record: str(limits_of(record)),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_tells_raised_targets_from_published_ones(output: str) -> None:
    """The same output of a run without raised limits has no such word."""
    write = OUTPUTS[output]
    assert "raised" in write(RAISED)
    assert "raised" not in write(PLAIN)


def test_a_rate_is_judged_by_the_raised_target() -> None:
    """2,500 entities/s of a partition are half of 5,000, and the verdict says of what."""
    assert RAISED.verdict.result == "within_target"
    assert "50% of the raised target of 5,000" in RAISED.verdict.sentence
    assert "The published ones are 2,000 and 20,000" in RAISED.verdict.footnote
    assert RAISED.partitions[0].target == 5_000


def test_one_raised_limit_does_not_raise_the_other() -> None:
    """If only the account's limit was raised, the target of a partition is the published one."""
    only = Targets(partition=PUBLISHED.partition, account=50_000)
    given = evidence(snapshot_of({"p0": 1000}), kind=STORAGE.held_to(only))
    said = recorded(given).verdict.sentence
    assert "50% of the target of 2,000" in said
    assert "2.0% of the raised target of 50,000" in said


def test_a_record_holds_its_targets_and_older_ones_have_the_published() -> None:
    """What a record was held against is read back from it."""
    assert RunRecord.from_json(RAISED.to_json()).endpoint.service.targets == TARGETS
    assert kept().endpoint.service.targets == PUBLISHED
    assert b"targets" not in PLAIN.endpoint.model_dump_json().encode()


def test_plan_and_check_read_the_setting() -> None:
    """The accounts that a rate needs, and the rate at which a partition reaches its target."""
    profile = resolve("single-partition", [*SETTINGS, "load.max_entities_per_s=60000"]).profile
    plan = plan_of(profile, STORAGE)
    assert plan.accounts == 2
    assert "the raised target of one is 50,000" in plan_text("mine", "Why?", plan, PAGE)
    seen = observe(profile, 600).seen()
    text = check_text(Checked(name="m", question="", seen=seen), findings_of(seen), PAGE)
    assert "its raised target of 5,000 entities/s at 5,000 entities/s" in text
