"""``harness schemes``: explains templates, documented key designs, distributions and scenarios."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import itertools
import random
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.commands.common import ONE_OBJECT
from harness.model.errors import SetupError, did_you_mean, echoed
from harness.profile.designs import Documented, documented_designs
from harness.profile.profile_loader import parse
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.report.export.output import CommandOutput
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.design import KeyDesign
from harness.workload.keys.pickers import PICKERS, Picker, Shape, Uniform
from harness.workload.keys.template import FUNCTIONS
from harness.workload.operation_source import steps_of
from harness.workload.scenarios.registry import SCENARIOS
from harness.workload.scenarios.scenario import Scenario, Setting

_EXAMPLES = 5
_SECTION = re.compile(r"\n\n(?:Args|Attributes|Raises):\n")
_LOOKED_AT = 5_000
_DEFAULT_WIDTH, _LEAST_WIDTH = 100, 60
_TEMPLATES = """\
A key is a template: text, and fields in braces. A profile names the fields of its data, and how
each is drawn; the keys follow from them:

  [fields.customer]
  values = 1000                 # customer-000 ...; or a list; or from = "customers.csv"
  distribution = "zipfian"
  [fields.time]
  history = "12 months"         # loaded entities go back so far; inserts are now
  [keys]
  partition_key = "{customer}_{time:month}"
  row_key = "{time:inverted}-{row:pad9}"

{row} is there without being named: the number of the entity, unique over all workers. A field with
sequence = true is one more of this kind. {a+b:hash4} joins the values of two fields. What-if and
replay take the same templates, over the recorded {partition_key} and {row_key}.
"""


class Schemes:
    """Explains the templates of keys, and lists functions, documented designs and distributions.

    With NAME it shows one design, distribution or scenario with examples.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "one", nargs="?", metavar="NAME", help="show this design, with examples of its keys"
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("schemes"))

    def run(self, args: argparse.Namespace) -> int:
        kinds = _kinds()
        if args.one is None:
            parts = [_TEMPLATES, "what can be taken of a field, after a colon:"]
            parts += [*_listed(FUNCTIONS), ""]
            for kind in kinds:
                parts += [f"{kind.title}:", *_listed(kind.lines), ""]
        elif shown := [kind.shown for kind in kinds if args.one in kind.lines]:
            parts = [*shown[0](args.one)]
        else:
            names = list(itertools.chain.from_iterable(kind.lines for kind in kinds))
            near = did_you_mean(args.one, names) or "."
            raise SetupError(
                f"unknown name {echoed(args.one)}{near} The names are: {', '.join(names)}"
            )
        if args.json:
            designs, distributions, scenarios = (dict(kind.lines) for kind in kinds)
            output = SchemesOutput(
                text="\n".join(parts),
                functions=dict(FUNCTIONS),
                designs=designs,
                distributions=distributions,
                scenarios=scenarios,
            )
            print(output.to_json(), end="")
        else:
            print(*parts, sep="\n")
        return 0


class SchemesOutput(CommandOutput):
    """What keys are made of: names, each with a line about it; ``text`` is what is shown."""

    text: str
    functions: dict[str, str]
    designs: dict[str, str]
    distributions: dict[str, str]
    scenarios: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """What has names: a line about each, and what prints one with examples."""

    title: str
    lines: Mapping[str, str]
    shown: Callable[[str], Iterable[str]]


def _kinds() -> list[_Kind]:
    designs = {
        one.name: f"{one.settings['keys']['partition_key']}  {one.question}"
        for one in documented_designs()
    }
    pickers = {name: _first_sentence(type(_picker(name))) for name in PICKERS}
    scenarios = {name: _first_sentence(made) for name, made in SCENARIOS.items()}
    return [
        _Kind(
            "key designs of the documents, each a profile, with the PartitionKey",
            designs,
            _shown_design,
        ),
        _Kind("distribution of a field", pickers, _shown_picker),
        _Kind("scenario", scenarios, _shown_scenario),
    ]


def _listed(lines: Mapping[str, str]) -> Iterator[str]:
    """Each name with its line."""
    room = max(map(len, lines))
    width = max(_LEAST_WIDTH, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns)
    for name, line in lines.items():
        yield from textwrap.wrap(
            line,
            width,
            initial_indent=f"  {name:{room}}  ",
            subsequent_indent=" " * (room + 4),
        )


