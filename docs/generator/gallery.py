"""Makes the gallery of the site: eight reports of real runs on this machine, in five minutes.

Limits are a hundredth of the published ones, so that a small machine reaches them.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.report.headline import headline

ROOT = Path(__file__).parents[2]
_TRIES = 3
_LIMITS = """\
[partition]
entities_per_s = 20.0
[account]
entities_per_s = 200.0
[servers]
count = 4
entities_per_s = 40.0
[moving]
hot_after_s = 8.0
cool_after_s = 4.0
offline_s = 2.0
"""
_LOAD = """
[load]
users = 20
entities_per_s = 50
arrivals = "poisson"
run_time_s = 25
give_up_after_s = 5.0

[mix]
point_query = 60
upsert_merge = 40
"""
_PROFILES = {
    "spread": f"""\
# Do 40 customers spread the load?
[fields.customer]
values = 40
[keys]
partition_key = "{{customer}}"
rows_per_partition = 20
{_LOAD}""",
    "hot-key": f"""\
# What does one busy tenant among twenty do?
[fields.tenant]
values = 20
distribution = "hot"
hot_share = 0.8
hot_values = 1
[keys]
partition_key = "{{tenant}}"
rows_per_partition = 20
{_LOAD}""",
    "append-only": f"""\
# Do inserts in the order of time load one server?
[fields.time]
history = "2 hours"
[keys]
partition_key = "{{time:ticks}}"
partitions = 200
[mix]
insert = 1
{_LOAD.partition("[mix]")[0].replace("= 50", "= 100")}""",
}
_FAST = ("--throttling", "limits.toml", "--set", "retry.backoff_s=0.2")
_ONE = (
    *("--set", "conditions=[]", "--set", "load.run_time_s=25"),
    *("--set", "keys.rows_per_partition=50"),
)
_LOG = ROOT / "examples" / "append-only-log"
_SHOP = ROOT / "examples" / "web-shops" / "shop.py"


class Picture(NamedTuple):
    """One report: ``command`` is what `harness` is given.

    Attributes:
        verdict: What the run must have found; None for a report without a verdict.
        busy: Whether other programs keep the machine busy meanwhile.
    """

    name: str
    title: str
    what: str
    command: Sequence[str]
    verdict: VerdictResult | None = None
    busy: bool = False


_PICTURES = (
    Picture(
        "within-target",
        "Within target",
        "40 customers spread the load, and nothing is throttled.",
        ("run", "spread.toml", *_FAST),
        VerdictResult.WITHIN_TARGET,
    ),
    Picture(
        "throttled-partition",
        "A throttled partition",
        "All requests have one PartitionKey. The partition moves to another server meanwhile.",
        ("run", "single-partition", *_FAST, *_ONE),
        VerdictResult.THROTTLED,
    ),
    Picture(
        "hot-key",
        "A hot key in a spread",
        "One of twenty tenants has most of the load: the others are not throttled.",
        ("run", "hot-key.toml", *_FAST),
        VerdictResult.THROTTLED,
    ),
    Picture(
        "server-limit",
        "The limit of a server",
        "Each key is small, but all new rows go to the last range of keys, on one server.",
        ("run", "append-only.toml", *_FAST),
        VerdictResult.THROTTLED,
    ),
    Picture(
        "client-limited",
        "Client-limited",
        "Other programs use the machine: the figures are those of the generator.",
        ("run", "spread.toml", "--set", "load.entities_per_s=2000"),
        VerdictResult.CLIENT_LIMITED,
        busy=True,
    ),
    Picture(
        "watched-shop",
        "A watched shop",
        "An application of eight web shops runs unchanged; one shop has most of the orders.",
        (
            *("watch", "--limits", "limits.toml", "--"),
            *(sys.executable, str(_SHOP), "25"),
        ),
        VerdictResult.THROTTLED,
    ),
    Picture(
        "what-if",
        "A what-if",
        "The log of 40 sensors, at twenty times the traffic, under two other keys.",
        (
            *("whatif", str(_LOG / "append-only-log.parquet"), "--rate", "20"),
            *("--keys", str(_LOG / "hash-prefix.toml"), "--keys", str(_LOG / "by-sensor.toml")),
        ),
    ),
    Picture(
        "advice",
        "An advice",
        "Which keys the same log needs at twenty times the traffic: one recommendation.",
        ("advise", str(_LOG / "append-only-log.parquet"), "--rate", "20"),
    ),
)


def make(folder: Path) -> None:
    """Make every report, and the page that leads to them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = ["# Gallery", "", "Reports of real runs on one machine, made by `make gallery`. The"]
    lines += ["limits of the stand-in are a hundredth of the published ones.", ""]
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "limits.toml").write_text(_LIMITS, encoding="utf-8")
        for name, text in _PROFILES.items():
            (Path(work) / f"{name}.toml").write_text(text, encoding="utf-8")
        for picture in _PICTURES:
            page = folder / f"{picture.name}.html"
            said = _report(picture, Path(work), page)
            shown = html.escape(said, quote=False)
            print(f"{page.name}, {page.stat().st_size // 1024:,} KB: {said}", flush=True)
            lines += [f"## {picture.title}", "", picture.what, "", f"> {shown}", ""]
            lines += [f"[Open the report]({page.name})", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _report(picture: Picture, work: Path, page: Path) -> str:
    """Write the page of one report, and return its first sentence.

    Raises `RuntimeError` where the machine was too busy to show what the picture is of.
    """
    if picture.verdict is None:
        said = _harness(picture, work, ("--html", str(page)))
        answer = re.split(
            r"^(which is better|table \S+) ─+\n", said, maxsplit=1, flags=re.MULTILINE
        )[2]
        paragraph = " ".join(answer.partition("\n\n")[0].split())
        return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]
    for number in range(_TRIES):
        out = work / f"{picture.name}-{number}"
        said = _harness(picture, work, ("--out", str(out)))
        for file in out.glob("*/run.json"):
            record = RunRecord.from_json(file.read_bytes())
            if record.verdict.result == picture.verdict:
                shutil.copyfile(file.with_name("report.html"), page)
                return headline(record)
    raise RuntimeError(f"{picture.title} was not shown in {_TRIES} runs:\n{said}")


def _harness(picture: Picture, work: Path, where: Sequence[str]) -> str:
    """What the command of a picture printed; ``where`` are options for its output."""
    ours = len([*itertools.takewhile(lambda word: word != "--", picture.command)])
    command = [sys.executable, "-m", "harness", *picture.command]
    command[3 + ours : 3 + ours] = where
    with _busy_machine() if picture.busy else contextlib.nullcontext():
        return subprocess.run(
            command,
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        ).stdout


@contextlib.contextmanager
def _busy_machine() -> Iterator[None]:
    """Keeps every core busy with other processes; they end by themselves after two minutes."""
    script = "import time\nend = time.time() + 120\nwhile time.time() < end: pass"
    burners = [
        subprocess.Popen([sys.executable, "-c", script]) for _ in range(3 * (os.cpu_count() or 1))
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
