"""What is refused, and in which words, must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew: each has what somebody wrote, and below
it the sentences that refuse it. One mistake hides no other, and leads to no other.
"""

from __future__ import annotations

import base64
import shlex
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.cli import main
from harness.endpoint.accounts import accounts_from, consent_problem
from harness.measure.verdict.conditions import parse_condition
from harness.model.errors import SetupError
from harness.model.services import server_of_session
from harness.profile.profile_loader import parse
from harness.report.compare.regressions import parse_regression
from harness.trace.whatif.scheme import parse_scheme
from tests.support.golden import check
from tests.support.records import KEPT

PROFILES = """\
transaction.operations = 101
entity.size_bytes = 1048577
entity.size_bytes = 50
entity.size_bytes = 100000; transaction.operations = 100
keys.rows_per_partition = 5; transaction.operations = 10
fields.key.values = 2; keys.partition_key = '{key}'; keys.rows_per_partition = [40, 5]; \
transaction.operations = 10
mix.point_query = 0
load.run_time_s = 0
load.max_entities_per_s = 0
session.kind = 'telnet'
user_class = 'not a class'
load.entities_per_s = 0
load.operations_per_s = -3
load.entities_per_s = inf
load.entities_per_s = 5; load.operations_per_s = 5
load.arrivals = 'bursty'
load.give_up_after_s = 0
stage = [{for_s = 5, to_entities_per_s = 50}, {for_s = -1, to_entities_per_s = 50}]
stage = [{for_s = 5}]
stage = [{for_s = 5, to_entities_per_s = 50, to_users = 3}]
stage = [{for_s = 5, to_operations_per_s = -1}]
stage = [{for_s = 5, to_users = 2.5}]
stage = [{for_s = 5, to_entities_per_s = 50, hold = true}]
stage = {for_s = 5, to_entities_per_s = 50}
stage = [{for_s = 5, to_entities_per_s = 50}, {for_s = 5, to_users = 3}]
stage = [{for_s = 5, to_users = 0}]
stage = [{for_s = 5, to_entities_per_s = 50}]; load.operations_per_s = 5
search.start_per_s = 100; search.max_per_s = 50
load.entities_per_s = 300; load.max_entities_per_s = 200
stage = [{for_s = 5, to_entities_per_s = 50}]; load.max_entities_per_s = 40
search.max_per_s = 500; load.max_entities_per_s = 200
search.start_per_s = 0
search.factor = 1
search.precision = 0
search.hold_s = 0
search.throttled_ratio = 1.5
search.p99_ms = 0
search.most_steps = 1
search = {}; stage = [{for_s = 5, to_entities_per_s = 50}]
search = {}; load.entities_per_s = 5
audit.most_rows = 0
fail_fast = 'yes'
load.usrs = 5
search.facter = 2
stage = [{for_s = 5, to_entities_per_s = 50, jmp = true}]
lod.users = 5
keys.rows_per_partition = [5, 0]
keys.rows_per_partition = 'many'
keys.partition_key = '{row:guid}'; keys.row_key = ''; mix.transaction = 1
keys.partition_key = '{row:guid}'; keys.row_key = ''; mix.row_range_scan = 1
fields.time.history = '3 days'; keys.partition_key = '{time:day}'; \
transaction.kinds = ['insert', 'upsert_merge']
transaction.kinds = []
transaction.kinds = ['merge']
query.by_key_bounds = true; query.returned_share = 0.5
query.returned_share = 0
scenario = 'blog'; mix.insert = 1
actions.read = 1
scenario = 'blog'; actions.read = -1
"""
FIELDS = """\
keys.partition_key = '{custmer}'
keys.partition_key = '{partition_key}'
keys.partition_key = '{row:week}'
keys.partition_key = '{row:bucket}'
keys.partition_key = '{row:bucket1}'
keys.partition_key = '{row:bucket20000}'
keys.partition_key = '{row:hash9}'
keys.partition_key = '{row:pad101}'
keys.partition_key = '{row:first0}'
keys.partition_key = '{row'
keys.partition_key = 'row}'
keys.partition_key = '{}'
keys.partition_key = '{row!r}'
keys.partition_key = 'a/b'
keys.partition_key = 'a{row}#'
keys.row_key = "a\\u0000{row}"
keys.partition_key = 7
keys.index.partition_key = '{row}'
keys.index = {partition_key = '{x}', row_key = '{row}'}
fields.city = {}; keys.partition_key = '{city}'
fields.city.values = 0; keys.partition_key = '{city}'
fields.city.values = -1; keys.partition_key = '{city}'
fields.city.values = 2000000; keys.partition_key = '{city}'
fields.city.values = 'many'; keys.partition_key = '{city}'
fields.city.values = []; keys.partition_key = '{city}'
fields.city.values = ['a', 'b', 'a']; keys.partition_key = '{city}'
fields.city.values = ['a', 7]; keys.partition_key = '{city}'
fields.city.values = ['a', 'b/c']; keys.partition_key = '{city}'
fields.city = 5; keys.partition_key = '{city}'
fields.city.value = 5; keys.partition_key = '{city}'
fields.city.sequence = 'yes'; keys.partition_key = '{city:bucket16}'
fields.city = {values = 5, history = '3 days'}; keys.partition_key = '{city}'
fields.city = {values = 5, sequence = true}; keys.partition_key = '{city}'
fields.city = {values = ['a', 'b'], prefix = 'c'}; keys.partition_key = '{city}'
fields.city = {values = 5, prefix = 'a/b'}; keys.partition_key = '{city}'
fields.city = {values = 5, weights = 'sales'}; keys.partition_key = '{city}'
fields.city = {values = 5, distribution = 'zipf'}; keys.partition_key = '{city}'
fields.city = {values = 5, distribution = 'hot', hot_share = 0}; keys.partition_key = '{city}'
fields.city = {values = 5, theta = 9}; keys.partition_key = '{city}'
fields.city = {values = 5, theta = 2}; keys.partition_key = '{city}'
fields.city.from = ''; keys.partition_key = '{city}'
fields.city.from = 'nowhere.csv'; keys.partition_key = '{city}'
fields.city = {from = 'nowhere.csv', prefix = 'c'}; keys.partition_key = '{city}'
fields.time.history = '12'; keys.partition_key = '{time:day}'
fields.time.history = 12; keys.partition_key = '{time:day}'
fields.time.history = 'a year'; keys.partition_key = '{time:day}'
fields.time.history = '12 moons'; keys.partition_key = '{time:day}'
fields.time.history = '0 days'; keys.partition_key = '{time:day}'
fields.time.history = '500 years'; keys.partition_key = '{time:day}'
fields.time = {history = '3 days', distribution = 'zipfian'}; keys.partition_key = '{time:day}'
fields.time = {history = '3 days', prefix = 't'}; keys.partition_key = '{time:day}'
fields.time.history = '3 days'; fields.day.history = '3 days'; \
keys.partition_key = '{time:day}{day:day}'
fields.n = {sequence = true, distribution = 'hot'}; keys.row_key = '{n}'
fields.n.sequence = true; keys.row_key = '{n}-{row}'
fields.city.values = 5
fields.'1st'.values = 5; keys.partition_key = '{1st}'
fields.'my field'.values = 5; keys.partition_key = '{my field}'
fields.partition_key.values = 5; keys.partition_key = '{partition_key}'
fields.city.values = 5; keys.partition_key = '{city}'; keys.row_key = 'x'
fields.city.values = 5; keys.row_key = '{city:first3}'; mix.point_query = 1
fields.city.values = 5; keys.partition_key = '{city:bucket3}'; keys.row_key = 'x'
fields.city.values = 5; keys.row_key = '{city}'; keys.rows_per_partition = 6
fields.time.history = '3 days'; keys.partition_key = '{time:day}'; keys.row_key = 'x'
keys.partition_key = '{row:bucket16}'; keys.row_key = 'x'
keys.partition_key = '{row:hash6}'
fields.city.values = 2000; fields.shop.values = 2000; keys.partition_key = '{city}{shop}'
fields.city.values = 5; keys.partition_key = '{city}'; keys.partitions = 5
fields.city.values = 3; keys.partition_key = '{city}'; keys.rows_per_partition = [50, 60]
fields.city.values = 3; keys.partition_key = '{city:bucket2}'; keys.rows_per_partition = [50, 60]
keys.partition_key = '{row}'; keys.rows_per_partition = 9
keys.partition_key = '{row}'; keys.rows_per_partition = [1, 1]
keys.partition_key = '{row:bucket16}'; keys.rows_per_partition = 1000000
keys.partition_key = '{row:bucket16}'; transaction.kinds = ['insert']
fields.city.values = 5; keys.row_key = '{city}'; keys.rows_per_partition = 5; mix.insert = 1
fields.city.values = 5; keys.row_key = '{city}'; keys.rows_per_partition = 5; mix.transaction = 1; \
transaction.kinds = ['delete']; transaction.operations = 2
scenario = 'iot-telemetry'; fields.device.values = 5; fields.day.values = 5
scenario = 'iot-telemetry'; fields.device.values = ['a', 'b']
scenario = 'iot-telemetry'; fields.device.history = '3 days'
scenario = 'iot-telemetry'; keys.partition_key = '{device}'
scenario = 'iot-telemetry'; keys.partitions = 5
keys.scheme = 'spread'; keys.partitions = 50; keys.distribution = 'zipfian'
keys.scheme = 'customer-month'
keys.partitions = 5
keys.prefix = 'BIB:'; load.usrs = 5
"""
"""Fields, and the keys made of them."""
SEVERAL_AT_ONCE = (
    "fields.city = {values = ['a', 'a'], prefix = 'c'}; keys.partition_key = '{town}'; "
    "keys.row_key = '{row:week}'; mix.transaction = 1; mix.row_range_scan = 1",
    "keys.rows_per_partition = [5, 6, 7]; mix.transaction = 1; load.entities_per_s = 9.0; "
    "stage = [{for_s = 5, to_users = 0}]",
    "seed = -1; limits.billions = 1; keys.partition_key = '{row}'; mix.row_range_scan = 1; "
    "search = {}; load.operations_per_s = 5.0",
    "keys.partitions = 0; keys.row_key = 'a/b'; load.users = 'many'; limits.billions = 1; "
    "conditions = ['p99(service) < soon']",
    "fields.city.distribution = 'zipf'; keys.partition_key = '{town}'; mix.transaction = 1; "
    "seed = -1",
)

