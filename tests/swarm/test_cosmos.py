"""Runs at the stand-in for Cosmos DB: its charges, and the verdicts of the shipped profiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main
from harness.endpoint.azurite.process import AzuriteProcess
from harness.gateway.limits import limits_path
from harness.gateway.process import start_gateway
from harness.measure.record.record import RunRecord
from harness.model.services.cosmos import COSMOS_EMULATOR
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import resolve
from harness.swarm.master.rehearsal import recorded_charges
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked, spread_over
from tests.support.proxy import Proxy, Seen

pytestmark = pytest.mark.azurite

CHARGE = re.compile(rb"x-ms-request-charge", re.IGNORECASE)
LIMITS = "[cosmos]\nprovisioned_ru_per_s = 900.0\nphysical_partitions = 3\n"
LOAD = (
    *spread_over(6, 20),
    *("--set", "mix.insert=20", "--set", "mix.upsert_replace=10", "--set", "mix.delete=10"),
    *("--set", "mix.row_range_scan=5", "--set", "mix.full_table_scan=2"),
    *("--set", "mix.conditional_update=5", "--set", 'transaction.kinds=["upsert_merge","insert"]'),
    *("--set", "load.max_entities_per_s=400", "--set", "load.run_time_s=3"),
)


def charged(process: LocustProcess) -> tuple[str, str]:
    """The sums of the gateway and of the record, as they are printed."""
    found = re.search(r"^  request units +([\d,.]+) +([\d,.]+)$", process.stdout, re.MULTILINE)
    assert found is not None, process.said
    return found[1], found[2]


def test_request_units_are_equal_to_the_hundredth(stress: Stress, tmp_path: Path) -> None:
    """Two workers' record has the charges of the gateway, by partition and in total."""
    limits = tmp_path / "mine.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    options = ("--throttling", str(limits), "--summary", "full")
    process = stress(*QUICK, *LOAD, *forked(2), *options)
    process.wait()
    record: RunRecord = process.record
    assert record.workers == 2
    assert record.endpoint.service == COSMOS_EMULATOR
    assert record.invariants == ()
    assert "all counts are equal" in process.stdout, process.stdout
    assert "request units of each partition are equal" in process.stdout, process.stdout
    assert record.request_units is not None
    there, here = charged(process)
    assert there == here == f"{record.request_units.total:,.2f}"
    assert sum(recorded_charges(record).values()) == round(record.request_units.total * 100)
    # What is provisioned at the stand-in is known to the run.
    assert record.request_units.target == 900
    assert any(
        part.attempts_by_status.get("429 TooManyRequests partition") for part in record.partitions
    )


def test_a_stand_in_is_found_and_charges_what_was_predicted(
    stress: Stress, azurite: AzuriteProcess
) -> None:
    """By its answers: workers are told. Each operation costs what `harness check` says."""
    load = {"row_range_scan": 20, "full_table_scan": 5, "upsert_merge": 40, "point_query": 35}
    settings = (
        *(*spread_over(6, 20)[1::2], f"mix={toml(load)}"),
        *("endpoint.provisioned_ru_per_s=18000", "endpoint.physical_partitions=3"),
    )
    limits = limits_path("cosmos")
    assert limits is not None
    upstream = f"http://{azurite.endpoint.host}"
    with start_gateway(upstream=upstream, limits=limits) as gateway:
        process = stress(
            *QUICK,
            *(option for setting in settings for option in ("--set", setting)),
            *("-H", gateway.url, *forked(2), "--session", "wire"),
        )
        process.wait()
    record = process.record
    assert record.endpoint.service == COSMOS_EMULATOR
    assert record.endpoint.host.startswith("localhost:")
    assert (record.workers, set(record.outcomes)) == (2, {"success"})
    profile = resolve("single-partition", settings).profile
    predicted = observe(profile, kind=COSMOS_EMULATOR).seen().charges
    assert predicted is not None
    expected = {kind.label: kind.each for kind in predicted.kinds}
    measured = {part.kind: part.request_units_each for part in record.operations}
    assert measured == {name: pytest.approx(each, rel=0.1) for name, each in expected.items()}


