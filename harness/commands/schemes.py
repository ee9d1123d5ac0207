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

from harness.model.errors import SetupError, did_you_mean, echoed
from harness.profile.settings.parts import EXAMPLE_RUN_ID
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
    """Lists the values of keys.scheme, keys.distribution, keys.row_keys and scenario.

    With NAME it explains one of them with examples: keys in key order, or shares of the load.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "one", nargs="?", metavar="NAME", help="explain this value, with examples"
        )

    def run(self, args: argparse.Namespace) -> int:
        kinds = _kinds()
        for kind in kinds:
            if args.one is None:
                print(f"{kind.setting}:", *kind.listed(), "", sep="\n")
            elif args.one in kind.classes:
                print(f"{kind.setting} = {args.one!r}", "", kind.explained(args.one), "", sep="\n")
                print(*kind.examples(args.one), sep="\n")
                return 0
        if args.one is not None:
            names = list(itertools.chain.from_iterable(kind.classes for kind in kinds))
            near = did_you_mean(args.one, names) or "."
            raise SetupError(
                f"unknown name {echoed(args.one)}{near} The names are: {', '.join(names)}"
            )
        return 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """The values of a setting: their classes, and what prints examples of one."""

    setting: str
    classes: Mapping[str, type]
    examples: Callable[[str], Iterable[str]]

    def explained(self, name: str) -> str:
        """The docstring of the class, without the sections for programmers."""
        text = inspect.cleandoc(self.classes[name].__doc__ or "")
        return _SECTION.split(text, maxsplit=1)[0].replace("`", "")

    def listed(self) -> Iterator[str]:
        """Each name with its first sentence."""
        room = max(map(len, self.classes))
        width = max(_LEAST_WIDTH, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns)
        for name in self.classes:
            paragraph = " ".join(self.explained(name).split("\n\n")[0].split())
            yield from textwrap.wrap(
                re.split(r"(?<=[.])\s", paragraph, maxsplit=1)[0],
                width,
                initial_indent=f"  {name:{room}}  ",
                subsequent_indent=" " * (room + 4),
            )


def _kinds() -> list[_Kind]:
    pickers = {name: type(_picker(name)) for name in PICKERS}
    row_keys = {name: type(ROW_KEYS[name](1)) for name in ROW_KEYS}
    return [
        _Kind("keys.scheme", SCHEMES, _scheme_keys),
        _Kind("keys.distribution", pickers, _shares),
        _Kind("keys.row_keys", row_keys, _row_keys),
        _Kind("scenario", SCENARIOS, _scenario_keys),
    ]


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
    yield "five new keys, in the order of insertion:"
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
    yield "five loaded keys, in key order:"
    yield from sorted(f"  {made.loaded(0, row, row)!r}" for row in range(_EXAMPLES))
    yield "five new keys, in the order of insertion:"
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
        for part in operation.parts or (operation,):
            parts.add((part.table, part.partition_key, part.row_key))
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


def _pairs(keys: Iterable[tuple[str, str]]) -> Iterator[str]:
    shown = [(repr(partition), repr(row)) for partition, row in keys]
    room = max((len(partition) for partition, _ in shown), default=0)
    yield from (f"  {partition:{room}}  {row}" for partition, row in shown)