TOO_LONG = f"keys.partition_key = '{'k' * 1030}'"

KEY_SCHEMES = """\
match.row_key = '.'
keys.partition_key = '{x}'
keys.partition_key = '{row_key:bucket1}'
keys.partition_key = '{row_key:bucket0}'
keys.partition_key = '{row_key:first0}'
keys.partition_key = '{row_key:hash9}'
keys.partition_key = '{row_key'
keys.partition_key = '{row_key!r}'
keys = {}; match.row_key = '(?P<partition_key>.)'
keys = {}; colour = 'red'
keys = 3
keys.row_key = '{row_key}/1'
match.partition_key = '(?P<day>.+)'; match.row_key = '(?P<day>['; keys.row_key = '{day:week}'
"""

CONDITIONS = """\

throttled_ratio
throttled_ratio = 1%
throttled_ratio != 1%
throttled_ratio =< 1%
throttled_ratio <
throttled_ratio < -1%
< 1%
p99(service < 1s
p99( < 1s
p99(service, partition=p0) < 1s
p99(service, partition='p0) < 1s
entities_per_s(account) > 1,500
entities_per_s(account) > 1.500.000
throttled_ratio < 1% and more
p99(service) < 1e3
p98(service) < 100ms
p99 < 100ms
p99(servce) < 100ms
P99(service) < 1s
lost_write == 0
ru_per_sec < 8000
ru < 50
p99(service, response) < 1s
p99(service, point_query) < 1s
p99(service, partition='a', op='insert') < 1s
p99(service, partition='a', partition='b') < 1s
p99(partition='a') < 1s
lost_writes(account) < 1
throttled_ratio(partition, partition='a') < 1%
entities_per_s > 1
failed_ratio < 5
throttled_ratio < 101%
lost_writes < 1%
held_rate > 99ms
throttled_ratio < 100ms
entities_per_s(account) > 5%
p99(service) < 5%
failed_ratio(kind='500') < 1%
failed_attempts_ratio(kind='reset') < 1%
"""
REGRESSIONS = """\

entities_per_s drops
entities_per_s < 95
entities_per_s < -5%
entities_per_s == 95%
speed < 95%
p99 > 120%
entities_per_s > 95%
p99(service) < 95%
throttled_ratio > 1%
p99(service) > first + 20
entities_per_s < first - 5%
"""

