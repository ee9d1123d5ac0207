"""The fields of a profile, and the keys that are made of them.

    [fields.customer]
    values = 1000
    distribution = "zipfian"
    [fields.time]
    history = "12 months"
    [keys]
    partition_key = "{customer}_{time:month}"
    row_key = "{time:inverted}-{row:pad9}"

``{row}`` is there without being named: the number of the entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from harness.model.entity import key_problem
from harness.model.errors import SetupError, echoed
from harness.model.figures import counted
from harness.profile.settings.parts import Count, Part, Share
from harness.profile.settings.value_files import read_values
from harness.workload.keys.design import KeyDesign, design_problems
from harness.workload.keys.fields import UNITS, Field, Number, Numbered, Packed, Time, ValueSet
from harness.workload.keys.layout import Layout, Templates
from harness.workload.keys.pickers import Shape
from harness.workload.keys.template import parse_template

ROW = "row"
"""The field that every profile has: the number of an entity."""
_HISTORY = re.compile(rf"([1-9]\d{{0,5}}) ({'|'.join(unit[:-1] for unit in UNITS)})s?")
_MOST_YEARS = {"hours": 24 * 366, "days": 366, "weeks": 53, "months": 12, "years": 1}
_LONGEST_YEARS = 100
_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_RESERVED = ("partition_key", "row_key")
_KINDS = ("values", "from", "history", "sequence")
_OF_VALUES = ("prefix", "column", "weights", "hot_share", "hot_values")
# Told apart beforehand, so that a mistake in one form is not reported for the other form too.
_RowsOfEach = Annotated[
    Annotated[Count, pydantic.Tag("number")] | Annotated[tuple[Count, ...], pydantic.Tag("list")],
    pydantic.Discriminator(lambda rows: "list" if isinstance(rows, tuple) else "number"),
]


def _values_problem(values: object) -> object:
    if isinstance(values, str):
        raise ValueError(f"write a number of values, or a list of them: values = [{values!r}]")
    return values


_Values = Annotated[
    Annotated[Count, pydantic.Tag("number")] | Annotated[tuple[str, ...], pydantic.Tag("list")],
    pydantic.Discriminator(lambda values: "list" if isinstance(values, tuple) else "number"),
    pydantic.BeforeValidator(_values_problem),
]


class FieldSettings(Part):
    """A field of the entities: a set of values, the time, or a sequence."""

    model_config = pydantic.ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    values: _Values | None = None
    """Number of values, named like customer-000; or the values themselves."""
    from_: Annotated[str | None, pydantic.Field(alias="from", min_length=1)] = None
    """A CSV file of values, relative to the profile: with a column of weights, or one value a line,
    which counts as often as it occurs."""
    column: str | None = None
    """The column of the file that has the values; default: the first."""
    weights: str | None = None
    """The column of the file that has the weights. Default: the second of two if no column is
    named; otherwise a value weighs as much as it occurs."""
    prefix: str | None = None
    """Start of numbered values; default: the name of the field and a hyphen."""
    history: str | None = None
    """A time: how far the loaded entities go back, such as "12 months". Inserts are now."""
    sequence: bool = False
    """A number that each entity has alone, over all workers."""
    distribution: (
        Literal["uniform", "zipfian", "hot", "latest", "sequential"] | None  # see PICKERS
    ) = None
    """How the next value is chosen. Default: uniform; of a time latest: reads prefer the newest."""
    theta: Annotated[float, pydantic.Field(ge=0, le=5)] = 0.99
    """Skew of zipfian and latest: 0 is none."""
    hot_share: Share = 0.8
    """hot: share of the operations that go to the hot values."""
    hot_values: Count = 1
    """hot: number of hot values."""

    def problems(self, name: str) -> Iterator[str]:
        """What does not fit together, with the setting and a remedy."""
        place = f"fields.{name}"
        settings = {kind: getattr(self, "from_" if kind == "from" else kind) for kind in _KINDS}
        given = [kind for kind, value in settings.items() if value not in (None, False)]
        if len(given) != 1:
            what = " and ".join(given) if given else "nothing"
            yield (
                f"{place}: it has {what}; a field has one of values, from, history, "
                "and sequence = true"
            )
            return
        [kind] = given
        defaults = type(self).model_fields
        strange = [one for one in _OF_VALUES if getattr(self, one) != defaults[one].default]
        if kind in ("values", "from") and self.distribution != "hot":
            for setting in filter(strange.__contains__, ("hot_share", "hot_values")):
                yield f'{place}.{setting}: it needs distribution = "hot"'
        skewed = ("zipfian", "latest") if kind != "history" else ("zipfian", "latest", None)
        if self.theta != defaults["theta"].default and self.distribution not in skewed:
            yield f'{place}.theta: it needs distribution = "zipfian" or "latest"'
        allowed = {"values": _OF_VALUES[:1] + _OF_VALUES[3:], "from": _OF_VALUES[1:]}.get(kind, ())
        if isinstance(self.values, tuple):
            allowed = allowed[1:]
        for setting in strange:
            if setting not in allowed:
                beside = "a list of values" if isinstance(self.values, tuple) else kind
                yield f"{place}.{setting}: it has no meaning beside {beside}; leave it out"
        if isinstance(self.values, tuple) and len(set(self.values)) < len(self.values):
            yield f"{place}.values: a value occurs twice; each is named once"
        if self.values == ():
            yield f"{place}.values: name at least one value"
        # Those of a file are checked where it is read, each with its line.
        texts = self.values if isinstance(self.values, tuple) else (self.prefix or "",)
        for text in texts:
            if problem := key_problem(text):
                yield f"{place}: the value {echoed(text)} {problem}"
                break
        if self.weights is not None and self.distribution is not None:
            yield f"{place}.distribution: the weights say how values are drawn; leave one out"
        if self.history is not None:
            yield from self._history_problems(place)
        if kind in ("history", "sequence") and self.distribution not in (None, "uniform", "latest"):
            yield (
                f"{place}.distribution: reads of a {'time' if kind == 'history' else kind} are "
                f"uniform or latest, not {self.distribution}"
            )

    def _history_problems(self, place: str) -> Iterator[str]:
        match = _HISTORY.fullmatch(self.history or "")
        if match is None:
            yield (
                f'{place}.history: write a number and a unit, such as "12 months"; the units are '
                f"{', '.join(UNITS)}"
            )
        elif int(match[1]) > _LONGEST_YEARS * _MOST_YEARS[f"{match[2]}s"]:
            yield f"{place}.history: it can be {_LONGEST_YEARS} years at most"

    def values_found(self) -> str:
        """What was read from the file: a header that was taken for a value is the first of them."""
        found = read_values(self.from_ or "", self.column, self.weights).values
        ends = f"{echoed(found[0])} to {echoed(found[len(found) - 1])}"
        return f"{counted(len(found), 'value')} of {Path(self.from_ or '').name}, {ends}"

    def made(self, name: str) -> Field:
        """The field; a `SetupError` if its file cannot be read. It has no `problems`."""
        if self.sequence:
            return Number(name=name, theta=self.theta if self.distribution == "latest" else None)
        if self.history is not None:
            match = _HISTORY.fullmatch(self.history)
            assert match is not None
            theta = None if self.distribution == "uniform" else self.theta
            return Time(name=name, count=int(match[1]), unit=f"{match[2]}s", theta=theta)
        shape = Shape(theta=self.theta, hot_share=self.hot_share, hot_values=self.hot_values)
        distribution = self.distribution or "uniform"
        if self.from_ is not None:
            found = read_values(self.from_, self.column, self.weights)
            weights = None if self.distribution is not None else found.weights
            return ValueSet(
                name=name,
                values=found.values,
                distribution=distribution,
                shape=shape,
                weights=weights,
            )
        assert self.values is not None
        prefix = f"{name}-" if self.prefix is None else self.prefix
        values = (
            Numbered(prefix, self.values) if isinstance(self.values, int) else Packed(self.values)
        )
        return ValueSet(name=name, values=values, distribution=distribution, shape=shape)


class IndexKeys(Part):
    """The keys of a second table that has every entity too: the index table pattern."""

    partition_key: str
    """A template, as in [keys]."""
    row_key: str
    """A template, as in [keys]."""


class Keys(Part):
    """The keys of the entities, as templates over the fields; see `harness schemes`."""

    partition_key: str = "p0"
    """Text, and fields in braces, such as "{customer}_{time:month}"; see `harness schemes`."""
    row_key: str = "{row:pad8}"
    """The same; {row}, the number of the entity, needs no [fields]."""
    rows_per_partition: _RowsOfEach | None = None
    """Entities loaded for each combination of the fields in the PartitionKey; a list gives one
    number for each. Default: 1000, or fewer, so that 20,000 are loaded in all."""
    partitions: Count | None = None
    """Entities loaded where each has a partition of its own; default: 2000."""
    index: IndexKeys | None = None
    """The keys of a second table, whose name ends in Index."""


def design_of(fields: Mapping[str, FieldSettings], keys: Keys) -> KeyDesign:
    """The key design of a profile without `key_problems`; a `SetupError` of a file of values."""
    made = _fields(fields, keys)
    return KeyDesign(
        list(made.values()),
        _templates(keys, made),
        rows=keys.rows_per_partition,
        partitions=keys.partitions,
        index=None if keys.index is None else _templates(keys.index, made),
    )


def key_problems(fields: Mapping[str, FieldSettings], keys: Keys) -> Iterator[str]:
    """Why `design_of` would fail, as sentences with the setting and a remedy."""
    wrong = [
        *_name_problems(fields),
        *(problem for name, field in fields.items() for problem in field.problems(name)),
    ]
    known = [*fields, ROW]
    for place, part in (("keys", keys), ("keys.index", keys.index)):
        for setting in ("partition_key", "row_key"):
            try:
                parse_template(getattr(part, setting, ""), known)
            except ValueError as error:
                wrong.append(f"{place}.{setting}: {error}")
    yield from wrong
    if wrong:
        return
    made = _fields(fields, keys)
    index = None if keys.index is None else _templates(keys.index, made)
    layout = Layout(list(made.values()), _templates(keys, made), index)
    yield from design_problems(layout, keys.rows_per_partition, keys.partitions)


def _name_problems(fields: Mapping[str, FieldSettings]) -> Iterator[str]:
    for name in fields:
        if not re.match(_NAME, name):
            yield f"fields.{echoed(name)}: a name has letters, digits and _, and no digit first"
        elif name in _RESERVED:
            yield f"fields.{name}: in a what-if this is the recorded key; choose another name"


def _fields(fields: Mapping[str, FieldSettings], keys: Keys) -> dict[str, Field]:
    made = {}
    for name, field in fields.items():
        try:
            made[name] = field.made(name)
        except SetupError as error:
            raise SetupError(f"fields.{name}: {error}") from error
    texts = [keys.partition_key, keys.row_key]
    if keys.index is not None:
        texts += [keys.index.partition_key, keys.index.row_key]
    if ROW not in made and any(
        ROW in reference.names
        for text in texts
        for reference in parse_template(text, [*made, ROW]).references
    ):
        made[ROW] = Number(name=ROW)
    return made


def _templates(keys: Keys | IndexKeys, fields: Mapping[str, Field]) -> Templates:
    return Templates(
        partition_key=parse_template(keys.partition_key, fields),
        row_key=parse_template(keys.row_key, fields),
    )
