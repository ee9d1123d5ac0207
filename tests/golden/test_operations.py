"""What each shipped profile sends first: seed 1, 50 operations, all of them done at once.

Properties are abbreviated to a digest of what was compressed, because libraries compress it
differently, and long transactions to their ends.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from typing import Any

import pytest

from harness.model.operation import WHOLE_TABLE, Operation
from harness.profile.build.workload import source_of
from harness.profile.profile_loader import resolve
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.workload.entity_factory import unpacked
from tests.support.driving import operations
from tests.support.golden import GOLDEN, check
from tests.support.profiles import without_trace

OPERATIONS = 50
MOST_PARTS = 6
NAMES = without_trace()


def digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]


def part_of(operation: Operation) -> str:
    """A part of a transaction: what it does to which row, and a digest of what it stores."""
    stored = f" {digest(unpacked(operation.properties))}" if operation.properties else ""
    return f"{operation.kind} {operation.row_key}{stored}"


def described(operation: Operation) -> dict[str, Any]:
    """An operation as golden files hold it: what is not said is left out."""
    parts = [part_of(part) for part in operation.parts]
    if len(parts) > MOST_PARTS:
        left_out = parts[2:-2]
        parts[2:-2] = [f"... {len(left_out)} more {digest(left_out)}"]
    told: dict[str, Any] = {
        "label": operation.label,
        "kind": str(operation.kind) if operation.kind.value != operation.label else None,
        "table": operation.table or None,
        "partition": None if operation.partition_key == WHOLE_TABLE else operation.partition_key,
        "row": operation.row_key or None,
        "partition_from": operation.key_range.partition_from,
        "partition_before": operation.key_range.partition_before,
        "row_from": operation.key_range.row_from,
        "row_before": operation.key_range.row_before,
        "filter": operation.filter,
        "select": list(operation.select) or None,
        "top": operation.top,
        "etag": operation.etag,
        "stores": digest(unpacked(operation.properties)) if operation.properties else None,
        "parts": parts or None,
    }
    if operation.key_range.entities is not None:
        sure = "exact" if operation.key_range.exact else "estimated"
        told["scans"] = f"{operation.key_range.entities} {sure}"
    return {name: value for name, value in told.items() if value is not None}


def sent_by(profile: str) -> str:
    """The first operations of a profile, a line each."""
    resolved = resolve(profile)
    source = source_of(resolved.profile, run_id=EXAMPLE_RUN_ID, worker=0)
    first = itertools.islice(operations(source, random.Random(1)), OPERATIONS)
    return "".join(json.dumps(described(one), ensure_ascii=False) + "\n" for one in first)


@pytest.mark.parametrize("profile", NAMES)
def test_what_a_profile_sends_first(profile: str) -> None:
    """Profile and seed decide the list of operations, now and in later versions."""
    check(f"operations/{profile}.jsonl", sent_by(profile))


def test_every_golden_file_has_its_profile() -> None:
    """A file whose profile is gone, or was renamed, is deleted with it."""
    assert {path.stem for path in (GOLDEN / "operations").glob("*.jsonl")} <= set(NAMES)
