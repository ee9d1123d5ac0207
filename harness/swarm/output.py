"""What a run leaves on disk, in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.measure.record import RunRecord


def write_run(
    out: str, record: RunRecord, errors: Iterable[dict[str, Any]], errors_dropped: int
) -> Path:
    """Write ``run.json`` and, where attempts failed, ``errors.jsonl``.

    Returns:
        The folder, named after the run.
    """
    folder = Path(out) / record.run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(record.to_json(), encoding="utf-8")
    lines = [json.dumps(error) for error in errors]
    if errors_dropped:
        lines.append(json.dumps({"not_kept": errors_dropped}))
    if lines:
        (folder / "errors.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
