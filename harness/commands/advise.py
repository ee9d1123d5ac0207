"""``harness advise``: which keys recorded traffic needs, verified by replays on the stand-in."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

import harness
from harness import __version__
from harness.commands.common import (
    Progress,
    parsed_all,
    require_apart,
    say_page,
    write_page,
    writing,
)
from harness.commands.records import read_record
from harness.commands.whatif import Steps, positive_factor, take_question
from harness.gateway.limits import GatewayLimits, limits_path, load_limits
from harness.measure.record.advice import AdviceRecord
from harness.measure.record.record import RunRecord
from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.measure.verdict.client_limit import BUSY_SHARE
from harness.model.errors import SetupError, cut
from harness.model.figures import duration, percent
from harness.model.process import ChildProcess, search_rarely, this_process_runs_on
from harness.report.advise import Given, advice_text, scheme_files
from harness.report.export.run_folder import write_whole
from harness.report.terminal.page import Page, table_of
from harness.report.web.key_pages import advise_page
from harness.trace.advise.advise import Question, advise
from harness.trace.advise.candidates import Candidate
from harness.trace.advise.understanding import fields_of
from harness.trace.reader import Trace
from harness.trace.sources import opened
from harness.trace.whatif.scheme import Scheme, read_scheme
from harness.trace.whatif.whatif import what_if

_TOGETHER = 200_000
"""Operations times schemes from which on processes of their own save time."""
_TRIES = 10
"""How often the traffic is calculated to find a first limit, about."""


class Advise:
    """Says which PartitionKey recorded traffic needs, and what that costs.

    Nothing is sent. TRACE is what `harness trace` reads: a recording, or a log of Azure Storage.
    For each table, the parts of its keys are found: dates, numbers, identifiers. Key schemes are
    made of them: other parts, another order, longer times, buckets. Each is held against the
    published limits in simulated time, as in `harness whatif`. Keys that would break the
    application (lost entities, refused transactions, invalid keys) are no candidates.

    The answer is one recommendation with its reason and its price, and up to two alternatives; or
    that your keys are fine at this rate; or that no key helps.

      harness advise app.parquet                    at the recorded traffic
      harness advise app.parquet --rate 20          at 20 times the traffic
      harness advise app.parquet --write keys/      the schemes as TOML, for whatif and replay
      harness advise app.parquet --fields 'partition_key={region}_{day}'
                                                    if the keys were understood wrongly
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--rate",
            type=positive_factor,
            default=1.0,
            metavar="FACTOR",
            help="ask about so many times the recorded traffic, as replay.speed (default: 1)",
        )
        parser.add_argument(
            "--fields",
            action="append",
            default=[],
            metavar="KEY=TEMPLATE",
            help="what a key is made of: partition_key={tenant}_{day}, or row_key=..., or a "
            "regular expression with named groups; can be repeated",
        )
        parser.add_argument(
            "--write", type=Path, metavar="DIR", help="write the proposed schemes as TOML"
        )
        parser.add_argument(
            "--verify",
            action="store_true",
            help="replay today's keys and the recommended ones of the busiest table that has some "
            "on the stand-in, an emulator that enforces the limits: calculated beside measured",
        )
        take_question(parser, "advise")

    def run(self, args: argparse.Namespace) -> int:
        require_apart(args.html, args.file)
        question = Question(
            limits=load_limits(limits_path(args.limits)),
            limits_name=Path(args.limits).stem,
            rate=args.rate,
            given=dict(parsed_all("--fields", args.fields, fields_of)),
            rows=dict(args.rows),
        )
        search_rarely()
        with (
            opened(args.file, Progress("reading the log"), rows=True) as trace,
            tempfile.TemporaryDirectory(prefix="table-advice-") as scratch,
        ):
            folder = Path(scratch)
            named = {"name": args.file.name, "version": __version__}
            found = advise(trace, question, folder, _calculated, **named)
            verified = _verified(trace, args.file, found, question, folder) if args.verify else None
        if args.write is not None:
            _write(found, args.write)
        rows = [("--rows", f"{table}={rows}" if table else f"{rows}") for table, rows in args.rows]
        fields = [("--fields", text) for text in args.fields]
        given = Given(
            trace=str(args.file),
            limits=args.limits,
            rows=[*itertools.chain(*rows)],
            fields=[*itertools.chain(*fields)],
            folder="" if args.write is None else str(args.write),
        )
        if args.html is not None:
            write_page(args.html, advise_page(found, given))
        if args.json:
            print(found.model_dump_json(indent=1))
        else:
            print(advice_text(found, Page.of_terminal(sys.stdout), given))
            say_page(args.html)
        if verified is not None:
            print(verified, file=sys.stderr if args.json else sys.stdout)
        return 0


