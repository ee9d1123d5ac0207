"""``harness schemes``: explains key schemes, distributions, row keys and scenarios."""

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

from harness.model.errors import SetupError, echoed
from harness.model.operation import Operation
from harness.profile.settings.part import EXAMPLE_RUN_ID
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import PICKERS, Picker, Shape
from harness.workload.keys.row_keys import ROW_KEYS
from harness.workload.keys.scheme import KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES
from harness.workload.scenarios.registry import SCENARIOS
from harness.workload.scenarios.scenario import Scenario, Setting

_EXAMPLES = 5
_PARTITIONS = 12
"""Enough to show that text sorts differently than numbers."""
_DRAWS = 10_000
_SECTION = re.compile(r"\n\n(?:Args|Attributes|Raises):\n")
_LOOKED_AT = 5_000
_DEFAULT_WIDTH, _LEAST_WIDTH = 100, 60


class Schemes:
    name = "schemes"
    help = "list key schemes, distributions, row keys and scenarios, or explain one"
    description = (
        "Lists the values of the settings keys.scheme, keys.distribution, keys.row_keys and "
        "scenario. With NAME it explains one of them with examples: keys in key order, or shares "
        "of the load."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "one", nargs="?", metavar="NAME", help="explain this one, with examples"
        )

    def run(self, args: argparse.Namespace) -> int:
        kinds = _kinds()
        if args.one is None:
            for setting, known in kinds.items():
                print(f"{setting}:", *_listed(known), "", sep="\n")
            return 0
        for setting, known in kinds.items():
            if (named := known.get(args.one)) is not None:
                print(f"{setting} = {args.one!r}", "", named.explained, "", sep="\n")
                print(*named.examples(args.one), sep="\n")
                return 0
        names = ", ".join(itertools.chain.from_iterable(kinds.values()))
        raise SetupError(f"nothing is called {echoed(args.one)}; there are: {names}")


def _listed(known: Mapping[str, _Named]) -> Iterator[str]:
    room = max(map(len, known))
    width = max(_LEAST_WIDTH, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns)
    for name, named in known.items():
        yield from textwrap.wrap(
            _first_sentence(named.explained),
            width,
            initial_indent=f"  {name:{room}}  ",
            subsequent_indent=" " * (room + 4),
        )


def _first_sentence(explained: str) -> str:
    paragraph = " ".join(explained.split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", paragraph, maxsplit=1)[0]


def _scheme_keys(name: str) -> Iterator[str]:
    made = _smallest(name)
    loaded = [
        (made.partition_key(partition), made.row_key(partition, row))
        for partition in range(made.count)
        for row in range(made.rows.of(partition))
    ]
    yield "five loaded keys, in key order:"
    yield from _pairs(sorted(loaded)[:_EXAMPLES])
    drawn = itertools.islice(itertools.cycle(range(made.count)), _EXAMPLES)
    new = [made.inserted(partition, 0, number) for number, partition in enumerate(drawn, start=1)]
    yield "five new ones, in the order they come:"
    yield from _pairs((key.partition_key, key.row_key) for key in new)
    for number, key in enumerate(new, start=1):
        for table, copy in made.copies(key, made.rows.total + number):
            yield f"  in table ...{table}: {copy.partition_key!r}  {copy.row_key!r}"


def _smallest(name: str) -> KeyScheme:
    """A scheme with few keys, and several partitions if it can have them."""
    for partitions, rows in ((_PARTITIONS, 2), (_PARTITIONS, 1), (1, _EXAMPLES)):
        made = RowCounts(partitions, rows)
        if not any(SCHEMES[name].problems(made, 1, None)):
            return SCHEMES[name](made)
    raise SetupError(f"scheme {name} has no small example")


def _row_keys(name: str) -> Iterator[str]:
    made = ROW_KEYS[name](1)
    yield "five loaded ones, in key order:"
    yield from sorted(f"  {made.loaded(0, row, row)!r}" for row in range(_EXAMPLES))
    yield "five new ones, in the order they come:"
    yield from (f"  {made.inserted(0, row + 1, _EXAMPLES)!r}" for row in range(_EXAMPLES))


def _picker(name: str) -> Picker:
    shape = Shape(theta=0.99, hot_operations=0.8, hot_keys=0.2, start=0)
    return PICKERS[name](_EXAMPLES, shape)


def _shares(name: str) -> Iterator[str]:
    picker, rng = _picker(name), random.Random(1)
    drawn = [picker.draw(rng) for _ in range(_DRAWS)]
    what = "ages, 0 is the newest" if picker.newest_first else "partitions"
    yield f"shares of {_DRAWS:,} draws over {_EXAMPLES} {what}, with the default settings:"
    yield from (f"  {number}  {drawn.count(number) / _DRAWS:6.1%}" for number in range(_EXAMPLES))


def _scenario_keys(name: str) -> Iterator[str]:
    scenario = _small(name)
    yield f"does: {', '.join(scenario.actions)}"
    parts: set[tuple[str, str, str]] = set()
    for operation in itertools.islice(scenario.loading(), _LOOKED_AT):
        parts.update(_places(operation))
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
            picker=_picker("uniform"),
            entities=EntityFactory(1024, EXAMPLE_RUN_ID),
        )
        with contextlib.suppress(SetupError):
            return SCENARIOS[name](setting)
    raise SetupError(f"scenario {name} has no small example")


def _places(operation: Operation) -> Iterator[tuple[str, str, str]]:
    for part in operation.parts or (operation,):
        yield part.table, part.partition_key, part.row_key


def _pairs(keys: Iterable[tuple[str, str]]) -> Iterator[str]:
    shown = [(repr(partition), repr(row)) for partition, row in keys]
    room = max((len(partition) for partition, _ in shown), default=0)
    yield from (f"  {partition:{room}}  {row}" for partition, row in shown)


@dataclasses.dataclass(frozen=True, slots=True)
class _Named:
    """A value of a setting, explained by the docstring of its class, and its examples."""

    made: type
    examples: Callable[[str], Iterable[str]]

    @property
    def explained(self) -> str:
        """The docstring without the sections for programmers."""
        told = inspect.cleandoc(self.made.__doc__ or "")
        return _SECTION.split(told, maxsplit=1)[0].replace("`", "")


def _kinds() -> dict[str, dict[str, _Named]]:
    """All values by setting and name."""
    pickers = {name: type(_picker(name)) for name in PICKERS}
    row_keys = {name: type(ROW_KEYS[name](1)) for name in ROW_KEYS}
    kinds: dict[str, tuple[Mapping[str, type], Callable[[str], Iterable[str]]]] = {
        "keys.scheme": (SCHEMES, _scheme_keys),
        "keys.distribution": (pickers, _shares),
        "keys.row_keys": (row_keys, _row_keys),
        "scenario": (SCENARIOS, _scenario_keys),
    }
    return {
        setting: {name: _Named(made, examples) for name, made in known.items()}
        for setting, (known, examples) in kinds.items()
    }
