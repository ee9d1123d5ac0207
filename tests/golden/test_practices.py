"""What each practice says of a profile must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the file anew: below each profile stands how it
compares with the practice, why, and what to change. Nothing stands there where a profile gives no
occasion.
"""

from __future__ import annotations

import functools
import re
import tomllib
from typing import Any

from harness.model.services import USUAL
from harness.model.services.cosmos import COSMOS
from harness.profile.checks.observed import observe
from harness.profile.checks.seen import Seen
from harness.profile.practices import generator
from harness.profile.practices.checklist import PRACTICES
from harness.profile.practices.practice import UNIT_LIMITS, Practice
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile
from tests.support.golden import check
from tests.support.keys import documented, sized_settings

SAMPLE = 600
"""Operations: enough for what is looked for here, and soon made."""
SPREAD: dict[str, dict[str, Any]] = {
    "fields": {"key": {"values": 20, "prefix": "p"}},
    "keys": {"partition_key": "{key}", "rows_per_partition": 50},
}
PROFILES = """\
[append-only]
design = 'compare-append-only'; mix.insert = 1
design = 'hash-prefix'; mix.insert = 1
design = 'prepend-only'; mix.insert = 1
design = 'compare-unique'; mix.insert = 1
design = 'append-only-unpadded'; mix.insert = 1
design = 'inverted-timestamp'; mix.insert = 1
design = 'log-by-date'; mix.insert = 1; mix.point_query = 1
design = 'device-date'; mix.insert = 1
design = 'index-table'; mix.insert = 1
fields.key.distribution = 'zipfian'; mix.insert = 1
design = 'compare-append-only'; mix.insert = 6; mix.point_query = 94
design = 'natural-key'; mix.insert = 6; mix.point_query = 94
design = 'compare-append-only'; mix.point_query = 1
[date-key]
design = 'log-by-date'; mix.insert = 1
design = 'log-by-date'; mix.upsert_merge = 1
design = 'device-date'; mix.insert = 1
[zero-padding]
design = 'append-only-unpadded'; mix.point_query = 1
design = 'append-only-unpadded'; mix.partition_range_scan = 1
design = 'compare-append-only'; mix.insert = 1; mix.partition_range_scan = 1
design = 'compare-unique'; mix.insert = 1
[hot-partition]
fields.key.distribution = 'zipfian'; load.max_entities_per_s = 20000
fields.key.values = 50; keys.rows_per_partition = 50; load.max_entities_per_s = 20000
fields.key.distribution = 'zipfian'; load.max_entities_per_s = 500
fields.key.values = 50; keys.rows_per_partition = 50; load.max_entities_per_s = 500
mix.full_table_scan = 1
[hot-row]
fields.key.values = 1; keys.rows_per_partition = 1; mix.upsert_merge = 1; \
load.max_entities_per_s = 5000
fields.key.values = 1; mix.upsert_merge = 1; load.max_entities_per_s = 5000
[hot-range]
design = 'compare-append-only'; mix.point_query = 1; \
fields.row = {sequence = true, distribution = 'latest', theta = 2}
design = 'compare-append-only'; mix.point_query = 1
fields.key.values = 5
[hot-queue]
session.kind = 'queue'; fields.key.values = 1; mix.put_message = 1; load.max_entities_per_s = 4000
session.kind = 'queue'; mix.put_message = 1; load.max_entities_per_s = 4000
[constant-partition-key]
design = 'compare-single'
fields.key.values = 2
[guid-partition-key]
design = 'compare-unique'; mix.full_table_scan = 1; mix.point_query = 9
design = 'compare-unique'; mix.point_query = 1
mix.upsert_merge = 1
[guid-row-key]
keys.row_key = '{row:guid}'; mix.row_range_scan = 1
keys.row_key = '{row:guid}'; mix.partition_scan = 1
keys.row_key = '{row:guid}'; mix.point_query = 1
[tiny-partitions]
design = 'compare-unique'; mix.full_table_scan = 1
design = 'compare-unique'; mix.point_query = 1
design = 'compare-append-only'; mix.partition_range_scan = 1
mix.partition_range_scan = 1
[large-partitions]
keys.rows_per_partition = 1000000
keys.rows_per_partition = 99999
keys.rows_per_partition = 100000
keys.rows_per_partition = 10
design = 'inverted-timestamp'; load.operations_per_s = 10; mix.insert = 1; mix.point_query = 9
design = 'inverted-timestamp'; load.operations_per_s = 1; mix.insert = 1; mix.partition_scan = 1
design = 'inverted-timestamp'; load.operations_per_s = 100; mix.insert = 1; mix.delete = 1
design = 'device-date'; load.operations_per_s = 10; mix.insert = 1
design = 'log-by-date'; load.operations_per_s = 10; mix.insert = 1
design = 'compare-unique'; load.operations_per_s = 10; mix.insert = 1
load.max_entities_per_s = inf; load.emulator_max_entities_per_s = inf; mix.insert = 1
[key-properties]
design = 'compare-single'; keys.rows_per_partition = 50; mix.point_query = 1
design = 'compare-single'; keys.rows_per_partition = 50; mix.point_query = 9; mix.partition_scan = 1
design = 'compare-single'; keys.rows_per_partition = 50; mix.point_query = 1; mix.transaction = 1
design = 'natural-key'; mix.point_query = 1
design = 'inverted-timestamp'; mix.point_query = 1
[key-length]
fields.key.prefix = 'BIB:12345678123456781234567812345678123456781234567812345678\
12345678123456781234567812345678123456781234567812345678'
fields.key.prefix = 'BIB:1234567812345678123456781234567812345678123456781234567812345678\
123456781234567812345678'
[key-characters]
fields.key.prefix = 'Zürich-'
fields.key.prefix = 'Zuerich-'
fields.key.prefix = 'two words '
fields.key.prefix = 'BIB:'
[key-change]
mix.insert = 1; mix.key_change = 1
mix.insert = 1
mix.point_query = 1
[table-queries]
mix.full_table_scan = 1; mix.point_query = 9
mix.row_range_scan = 1; mix.point_query = 9
mix.partition_range_scan = 1; mix.point_query = 9
mix.partition_scan = 1; mix.point_query = 9
mix.insert = 1
[partition-queries]
mix.row_range_scan = 9; mix.point_query = 1
mix.row_range_scan = 1; mix.point_query = 9
mix.row_range_scan = 55; mix.point_query = 45
mix.row_range_scan = 45; mix.point_query = 55
mix.insert = 1
keys.partition_key = '{key}.{row:random16}'; mix.point_query = 1
[query-priority]
mix.partition_range_scan = 6; mix.point_query = 4
mix.partition_range_scan = 4; mix.point_query = 6
mix.partition_range_scan = 1
mix.partition_scan = 6; mix.point_query = 4
mix.partition_scan = 1; mix.point_query = 9; \
conditions = ['p99(service, op="partition_scan") < 50ms']
mix.partition_scan = 1; mix.point_query = 9; \
conditions = ['p99(service, op="point_query") < 50ms']
mix.point_query = 1
[query-density]
query.returned_share = 0.01; mix.partition_scan = 1
query.returned_share = 1; mix.partition_scan = 1
query.returned_share = 0.3; mix.full_table_scan = 1
query.returned_share = 0.8; mix.full_table_scan = 1
design = 'hash-prefix'; query.partitions = 10; mix.partition_range_scan = 1
design = 'compare-append-only'; query.partitions = 10; mix.partition_range_scan = 1
mix.point_query = 1
[filtering]
keys.rows_per_partition = 2000; mix.partition_scan = 1
keys.rows_per_partition = 2000; query.top = 10; mix.partition_scan = 1
mix.point_query = 1
[projection]
mix.partition_scan = 1
query.select = ['Count']; mix.partition_scan = 1
mix.point_query = 1
[data-series]
design = 'inverted-timestamp'; query.rows = 24; mix.insert = 1; mix.row_range_scan = 1
design = 'inverted-timestamp'; mix.series_merge = 1; mix.point_query = 1
design = 'inverted-timestamp'; keys.rows_per_partition = 500; query.rows = 400; mix.insert = 1; \
mix.row_range_scan = 1
mix.insert = 1; mix.point_query = 1; mix.row_range_scan = 1
mix.row_range_scan = 1
[blobs]
design = 'inverted-timestamp'; transaction.kinds = ['insert']; transaction.operations = 20; \
mix.transaction = 1; mix.row_range_scan = 1
mix.insert = 1; mix.row_range_scan = 1
mix.transaction = 1; mix.row_range_scan = 1
[transactions]
fields.key.values = 1; mix.upsert_merge = 1
fields.key.values = 20; mix.upsert_merge = 1
fields.key.values = 1; mix.upsert_merge = 9; mix.transaction = 1
fields.key.values = 1; mix.transaction = 1
mix.point_query = 1
[upsert]
mix.read_then_write = 1
mix.conditional_update = 1; mix.point_query = 1; mix.upsert_merge = 1
mix.point_query = 1
[index-rows]
design = 'index-table'; mix.insert = 1
mix.insert = 1
[parallelism]
load.max_entities_per_s = inf; load.users = 100
load.users = 100
load.max_entities_per_s = inf; load.users = 20
load.entities_per_s = 2000; load.users = 20
[connections]
load.users = 20; session.connections = 10
load.users = 20; session.connections = 20
session.kind = 'sdk-default'; load.users = 1000
[back-off]
retry.strategy = 'none'
retry.strategy = 'exponential'
retry.strategy = 'fixed'
retry.strategy = 'schedule'
retry.retries = 0
session.kind = 'sdk-default'; retry.retries = 0
[ramp]
load.users = 100; load.spawn_rate_per_s = 200
load.users = 100; load.spawn_rate_per_s = 10
stage = [{for_s = 10, to_entities_per_s = 2000, jump = true}]
stage = [{for_s = 10, to_entities_per_s = 2000}]
[account-target]
load.entities_per_s = 30000
load.entities_per_s = 10000
load.max_entities_per_s = 20000
load.max_entities_per_s = 2000
load.max_entities_per_s = inf
[entity-size]
entity.size_bytes = 4096
entity.size_bytes = 1024
[request-units]
fields.key.values = 2000; mix.insert = 1; load.operations_per_s = 5000
fields.key.values = 2000; mix.insert = 1; load.operations_per_s = 500
provisioned = false; mix.insert = 1; load.operations_per_s = 500
[hot-partition-key]
design = 'compare-single'; mix.insert = 1; load.operations_per_s = 2000
design = 'compare-single'; mix.insert = 1; load.operations_per_s = 100
fields.key.values = 2000; mix.insert = 1
[physical-partitions]
design = 'compare-single'; mix.insert = 1; load.operations_per_s = 2000
fields.key.values = 2000; mix.insert = 1
[key-bytes]
fields.key.prefix = '900 x €'; entity.size_bytes = 8192; mix.insert = 1
fields.key.prefix = '110 x p'; entity.size_bytes = 4096; mix.insert = 1
fields.key.values = 2000; mix.insert = 1
[cross-partition]
mix.partition_range_scan = 1
mix.partition_range_scan = 1; endpoint.physical_partitions = 20
mix.partition_range_scan = 1; fields.key.values = 200; keys.rows_per_partition = 600000
[data-volume]
mix.point_query = 1
mix.insert = 1; load.operations_per_s = 5000; fields.key.values = 200; \
keys.rows_per_partition = 1000000
mix.point_query = 1; fields.key.values = 200; keys.rows_per_partition = 1000000
[item-key]
mix.point_query = 9; mix.insert = 1; fields.key.values = 200; keys.rows_per_partition = 1
mix.partition_range_scan = 9; mix.upsert_merge = 1; fields.key.values = 200; \
keys.rows_per_partition = 1
mix.partition_range_scan = 9; mix.upsert_merge = 1; fields.key.values = 200; \
keys.rows_per_partition = 1; endpoint.physical_partitions = 20
mix.point_query = 1
[key-choice]
mix.point_query = 1
mix.point_query = 1; fields.key.values = 200; keys.rows_per_partition = 1000000
provisioned = false; mix.point_query = 1
[transaction-bytes]
mix.transaction = 1; keys.rows_per_partition = 100; transaction.operations = 100; \
entity.size_bytes = 60000
mix.transaction = 1
"""
"""Practices, and the settings of profiles that they are looked for in. Those of Cosmos DB have
18,000 RU/s over three physical partitions, unless they are not ``provisioned``."""
PROVISIONED = {"endpoint": {"provisioned_ru_per_s": 18_000, "physical_partitions": 3}}
OF_RUNS = {"non-retryable", "partition-moves", "account-spread", "costly-operations", "full-key"}
TRIED_BESIDE = {"blob-names", "valid-keys"}