def _verified(
    trace: Trace, source: Path, found: AdviceRecord, question: Question, scratch: Path
) -> str:
    """Replays of today's keys and the recommended ones, held against what was calculated."""
    proposals = next((table.proposals for table in found.tables if table.proposals), ())
    if not proposals:
        return "\nNothing to verify: no other keys are recommended."
    if question.limits.units is not None:
        raise SetupError("--verify needs limits of Azure Storage")
    scheme = scratch / f"{proposals[0].name}.toml"
    write_whole(scheme, proposals[0].scheme)
    speed = replay_speed(found.operations, found.seconds, question.rate)
    each = duration(found.seconds / speed)
    slower = "" if speed == question.rate else f" at x {speed:.3g}, with limits as much lower"
    print(f"verifying: two replays of {each} each{slower}", file=sys.stderr, flush=True)
    rows = verify(trace, source, (None, scheme), question.limits, question.rate, speed, scratch)
    page = Page.of_terminal(sys.stdout)
    lines = [[*map(page.show, one.row)] for one in rows]
    title = f"calculated and measured{slower}, without retries"
    late = max(one.busy for one in rows)
    said = [Text(f"The machine was too busy for {percent(late)} of the time: it sent late.")]
    shown: list[RenderableType] = [table_of(COLUMNS, lines)]
    shown += said if late >= BUSY_SHARE else []
    return page.render(page.section(title, *shown))


def _calculated(
    question: Question,
    trace: Trace,
    tried: Sequence[Candidate],
    first_limits: bool,
    backoff: bool,
) -> WhatIfRecord:
    """Calculates schemes, in several processes where that saves time, and shows the progress."""
    steps = Steps(trace.operations)
    work = trace.operations * len(tried) * (_TRIES if first_limits else 1)
    processes = len(this_process_runs_on().cores) if work >= _TOGETHER else 1
    try:
        return question.asked(trace, tried, first_limits, backoff, steps, processes)
    finally:
        steps.end()


def _write(found: AdviceRecord, folder: Path) -> None:
    """Write the proposed schemes; a `SetupError` says why they cannot be written."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, scheme in itertools.chain(*scheme_files(found)):
            write_whole(folder / name, scheme)


_OPERATIONS_PER_S = 300.0
"""More is beyond what the emulator and the generator serve on time on a small machine."""
_MOST_BURST_S = 3600.0
_PACKAGES = Path(harness.__file__).parents[1]
_TOLD = 300
_ENDED = (0, 3)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Keys, calculated and measured.

    Attributes:
        throttled: Share of the requests that were throttled: calculated, and measured.
        hottest: Share of the hottest partition of what was served: calculated, and measured.
        at_least: Whether it may have had more: not all partitions were counted from the start, or
            queries read several.
        busy: Share of the seconds in which the machine was too busy to send on time.
    """

    name: str
    throttled: tuple[float, float]
    hottest: tuple[float, float]
    at_least: bool
    busy: float

    @property
    def row(self) -> tuple[str, ...]:
        *shares, hottest = map(percent, (*self.throttled, *self.hottest))
        return (self.name, *shares, f"{'≥' * self.at_least}{hottest}")


COLUMNS = ("", "throttled", "measured", "hottest partition", "measured")


def replay_speed(operations: int, seconds: float, rate: float) -> float:
    """The speed of a replay that asks about ``rate`` times the traffic."""
    most = _OPERATIONS_PER_S * max(seconds, 1.0) / max(1, operations)
    return min(rate, most)