COMMANDS = """\
compare --trend RUN
compare --trend RUN --fail-if 'entities_per_s < 95%'
compare RUN RUN --html no/page.html
compare RUN RUN --name before
compare RUN
compare ALL
compare RUN missing
compare RUN broken
compare RUN empty
compare nowhere nothing --fail-if 'speed < 5%' --fail-if 'p99 > 1'
report missing
report broken
report empty
report .
report . --out x.html
report RUN --out no/x.html
init --profile imaginary new
init --account https://mytables.table.core.windows.net new
init --account 'a: {b}' new
plan nothing
plan key-spread -t 90 --set 'stage=[{for_s = 5, to_users = 3}]'
schemes rainbow
whatif missing.trace --provisioned-ru-per-s 1800
whatif missing.trace --physical-partitions 3
run
run -u 5 upsert
gateway --upstream 127.0.0.1:10002
gateway --upstream http://127.0.0.1:10002/account
gateway --upstream http://acme.example:80
gateway --listen 10102
gateway --limits imaginary
gateway --upstream https://acme.table.core.windows.net
gateway --upstream https://acme.table.core.windows.net --remote-ok other
"""

KEY = base64.b64encode(b"a key that nobody has").decode()
SAS = "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00:00:00Z&sig=c2VjcmV0"
ENDPOINTS = """\
https://orders.table.core.windows.net
https://orders.table.core.windows.net AZURE_STORAGE_KEY= AZURE_STORAGE_ACCOUNT=orders
https://orders.table.core.windows.net AZURE_STORAGE_ACCOUNT=stock AZURE_STORAGE_KEY={KEY}
https://orders.table.core.windows.net {STRING}=AccountName=stock;AccountKey={KEY}
http://127.0.0.1:10002 {STRING}=AccountName=orders;AccountKey={KEY}
http://127.0.0.1:1 {STRING}=nonsense
https://orders.table.core.windows.net {STRING}=AccountName=orders
https://orders.table.core.windows.net {STRING}=AccountKey={KEY}
https://orders.table.core.windows.net AZURE_STORAGE_KEY=!
https://orders.table.core.windows.net AZURE_STORAGE_SAS_TOKEN=sv=2019-02-02
https://tables.example.com AZURE_STORAGE_KEY={KEY}
127.0.0.1:10002 AZURE_STORAGE_KEY={KEY}
ftp://127.0.0.1 AZURE_STORAGE_KEY={KEY}
http://127.0.0.1:port AZURE_STORAGE_KEY={KEY}
http://orders.table.core.windows.net AZURE_STORAGE_KEY={KEY}
http://10.0.0.1:10002/devstoreaccount1 AZURE_STORAGE_KEY={KEY}
https://orders.table.core.windows.net?{SAS} AZURE_STORAGE_KEY={KEY}
https://user:{KEY}@orders.table.core.windows.net AZURE_STORAGE_KEY={KEY}
AccountName=orders;AccountKey={KEY} AZURE_STORAGE_KEY={KEY}
https://orders.table.core.windows.net/mytable AZURE_STORAGE_KEY={KEY}
https://orders.blob.core.windows.net AZURE_STORAGE_KEY={KEY}
https://orders-secondary.table.core.windows.net AZURE_STORAGE_KEY={KEY}
http://127.0.0.1:10002/a/b AZURE_STORAGE_KEY={KEY}
http://127.0.0.1:10002 AZURE_STORAGE_AUTH_MODE=login
https://orders.table.core.windows.net AZURE_STORAGE_AUTH_MODE=Login!
https://orders.table.core.windows.net AZURE_STORAGE_AUTH_MODE=login AZURE_STORAGE_ACCOUNT=stock
https://tables.example.com AZURE_STORAGE_AUTH_MODE=login
{A},{A} {BOTH}
{A},https://tables.example.com/orders1 {BOTH}
http://127.0.0.1:1,http://localhost:1/ {BOTH}
{A},http://127.0.0.1:1 {BOTH}
{A},https://tables.example.com {BOTH}
{A},ftp://x {BOTH}
{A},{B} {BOTH} --remote-ok=
{A},{B} {BOTH} --remote-ok=orders1
{A},{B} {BOTH} --remote-ok=orders1,stock
{A},{B} {BOTH} --remote-ok={KEY}
https://10.0.0.1/devstoreaccount1 AZURE_STORAGE_KEY={KEY} --remote-ok=
https://orders.queue.core.windows.net AZURE_STORAGE_KEY={KEY}
https://orders.table.core.windows.net AZURE_STORAGE_KEY={KEY} --session=blob
https://orders.table.cosmos.azure.com AZURE_STORAGE_KEY={KEY} --session=blob
https://orders.file.core.windows.net AZURE_STORAGE_KEY={KEY} --session=blob
https://orders-secondary.blob.core.windows.net AZURE_STORAGE_KEY={KEY} --session=blob
https://orders.blob.core.windows.net/box AZURE_STORAGE_KEY={KEY} --session=blob
127.0.0.1:10000 AZURE_STORAGE_KEY={KEY} --session=blob
https://orders.blob.core.windows.net --session=blob
https://orders.blob.core.windows.net {STRING}=AccountName=stock;AccountKey={KEY} --session=blob
https://orders.blob.core.windows.net {STRING}=AccountKey={KEY} --session=blob
https://orders.blob.core.windows.net AZURE_STORAGE_KEY={KEY} --session=blob --remote-ok=
"""
WORDS = {
    "KEY": KEY,
    "SAS": SAS,
    "STRING": "AZURE_STORAGE_CONNECTION_STRING",
    "A": "https://orders1.table.core.windows.net",
    "B": "https://orders2.table.core.windows.net",
    "BOTH": f"AZURE_STORAGE_KEY_ORDERS1={KEY} AZURE_STORAGE_SAS_TOKEN_ORDERS2={SAS}",
}


