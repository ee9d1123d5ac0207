"""The conditions of a run as a JUnit test suite, which CI systems list and keep.

One test case is one condition, and one more stands for the laws of counting. A condition that was
not measured, or not decided, is an error. Every condition of an inconclusive run is an error too,
so that a suite is never green where the exit code of the run is 3. Where a condition certainly
failed, and so the exit code is 1 however early the run ended, such a condition is skipped.

Source: the elements and attributes that Jenkins' and GitLab's readers of JUnit XML share.
"""

from __future__ import annotations

import datetime as dt
from xml.etree import ElementTree as ET

from harness.measure.record.findings import ConditionPart
from harness.measure.record.record import RunRecord
from harness.model.errors import printable
from harness.report.passing import measured
from harness.report.sentences import alarms

_FAILED = 1
_INCONCLUSIVE = 3


def junit(record: RunRecord) -> str:
    """``junit.xml`` of ``record``; what XML cannot hold is written as ``\\u`` escapes."""
    name = printable(str(record.profile.get("name", "run")))
    started, ended = map(dt.datetime.fromisoformat, (record.started_at, record.ended_at))
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name=f"stress {name}")
    suite.set("timestamp", record.started_at.removesuffix("Z"))
    suite.set("time", f"{max(0.0, (ended - started).total_seconds()):.3f}")
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(record).items():
        ET.SubElement(properties, "property", name=key, value=printable(value))
    _invariants(_case(suite, name, "laws of counting"), record)
    for part in record.conditions:
        _condition(_case(suite, name, part.text), record, part)
    ET.SubElement(suite, "system-out").text = printable(record.verdict.whole)
    for attribute, tag in (("failures", "failure"), ("errors", "error")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _properties(record: RunRecord) -> dict[str, str]:
    return {
        "run_id": record.run_id,
        "profile": str(record.profile.get("name", "run")),
        "endpoint": record.endpoint.described,
        "host": record.endpoint.host,
        "session": record.session,
        "verdict": record.verdict.result,
        "limited_by": record.verdict.limited_by,
        "exit_code": str(record.exit_code),
        "harness_version": record.harness_version,
    }


def _case(suite: ET.Element, profile: str, name: str) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=f"stress.{profile}", name=printable(name), time="0"
    )


def _invariants(case: ET.Element, record: RunRecord) -> None:
    found = [printable(sentence.strip()) for sentence in alarms(record)]
    if not found:
        return
    # A missing report is no breach, but leaves the laws unproven.
    tag = "failure" if record.invariants or record.outcomes.get("defect", 0) else "error"
    ET.SubElement(case, tag, message=found[0], type="invariants").text = "\n".join(found)


def _condition(case: ET.Element, record: RunRecord, part: ConditionPart) -> None:
    message = f"{part.text}: {measured(part)}"
    if part.passed is None:
        tag = "skipped" if record.exit_code == _FAILED else "error"
        kind = "not measured" if part.value is None else "not decided"
    elif record.exit_code == _INCONCLUSIVE:
        tag, kind = "error", "inconclusive"
        message += f". {record.verdict.whole}"
    elif not part.passed:
        tag, kind = "failure", "condition"
    else:
        return
    shown = printable(message)
    ET.SubElement(case, tag, message=shown, type=kind).text = shown