def slowed(limits: GatewayLimits, factor: float) -> GatewayLimits:
    """Limits that decide about slower traffic as ``limits`` do about all of it.

    Time passes by ``factor`` as fast: rates are smaller, bursts and waits longer.
    """

    def rates(of: str) -> object:
        section = getattr(limits, of)
        changed = {
            "entities_per_s": section.entities_per_s * factor,
            "burst_s": min(_MOST_BURST_S, section.burst_s / factor),
        }
        return section.model_copy(update=changed)

    moving = limits.moving
    waits = {name: min(_MOST_BURST_S, value / factor) for name, value in moving}
    return limits.model_copy(
        update={
            **{name: rates(name) for name in ("partition", "account", "servers")},
            "moving": moving.model_copy(update=waits),
        }
    )


def verify(
    trace: Trace,
    source: Path,
    schemes: Sequence[Path | None],
    limits: GatewayLimits,
    rate: float,
    speed: float,
    scratch: Path,
) -> list[Verified]:
    """Replay a trace, whose file or log is ``source``, under each scheme; None is today's keys.

    A `SetupError` has the end of the output of a replay that failed.
    """
    limits = slowed(limits, speed / rate)
    file = scratch / "limits.toml"
    file.write_text(_toml(limits.model_dump(include={"partition", "account", "servers", "moving"})))
    known: list[Scheme] = [read_scheme(path) for path in schemes if path is not None]
    calculated = what_if(
        trace, known, limits, name=source.name, limits_name=file.stem, rate=speed
    ).schemes
    parts = iter(calculated[1:])
    return [
        beside(
            calculated[0] if path is None else next(parts),
            _replayed(source, path, file, speed, scratch / f"out-{place}"),
        )
        for place, path in enumerate(schemes)
    ]


def beside(part: SchemePart, record: RunRecord) -> Verified:
    """What was calculated of keys, beside what a replay measured."""
    throttled = sum(record.throttled.values()) / max(1, record.counts.attempts)
    # Where queries over several partitions read is not known.
    single = [one for one in record.partitions if not one.partition.whole_table]
    # Of a partition that was not counted from the start, those are known that were counted.
    counted = (one.estimate.at_least if one.estimate else one.entities for one in single)
    hottest = max(counted, default=0)
    return Verified(
        name=part.name,
        throttled=(part.once.ratio, throttled),
        hottest=(part.once.hottest_share, hottest / max(1, record.counts.entities)),
        at_least=record.partitions_folded is not None or len(single) < len(record.partitions),
        busy=record.generator.machine_busy_share,
    )


def _replayed(
    source: Path, scheme: Path | None, limits: Path, speed: float, folder: Path
) -> RunRecord:
    settings = {
        "replay.trace": str(source.absolute()),
        "replay.speed": f"{speed:g}",
        **({} if scheme is None else {"replay.keys": str(scheme.absolute())}),
        "retry.strategy": "none",
        "loading.settle_s": "0",
        "conditions": "[]",
    }
    given = [one for pair in settings.items() for one in ("--set", "=".join(pair))]
    command = [sys.executable, "-m", "harness", "run", "replay", "--session", "wire", *given]
    command += ["--throttling", str(limits), "--out", str(folder), "--metrics-port", "0"]
    folder.mkdir()
    said = folder / "output.txt"
    with said.open("wb") as output:
        environ = {"PYTHONPATH": str(_PACKAGES)}
        with ChildProcess(command, stdout=output, cwd=folder, environ=environ) as child:
            child.wait()
    records = sorted(folder.glob("*/run.json")) if child.exit_code in _ENDED else []
    record = read_record(records[-1]) if records else None
    if record is None:
        end = said.read_text(encoding="utf-8", errors="replace").strip()[-_TOLD:]
        raise SetupError(f"a replay ended with exit code {child.exit_code}: {cut(end)}")
    if not record.counts.attempts:
        raise SetupError(f"a replay sent nothing, try again: {record.verdict.sentence}")
    return record


def _toml(sections: Mapping[str, Mapping[str, float]]) -> str:
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    return "\n".join(lines) + "\n"