def profile(settings: str, more: dict[str, dict[str, Any]]) -> Profile:
    """A profile of 20 partitions with 50 rows, or of 200 with one, unless it says otherwise.

    ``design`` is the name of a documented one.
    """
    written = re.sub(r"'(\d+) x (.)'", lambda of: f"'{of[2] * int(of[1])}'", settings)
    content: dict[str, Any] = tomllib.loads(written.replace("; ", "\n"))
    base, name = SPREAD, content.pop("design", None)
    if name is not None:
        base = sized_settings(
            name, 200 if documented(name, rows_per_partition=1).one_row else 20, 50
        )
    if content.pop("provisioned", True):
        base = base | more
    for part, defaults in base.items():
        given = content.setdefault(part, {})
        for setting, value in defaults.items():
            if isinstance(value, dict):
                given[setting] = value | given.get(setting, {})
            else:
                given.setdefault(setting, value)
    return parse({"question": "Why?", **content}, source="a test")


@functools.cache
def seen(settings: str, *, of_cosmos: bool) -> Seen:
    made = profile(settings, PROVISIONED if of_cosmos else {})
    return observe(made, SAMPLE, COSMOS if of_cosmos else USUAL).seen()


def test_each_practice_is_offended_by_what_offends_it_alone() -> None:
    """What is not as advised is found with a reason and a remedy; what is, is fine."""
    lines: list[str] = []
    named = {practice.name: practice for practice in PRACTICES}
    for line in PROFILES.splitlines():
        if line.startswith("["):
            practice = named.pop(line[1:-1])
            lines += [f"# {practice.name}", ""]
            continue
        look = practice.look(seen(line, of_cosmos=practice.applies == UNIT_LIMITS))
        lines.append(line)
        if look is not None:
            assert bool(look.change) is (look.severity.value != "fine")
            lines += [f"  {look.severity.value}: {look.why}", *([look.change] * bool(look.change))]
        lines.append("")
    of_runs = {one.name for one in vars(generator).values() if isinstance(one, Practice)}
    assert set(named) == OF_RUNS | TRIED_BESIDE | of_runs
    check("practices.txt", "\n".join(lines))
