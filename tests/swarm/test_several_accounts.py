"""A run against two accounts: two Azurites, each behind a gateway that counts for itself."""

from __future__ import annotations

import collections
import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.endpoint.admin.tables import create_table, list_tables
from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import endpoint_from
from harness.gateway.process import GatewayProcess, start_gateway
from harness.measure.record.record import RunRecord
from harness.model.partition import account_of
from tests.support.command import Command
from tests.support.http_pages import metrics_page
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked
from tests.support.metrics_page import labelled, series
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

PARTITIONS = [f"p{number:02d}" for number in range(12)]
LIMITED_PER_S = 30.0
LEFTOVER = "stress20260101T000000Z0a1b2c3d"
LOAD = (
    *("--profile", "key-spread", "--set", f"fields.key.values={len(PARTITIONS)}"),
    *("--set", "keys.rows_per_partition=2", "--set", "load.max_entities_per_s=200"),
    *("--set", "mix={point_query=50, upsert_merge=50}", "--set", "retry.backoff_s=0.1"),
)
"""Only the loading sends transactions, and it is too small to be throttled."""


@pytest.fixture(scope="module")
def gateways(
    azurite: AzuriteProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    """Two accounts, the first of which throttles early."""
    folder = tmp_path_factory.mktemp("limits")
    files = folder / "limited.toml", folder / "published.toml"
    files[0].write_text(f"[account]\nentities_per_s = {LIMITED_PER_S}\n", encoding="utf-8")
    files[1].write_text("", encoding="utf-8")
    with (
        start_azurite() as other,
        start_gateway(upstream=f"http://{azurite.endpoint.host}", limits=files[0]) as first,
        start_gateway(upstream=f"http://{other.endpoint.host}", limits=files[1]) as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
def done(stress: Stress, gateways: tuple[GatewayProcess, GatewayProcess]) -> LocustProcess:
    """A run by two workers that has ended, and its metrics page while it went on."""
    first, second = gateways
    port = free_port()
    process = stress(
        *QUICK,
        *LOAD,
        *forked(2),
        *("-H", first.url, "-H", f"{second.url}/devstoreaccount1"),
        *("--metrics-port", str(port)),
    )
    process.until_said("[3/4]")
    process.until_said("0:05 |")
    (process.folder / "metrics.txt").write_text(metrics_page(port), encoding="utf-8")
    assert process.wait() == 0, process.said
    return process


@pytest.fixture(scope="module")
def record(done: LocustProcess) -> RunRecord:
    """What it recorded."""
    return done.record


@pytest.fixture(scope="module")
def counters_of(
    done: LocustProcess, gateways: tuple[GatewayProcess, GatewayProcess]
) -> list[dict[str, Any]]:
    """What each gateway counted by itself."""
    return [json.loads(gateway.counters()) for gateway in gateways]


def test_each_account_has_what_its_gateway_counted(
    record: RunRecord, counters_of: list[dict[str, Any]]
) -> None:
    """Two workers' counts by account and answer, and the cost, agree to the last request."""
    assert record.workers == 2
    assert [part.host for part in record.accounts] == [part.name for part in record.accounts]
    for part, counters in zip(record.accounts, counters_of, strict=True):
        assert part.name == counters["address"]
        assert part.billable_transactions == counters["requests"]
        told: collections.Counter[str] = collections.Counter()
        entities = 0
        for row in counters["counts"]:
            # 202 answers the transactions of loading.
            if row["partition"] is None or row["sent"] == "202":
                continue
            name = f"503 ServerBusy {row['scope']}" if row["sent"] == "503" else row["sent"]
            told[name] += row["requests"]
            entities += row["entities"] if row["result"] == "passed" else 0
        assert part.attempts_by_status == told
        assert part.entities == entities
    assert sum(part.billable_transactions for part in record.accounts) == (
        record.counts.billable_transactions
    )
    assert sum(part.entities for part in record.accounts) == record.counts.entities


def test_each_partition_is_in_the_account_of_its_key(
    done: LocustProcess, record: RunRecord, counters_of: list[dict[str, Any]]
) -> None:
    """Every request of a partition went to one gateway, which the record and the file name."""
    for number, counters in enumerate(counters_of):
        seen = {row["partition"] for row in counters["counts"]} - {None}
        assert seen == {key for key in PARTITIONS if account_of(key, 2) == number}
    wanted = {key: record.accounts[account_of(key, 2)].name for key in PARTITIONS}
    assert {part.key: part.account for part in record.partitions} == wanted
    [file] = (done.folder / "out").glob("*/partitions.csv")
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    assert {row["partition"]: row["account"] for row in rows} == wanted


def test_only_the_limited_account_throttled_and_is_named(
    done: LocustProcess, record: RunRecord
) -> None:
    """The verdict, the table and every failed attempt say which account it was."""
    limited, other = record.accounts
    assert limited.attempts_by_status["503 ServerBusy account"] > 0
    assert set(other.attempts_by_status) == {"200", "204"}
    assert (record.verdict.result, record.verdict.limited_by) == ("throttled", "account")
    assert f"of them for account {limited.name} " in record.verdict.sentence
    assert (limited.target, record.account.target) == (20_000.0, 40_000.0)
    assert "of 40,000, 2 accounts together" in done.stdout
    [file] = (done.folder / "out").glob("*/errors.jsonl")
    errors = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {error["account"] for error in errors} == {limited.name}


def test_the_gateways_of_all_accounts_are_what_answered(record: RunRecord) -> None:
    """An Azurite alone throttles nothing. Each gateway has limits of its own: none is the run's."""
    assert record.endpoint.kind == "gateway"
    assert record.enforced is None


def test_every_report_lists_the_accounts(done: LocustProcess, record: RunRecord) -> None:
    """The terminal, the page and the summary for CI have a row for each of them."""
    [folder] = (done.folder / "out").iterdir()
    texts = [done.stdout]
    texts += [(folder / name).read_text(encoding="utf-8") for name in ("report.html", "summary.md")]
    for text in texts:
        for part in record.accounts:
            assert part.name in text
    assert "### Accounts" in texts[2]
    assert 'id="accounts"' in texts[1]


def test_the_metrics_have_a_label_for_the_account(done: LocustProcess, record: RunRecord) -> None:
    """Their sums are those of the series without it, at the same moment."""
    found = series((done.folder / "metrics.txt").read_text(encoding="utf-8"))
    names = {part.name for part in record.accounts}
    for name in ("entities", "billable_transactions"):
        each = {
            key[0]: value
            for key, value in labelled(found, f"aztables_account_{name}_total").items()
        }
        assert set(each) == names
        assert sum(each.values()) == sum(labelled(found, f"aztables_{name}_total").values())


def test_nothing_is_left_in_either_account(
    gateways: tuple[GatewayProcess, GatewayProcess], record: RunRecord, done: LocustProcess
) -> None:
    """The table was created once and deleted once in each of them."""
    for gateway in gateways:
        counts = json.loads(gateway.counters())["counts"]
        about = [row for row in counts if row["partition"] is None and row["table"]]
        assert {(row["table"], row["sent"], row["requests"]) for row in about} == {
            (record.endpoint.table, "201", 1),
            (record.endpoint.table, "204", 1),
        }


def test_a_scan_over_several_accounts_is_refused(
    stress: Stress, gateways: tuple[GatewayProcess, GatewayProcess], done: LocustProcess
) -> None:
    """Before anything is sent: an application would have to merge the answers of all accounts."""
    before = [json.loads(gateway.counters())["requests"] for gateway in gateways]
    process = stress(
        *QUICK,
        *LOAD,
        *("--set", "mix={full_table_scan=1, point_query=9}"),
        *("-H", ",".join(gateway.url for gateway in gateways)),
    )
    assert process.wait() == 2, process.said
    assert "cannot be spread over accounts: the operation 'full_table_scan'" in process.stderr
    assert before == [json.loads(gateway.counters())["requests"] for gateway in gateways]


def test_a_budget_is_one_of_each_account(
    stress: Stress, gateways: tuple[GatewayProcess, GatewayProcess], done: LocustProcess
) -> None:
    """The first one that is used up ends a valid run, and neither is exceeded.

    The profile names the accounts, as -H would.
    """
    process = stress(
        *QUICK,
        *LOAD,
        *("--set", "limits.billable_transactions=150"),
        *("--set", f"hosts={[gateway.url for gateway in gateways]}"),
    )
    assert process.wait() in (0, 3), process.said
    record = process.record
    assert record.ended_by == "budget of billable transactions"
    assert record.complete
    costs = [part.billable_transactions for part in record.accounts]
    # What deleting did not need is left.
    assert 140 < max(costs) <= 150
    assert not record.invariants


def test_a_sweep_looks_into_each_account(
    gateways: tuple[GatewayProcess, GatewayProcess], command: Command
) -> None:
    """A leftover is named with its host, and deleted where it is."""
    hosts = [argument for gateway in gateways for argument in ("-H", gateway.url)]
    second = endpoint_from(gateways[1].url, {})
    create_table(second, LEFTOVER)
    said = command("sweep", *hosts)
    assert f"no leftover tables older than 3600 s at {gateways[0].url[7:]}" in said
    assert f"kept  at {second.host}" in said
    assert f"deleted  at {second.host}" in command("sweep", *hosts, "--delete", LEFTOVER)
    assert LEFTOVER not in list_tables(second)