def test_loading_is_patient_whatever_the_session_repeats(stress: Stress, tmp_path: Path) -> None:
    """azure-data-tables sends no transaction again after 429: that is for the load, not before."""
    limits = tmp_path / "mine.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    process = stress(
        *QUICK,
        *("--throttling", str(limits), "--session", "sdk-default"),
        *spread_over(6, 60),
        *("--set", "mix={point_query=1}", "--set", "load.run_time_s=3"),
    )
    process.wait()
    loading = process.record.loading
    assert loading.entities == 360, process.said
    # Six transactions of 441 RU, of which each physical partition has 300 a second.
    assert loading.attempts > 6
    assert process.record.counts.operations > 0


def uncharged(seen: Seen, answer: bytes) -> bytes:
    """Without the charge of a request about entities: a real account may not say it."""
    return answer if seen.of_table else re.sub(CHARGE, b"x-ms-request-nothing", answer)


def test_charges_that_nobody_told_are_unknown(
    stress: Stress, azurite: AzuriteProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No output says 0: not the run's, not those of its record.

    Bounds: three seconds of load.
    """
    limits = tmp_path / "mine.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    upstream = f"http://{azurite.endpoint.host}"
    conditions = [
        "throttled_ratio < 90%",
        "ru_per_s(partition) < 8000",
        'ru(op="point_query") < 50',
        'ru(op="never_sent") < 50',
    ]
    with start_gateway(upstream=upstream, limits=limits) as gateway:
        proxy = Proxy(int(gateway.url.rpartition(":")[2]), after=uncharged)
        process = stress(
            *QUICK,
            *("-H", proxy.url, "--set", f"conditions={conditions}"),
            *(*spread_over(6, 100), "--set", "mix={point_query=50,upsert_merge=50}"),
            *("--set", "load.run_time_s=3", "--set", "load.max_entities_per_s=300"),
        )
        assert process.wait() == 3, process.said
        proxy.stop()
    record = process.record
    assert record.endpoint.service == COSMOS_EMULATOR
    assert any("429" in answer for part in record.partitions for answer in part.attempts_by_status)
    assert record.request_units is None
    notes = {condition.text: condition.note for condition in record.conditions}
    assert all("no answer named its charge" in notes[text] for text in conditions[1:3])
    assert "there was no operation 'never_sent'" in notes[conditions[3]]
    folder = next((process.folder / "out").glob("*/run.json")).parent
    assert main(["check", "--record", str(folder)]) in (0, 1)
    checked = capsys.readouterr().out
    assert main(["compare", str(folder), str(folder)]) in (0, 1)
    compared = capsys.readouterr().out
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    for said in (process.stdout, checked, compared, summary, page):
        plain = " ".join(said.split())
        assert "no answer named its charge" in plain.lower()
        assert re.search(r"\b0%? (of the )?RU|RU/s\W+0\b|0 request units", plain) is None


def toml(weights: dict[str, int]) -> str:
    return "{" + ", ".join(f"{name}={weight}" for name, weight in weights.items()) + "}"


@pytest.mark.long
@pytest.mark.serial
@pytest.mark.apart
@pytest.mark.parametrize(
    ("profile", "result", "limited_by", "ratio"),
    [
        ("cosmos-hot-key", "throttled", "partition", 1 / 3),
        ("cosmos-spread", "throttled", "throughput", 1.0),
        ("cosmos-synthetic-suffix", "within_target", "load", 0.64),
        ("cosmos-calculated-suffix", "within_target", "load", 0.64),
    ],
)
def test_the_profiles_answer_their_questions(
    profile: str, result: str, limited_by: str, ratio: float, stress: Stress
) -> None:
    """One key gets a third, spread keys get everything, and a suffix makes the load of one pass."""
    process = stress("--headless", "--profile", profile, "--set", "load.run_time_s=6")
    process.wait()
    record = process.record
    assert record.request_units is not None
    assert record.request_units.ratio == pytest.approx(ratio, rel=0.1)
    assert record.verdict.result == result, process.said
    assert record.verdict.limited_by == limited_by
    assert "request units of each partition are equal" in process.stdout, process.stdout