def profile(written: str) -> None:
    smallest = {"question": "Why?", "user_class": "SinglePartitionUser"}
    parse({**smallest, **tomllib.loads(written)}, source="a test")


def key_scheme(written: str) -> None:
    parse_scheme("mine", tomllib.loads(written), "mine.toml")


def endpoint(written: str) -> None:
    """An address, variables, what --remote-ok names, and the session."""
    host, *rest = written.format(**WORDS).split("\n")[0].split()
    environ = dict(word.split("=", 1) for word in rest)
    remote_ok = environ.pop("--remote-ok", None)
    server = server_of_session(environ.pop("--session", "sdk"))
    accounts = accounts_from(host, environ, server=server)
    if remote_ok is not None and (sentence := consent_problem(accounts, remote_ok)) is not None:
        raise SetupError(sentence)


@pytest.mark.parametrize(
    ("name", "read", "cases"),
    [
        ("profiles", profile, (*PROFILES.splitlines(), *SEVERAL_AT_ONCE)),
        ("fields", profile, (*FIELDS.splitlines(), TOO_LONG)),
        ("key-schemes", key_scheme, KEY_SCHEMES.splitlines()),
        ("endpoints", endpoint, ENDPOINTS.splitlines()),
        ("conditions", parse_condition, CONDITIONS.splitlines()),
        ("regressions", parse_regression, REGRESSIONS.splitlines()),
    ],
)
def test_what_is_refused(name: str, read: Callable[[str], object], cases: Sequence[str]) -> None:
    """Each mistake is named with its place and its value, and what to do; no secret is repeated."""
    lines = []
    for written in cases:
        with pytest.raises((SetupError, ValueError)) as caught:
            read(written.replace("; ", "\n"))
        lines += [f"# {written}", str(caught.value), ""]
    text = "\n".join(lines)
    assert KEY not in text
    assert "c2VjcmV0" not in text
    check(f"refused-{name}.txt", text)


def test_what_commands_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, standard error says why in a sentence, and nothing is written."""
    for name, text in (("broken", "{}"), ("kept", KEPT.read_text(encoding="utf-8"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    there = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    lines = []
    for written in COMMANDS.splitlines():
        assert (
            main(shlex.split(written.replace("RUN", "kept").replace("ALL", "kept " * 27))) == 2
        ), written
        said = capsys.readouterr()
        assert (said.out, sorted(tmp_path.rglob("*"))) == ("", there), written
        lines += [f"# {written}", said.err.replace(str(tmp_path), "FOLDER")]
    check("refused-commands.txt", "\n".join(lines))
