"""What commands print with ``--json``: one object, alone on standard output.

The fields of a class are the format; `harness schema` shows it. Fields may be added. None is
renamed or given another meaning without another ``schema_version``.
"""

from __future__ import annotations

import json

from harness import __version__
from harness.measure.record.findings import RecordPart


class CommandOutput(RecordPart):
    """The object of a command that did its work."""

    schema_version: int = 1
    harness_version: str = __version__

    def to_json(self) -> str:
        """In ASCII, which every stream can write; ends in a line break."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


class Failure(CommandOutput):
    """The object of a command that could not do its work: `harness.startup.failure_json`.

    Attributes:
        error: The sentence on standard error.
        exit_code: That of the process.
    """

    error: str
    exit_code: int
