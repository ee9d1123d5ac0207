"""``harness schema``: the JSON Schemas of what commands print and write."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pydantic

from harness.commands.doctor import DoctorOutput
from harness.commands.profiles import ProfilesOutput
from harness.commands.schemes import SchemesOutput
from harness.commands.sweep import SweepOutput
from harness.commands.trace import ConvertedOutput
from harness.commands.verify import VerifyOutput
from harness.measure.record.advice import AdviceRecord
from harness.measure.record.measured import SeriesPart
from harness.measure.record.record import RunRecord
from harness.measure.record.whatif import WhatIfRecord
from harness.profile.settings.schema import Profile
from harness.report.compare.outputs import ComparisonOutput
from harness.report.compare.repeats import TrendsOutput
from harness.report.export.output import Failure
from harness.report.export.result import RepeatsOutput, RunOutput
from harness.report.terminal.checklist import CheckOutput
from harness.report.terminal.plan import PlanOutput
from harness.report.terminal.traffic import TraceOutput

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
PRINTED: dict[str, Any] = {
    "run": RunOutput | RepeatsOutput,
    "watch": RunOutput,
    "check": CheckOutput,
    "compare": ComparisonOutput | TrendsOutput,
    "plan": PlanOutput,
    "profiles": ProfilesOutput,
    "schemes": SchemesOutput,
    "doctor": DoctorOutput,
    "trace": TraceOutput | ConvertedOutput,
    "whatif": WhatIfRecord,
    "advise": AdviceRecord,
    "sweep": SweepOutput,
    "verify": VerifyOutput,
}
"""What each command prints with ``--json``; a `Failure` if it cannot do its work."""
_WRITTEN: dict[str, Any] = {"record": RunRecord, "stream": SeriesPart, "profile": Profile}
_EPILOG = f"""\
names:
  {", ".join(PRINTED)}
           what a command prints with --json
  record   run.json, the record of a run or a watch
  stream   a line of `harness run --stream`
  profile  a profile, for completion in editors
"""


class ShowSchema:
    """Prints the JSON Schema of what a command prints with --json, or of a file.

    Where a command fails, it prints an object with the sentence of its error and its exit code,
    which is a part of each schema.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.epilog = _EPILOG
        parser.add_argument(
            "name", metavar="NAME", choices=[*PRINTED, *_WRITTEN], help="what is described"
        )

    def run(self, args: argparse.Namespace) -> int:
        print(json.dumps({"$schema": _DIALECT, **schema_of(args.name)}, indent=1))
        return 0


def schema_of(name: str) -> dict[str, Any]:
    if name == "profile":
        schema = Profile.model_json_schema()
        # The question is usually the comment in the first line.
        schema["required"] = [one for one in schema["required"] if one != "question"]
        return schema
    described = _WRITTEN.get(name) or PRINTED[name] | Failure
    return pydantic.TypeAdapter(described).json_schema(mode="serialization")
