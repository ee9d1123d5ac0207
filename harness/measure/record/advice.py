"""Which keys the traffic of a trace needs, as a record: every output is a function of it."""

from __future__ import annotations

import enum

from harness.measure.record.findings import RecordPart
from harness.measure.record.whatif import WhatIfRecord


class KeyAnswer(enum.StrEnum):
    """What is said of the keys of a table."""

    CHANGE = "change"
    """Other keys serve this traffic better."""
    FINE = "fine"
    """No limit is near at the asked traffic."""
    NO_KEY = "no key helps"
    UNKNOWN = "unknown"
    """The trace says too little."""


class FieldPart(RecordPart):
    """A part of a key, as it was understood.

    Attributes:
        key: ``PartitionKey`` or ``RowKey``.
        name: In templates.
        kind: In words, with its notation.
        different: Different values in a sample of the keys.
    """

    key: str
    name: str
    kind: str
    different: int
    examples: tuple[str, ...]


class ProposalPart(RecordPart):
    """A key scheme that is proposed: the recommendation first, then alternatives.

    Attributes:
        name: That of its scheme in `TableAdvicePart.found`.
        idea: What decides about the partition, in words.
        scheme: The scheme as TOML, for ``harness whatif`` and a replay.
        trade: What an alternative has for what; empty for the recommendation.
    """

    name: str
    idea: str
    partition_key: str
    row_key: str
    scheme: str
    trade: str = ""


class TableAdvicePart(RecordPart):
    """The advice for one table.

    Attributes:
        headline: The answer in a line.
        reason: Why: today, what changes, and its price.
        stays_bad: What no proposal changes.
        fields: What the keys are made of.
        tried: Key schemes that were tried, of which ``simulated`` exactly.
        found: The traffic to this table as recorded and under the proposals; None if the keys were
            not looked at.
    """

    table: str
    operations: int
    answer: KeyAnswer
    headline: str
    reason: tuple[str, ...] = ()
    proposals: tuple[ProposalPart, ...] = ()
    stays_bad: tuple[str, ...] = ()
    fields: tuple[FieldPart, ...] = ()
    tried: int = 0
    simulated: int = 0
    found: WhatIfRecord | None = None


class AdviceRecord(RecordPart):
    """The advice for all tables of a trace, the busiest first.

    Attributes:
        seconds: From the first operation to the last.
        rate: Multiple of the recorded traffic that was asked about.
        limits: Name of the limits.
        notes: What has to be known of the trace.
    """

    schema_version: int = 1
    harness_version: str = ""
    trace: str
    operations: int
    seconds: float
    rate: float
    limits: str
    notes: tuple[str, ...] = ()
    tables: tuple[TableAdvicePart, ...] = ()
