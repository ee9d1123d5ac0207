"""With ``--redact-keys`` no PartitionKey is in any output, whatever happens.

The keys of these runs are addresses of persons. One run has two workers, a gateway that throttles,
an audit, metrics and the web UI; one is of an own Locust class whose endpoint refuses and repeats
the key in its message; one cannot load its table. Everything that came out of them is looked
through. What workers tell their master is none of it: it stays between them.
"""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from harness.measure.counts.redaction import Aliases
from harness.measure.record.record import RunRecord
from harness.options import REDACT_SECRET
from harness.trace.reader import Trace
from tests.support.http_pages import content
from tests.support.locust_process import LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy, Seen, refusal
from tests.support.traced import content_of, require_same
from tests.swarm.test_secrets import PAGES

pytestmark = pytest.mark.azurite

DOMAIN = "persons.example"
KEYS = [f"person{number}@{DOMAIN}" for number in range(20)]
HOTTEST = KEYS[0]
OLD_ROWS = 100
"""Of the hottest: a query for all of them is what makes it throttle."""
SECRET = "of the test"

SCENARIO = f"""\
from harness.workload.scenarios import KeyRange, Scenario


class People(Scenario):
    actions = {{"look_up": 50, "add": 30, "add_again": 10, "list_all": 5}}

    def key(self, number):
        return f"person{{number}}@{DOMAIN}"

    def loading(self):
        many = [(0, f"old {{row}}") for row in range({OLD_ROWS})]
        return self.batched(
            self.insert(self.key(number), f"{{row}} of {{self.key(number)}}", {{"Text": "x"}})
            for number, row in [*many, *((number, "first") for number in range({len(KEYS)}))]
        )

    def look_up(self, rng):
        key = self.key(int({len(KEYS)} * rng.random() ** 4))
        return self.get(key, f"first of {{key}}")

    def add(self, rng):
        key = self.key(rng.randrange({len(KEYS)}))
        return self.insert(key, f"{{self.new_id(after=100)}} of {{key}}", {{"Text": "x"}})

    def add_again(self, rng):
        return self.insert(self.key(1), f"first of {{self.key(1)}}", {{"Text": "x"}})

    def list_all(self, rng):
        return self.query(self.key(0), name="list_all", key_range=KeyRange(entities={OLD_ROWS}))
"""
PROFILE = f"""\
# Does a person's address stay with the person?
scenario = "FOLDER/people.py:People"
conditions = [
    'entities_per_s(partition="{HOTTEST}") > 0.1',
    "entities_per_s(partition='person99@{DOMAIN}') > 0.1",
    "lost_writes == 0",
]

[load]
users = 6
settle_s = 0
run_time_s = 8
max_entities_per_s = 700

[loading]
settle_s = 0

[audit]
enabled = true
"""
USERS = f"""\
from locust import events, task
from harness.swarm import TableUser, wire

wire(events)


class People(TableUser):
    @task
    def look_up(self):
        self.table.get("person3@{DOMAIN}", "of person3@{DOMAIN}")

    @task
    def add(self):
        self.table.insert("person4@{DOMAIN}", "of person4@{DOMAIN}", {{"Text": "x"}})
"""
OF_USERS = (
    *("--headless", "--profile", "single-partition", "-u", "2", "-r", "10"),
    *("--set", "load.max_entities_per_s=50", "--set", "load.run_time_s=3"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0", "--set", "conditions=[]"),
    *("--set", "keys.rows_per_partition=100"),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, its profile, and a locustfile."""
    folder = tmp_path_factory.mktemp("people")
    for name, text in {"people.py": SCENARIO, "people.toml": PROFILE, "users.py": USERS}.items():
        (folder / name).write_text(text.replace("FOLDER", str(folder)), encoding="utf-8")
    return folder


def _collected(processes: dict[str, LocustProcess]) -> dict[str, bytes]:
    """What the processes said and left, by where; the list of addresses is the test's own."""
    return {
        f"{name}: {file.relative_to(process.folder)}": file.read_bytes()
        for name, process in processes.items()
        for file in process.folder.rglob("*")
        if file.is_file() and "hook" not in file.parts and file.name != "addresses.txt"
    }


@pytest.fixture(scope="module")
def watched(stress: Stress, files: Path) -> dict[str, bytes]:
    """What came out of a run with two workers that throttled, and of its pages."""
    bind, metrics, web = free_port(), free_port(), free_port()
    common = ("--redact-keys", "--throttling", "demo", "-L", "DEBUG")
    to_master = ("--worker", "--master-port", str(bind))
    processes = {
        "master": stress(
            *("--profile", str(files / "people.toml"), *common, "--autostart"),
            *("--master", "--expect-workers", "2", "--master-bind-port", str(bind)),
            *("--trace", "run.parquet"),
            *("--metrics-port", str(metrics), "--web-port", str(web)),
            environ={REDACT_SECRET: SECRET},
        ),
        "worker": stress(*to_master, *common),
        "other worker": stress(*to_master, *common),
    }
    master, ui = processes["master"], f"http://127.0.0.1:{web}"
    found: dict[str, bytes] = {}

    def fetch(when: str) -> None:
        found.update({f"{when} {path}": content(ui + path) for path in PAGES})
        found[f"{when} metrics"] = content(f"http://127.0.0.1:{metrics}/metrics")

    master.until_said(" 0:05 |")
    fetch("running")
    master.until_said("Exit code:")
    wait_until(lambda: b'"state":"ended"' in content(f"{ui}/stress/data"), "the run is over")
    fetch("ended")
    master.interrupt()
    for process in processes.values():
        process.wait()
    found["trace"] = content_of(master.folder / "run.parquet")
    return found | _collected(processes)


@pytest.fixture(scope="module")
def refused(
    stress: Stress, files: Path, host: str, proxy_to: Callable[..., Proxy]
) -> dict[str, bytes]:
    """What came out of an own Locust class whose endpoint repeats the key in its refusals."""

    def answer(seen: Seen) -> bytes | None:
        asked = DOMAIN in urllib.parse.unquote(seen.path) or DOMAIN.encode() in seen.body
        return refusal(403, "Denied", f"{KEYS[3]} must not") if asked else None

    proxy = proxy_to(answer=answer)
    process = stress(
        *(*OF_USERS, "--redact-keys", "-L", "DEBUG", "-H", proxy.url),
        locustfile=files / "users.py",
    )
    process.wait()
    return _collected({"own class": process})


@pytest.fixture(scope="module")
def unloaded(stress: Stress, files: Path, proxy_to: Callable[..., Proxy]) -> dict[str, bytes]:
    """What came out of a run whose table could not be loaded."""

    def answer(seen: Seen) -> bytes | None:
        return None if seen.of_table else refusal(403, "Denied", f"{HOTTEST} must not")

    process = stress(
        *("--headless", "--profile", str(files / "people.toml"), "--redact-keys"),
        *("-H", proxy_to(answer=answer).url),
    )
    process.wait()
    return _collected({"not loaded": process})


def leaks(outputs: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """Where a key is seen, with what is before it."""
    return [
        (name, text[max(0, text.index(DOMAIN.encode()) - 80) :][:120])
        for name, text in outputs.items()
        if DOMAIN.encode() in text
    ]


def test_no_output_of_a_run_that_throttles_holds_a_key(watched: dict[str, bytes]) -> None:
    """Neither files nor pages nor metrics nor what is said, while it goes on and afterwards."""
    assert leaks(watched) == []


def test_the_trace_of_all_workers_has_the_counts_of_the_record(
    watched: dict[str, bytes], tmp_path: Path
) -> None:
    """Under the same aliases, every partition has the same entities and attempts."""
    path = tmp_path / "run.parquet"
    path.mkdir()
    for name, written in watched.items():
        if name.startswith("master: run.parquet/"):
            (path / PurePath(name).name).write_bytes(written)
    (text,) = (text for name, text in watched.items() if name.endswith("run.json"))
    snapshot = require_same(path, json.loads(text))
    assert snapshot.throttled
    trace = Trace(path)
    assert trace.head.keys == "nothing"
    assert len({shape.client for batch in trace.batches() for shape in batch.shapes}) == 2


def test_the_run_was_one_that_has_something_to_hide(watched: dict[str, bytes]) -> None:
    """It throttled and failed, was audited and judged, and aliases are where keys would be."""
    (record,) = (
        RunRecord.from_json(text) for name, text in watched.items() if name.endswith("run.json")
    )
    alias = Aliases(SECRET.encode())(HOTTEST)
    assert record.redacted
    assert record.workers == 2
    assert record.audit is not None
    assert record.audit.rows
    assert alias in {part.key for part in record.partitions}
    condition, unseen, _ = record.conditions
    assert condition.text == f'entities_per_s(partition="{alias}") > 0.1'
    assert condition.value
    assert "there was no partition 'key-" in unseen.note
    assert record.profile["conditions"][:2] == [condition.text, unseen.text]
    for name in ("running metrics", "running /stress/data", "ended metrics", "ended /stress/data"):
        assert alias.encode() in watched[name], name
    errors = [
        json.loads(line)
        for name, text in watched.items()
        if name.endswith("errors.jsonl")
        for line in text.splitlines()
    ]
    assert {503, 409} <= {error.get("status") for error in errors}


def test_what_a_service_says_of_a_key_is_not_repeated(refused: dict[str, bytes]) -> None:
    """A message that holds a key is left out; code and status say what it was."""
    assert leaks(refused) == []
    (errors,) = (text for name, text in refused.items() if name.endswith("errors.jsonl"))
    assert b'"Denied"' in errors


def test_a_table_that_cannot_be_loaded_names_no_key(unloaded: dict[str, bytes]) -> None:
    """The sentence has an alias for the partition, and not what the service said."""
    assert leaks(unloaded) == []
    assert (
        b"loading the table failed: partition 'key-"
        in unloaded["not loaded: stdout.txt"] + (unloaded["not loaded: stderr.txt"])
    )
