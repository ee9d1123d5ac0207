"""docs/cosmos-stand-in.md and the table of charges say the same."""

from __future__ import annotations

import re

import pytest

from harness.gateway.limits import shipped_directory
from harness.model.request_units import (
    INDEX_TERM,
    MISSING,
    QUERY_PAGE,
    READ_CHARGES,
    RU,
    SCANNED_ENTITY,
    WRITE_CHARGES,
)
from tests.support.source_tree import ROOT

DOCUMENT = (ROOT / "docs/cosmos-stand-in.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]*) \| ([^|]*) \|", DOCUMENT, re.MULTILINE))
_KB_PER_MB = 1024


@pytest.mark.parametrize(
    ("row", "charges"), [("point query", READ_CHARGES), ("insert", WRITE_CHARGES)]
)
def test_the_charges_by_size_are_those_of_the_model(
    row: str, charges: tuple[tuple[int, int], ...]
) -> None:
    """Every size up to the largest entity of a table has its charge in the document."""
    told = re.findall(r"(\d+) (KB|MB) ([\d.]+)", ROWS[row])
    found = [
        (int(size) * (_KB_PER_MB if unit == "MB" else 1), round(float(charge) * RU))
        for size, unit, charge in told
    ]
    assert found == [one for one in charges if one[0] <= _KB_PER_MB]


def test_the_other_charges_are_those_of_the_model() -> None:
    """Properties, pages of queries, scanned entities and refused requests have their charges."""
    text = DOCUMENT.split("## What requests are charged")[1]
    for charge, row in (
        (INDEX_TERM, r"and {} for each property"),
        (QUERY_PAGE, r"{} for each physical partition"),
        (SCANNED_ENTITY, r"{} for each scanned entity"),
        (MISSING, r"404, 409 and 412 \| {} "),
    ):
        assert re.search(row.format(re.escape(f"{charge / RU:.2f}")), text), row


def test_every_rule_is_in_the_document() -> None:
    """The document names each rule that only Cosmos DB has, and the limits of its demonstration."""
    files = ("charging", "throughput", "burst_capacity", "splitting", "sizes")
    for rule in files:
        assert (ROOT / f"harness/gateway/rules/{rule}.py").is_file()
    for rule in (*files, "autoscale", "volume"):
        assert f"`{rule}`" in DOCUMENT
    for limits in shipped_directory().glob("cosmos*.toml"):
        assert f"--throttling {limits.stem}" in DOCUMENT