def _explained(made: type) -> str:
    """The docstring of a class, without the sections for programmers."""
    text = inspect.cleandoc(made.__doc__ or "")
    return _SECTION.split(text, maxsplit=1)[0].replace("`", "")


def _first_sentence(made: type) -> str:
    paragraph = " ".join(_explained(made).split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", paragraph, maxsplit=1)[0]


def _shown_design(name: str) -> Iterator[str]:
    documented = next(one for one in documented_designs() if one.name == name)
    yield from (f"{name}: {documented.question}", "")
    yield from (*textwrap.wrap(documented.source, _DEFAULT_WIDTH), "")
    yield from (*documented.toml.splitlines(), "")
    design = _design(documented)
    rows = [
        (partition, row)
        for partition in range(min(design.count, _EXAMPLES))
        for row in range(min(design.rows.of(partition), _EXAMPLES))
    ]
    yield "five loaded keys, in key order:"
    loaded = [design.key(*place) for place in rows]
    yield from _pairs(sorted((key.partition_key, key.row_key) for key in loaded)[:_EXAMPLES])
    draw, rng = design.picker(), random.Random(1)
    drawn = [draw(rng) for _ in range(_EXAMPLES)]
    yield "five new keys, in the order of insertion:"
    new = [design.new(one, 0, number) for number, one in enumerate(drawn, start=1)]
    yield from _pairs((key.partition_key, key.row_key) for key in new)
    for number, one in enumerate(drawn, start=1):
        for table, copy in design.new_copies(one, 0, number):
            yield f"  in table ...{table}: {copy.partition_key!r}  {copy.row_key!r}"


def _design(documented: Documented) -> KeyDesign:
    return parse({"question": documented.question, **documented.settings}, source="").design


def _picker(name: str) -> Picker:
    return PICKERS[name](_EXAMPLES, Shape())


def _shown_picker(name: str) -> Iterator[str]:
    picker = _picker(name)
    yield from (f"distribution = {name!r}", "", _explained(type(picker)), "")
    yield f"shares of {_EXAMPLES} values, with the default settings:"
    yield from (f"  {number}  {share:6.1%}" for number, share in enumerate(picker.shares()))


def _shown_scenario(name: str) -> Iterator[str]:
    yield from (f"scenario = {name!r}", "", _explained(SCENARIOS[name]), "")
    scenario = _small(name)
    yield f"does: {', '.join(scenario.actions)}"
    parts: set[tuple[str, str, str]] = set()
    for operation in itertools.islice(scenario.loading(), _LOOKED_AT):
        for part in operation.parts or (operation,):
            parts.add((part.table, part.partition_key, part.row_key))
    if not parts:
        rng = random.Random(1)
        yield "nothing is loaded; the first operations, and where they go:"
        for _ in range(_EXAMPLES):
            first = next(steps_of(scenario.next_task(rng)))
            yield f"  {first.label}  {first.partition_key!r}"
        return
    for table in scenario.tables:
        keys = sorted((partition, row) for place, partition, row in parts if place == table)
        named = f"table ...{table}" if table else "the table"
        yield f"{named}, {len(keys[:_EXAMPLES]) or 'no'} loaded keys, in key order:"
        yield from _pairs(keys[:_EXAMPLES])


def _small(name: str) -> Scenario:
    """A scenario with few rows; some accept only one number of rows."""
    for rows in (_EXAMPLES, 2, 1):
        setting = Setting(
            partitions=_EXAMPLES,
            rows=rows,
            picker=Uniform(_EXAMPLES),
            entities=EntityFactory(1024, EXAMPLE_RUN_ID),
        )
        with contextlib.suppress(SetupError):
            return SCENARIOS[name](setting)
    raise SetupError(f"scenario {name} has no small example")


def _pairs(keys: Iterable[tuple[str, str]]) -> Iterator[str]:
    shown = [(repr(partition), repr(row)) for partition, row in keys]
    room = max((len(partition) for partition, _ in shown), default=0)
    yield from (f"  {partition:{room}}  {row}" for partition, row in shown)
