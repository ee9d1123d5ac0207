"""Compiles the templates of a key design, because keys are made for every operation.

The variables of the expressions are ``u`` (number of the cell), ``w`` (number of the values that
are in other keys only), ``s`` (number in the sequence) and ``t`` (time in ticks).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.workload.keys.fields import NOW, Numbered, Time, ValueSet, label, span
from harness.workload.keys.layout import Layout
from harness.workload.keys.scattering import guid, scattered
from harness.workload.keys.template import PERIODS, Reference, Template, function_named
from harness.workload.simulated_time import MAX_TICKS, moment_of

_TABLED = 50_000
"""Values of a field up to which the result of a function for each is kept."""
_PLAIN = function_named("")
_INVERTED_DIGITS = 16
_LAST = 10**_INVERTED_DIGITS - 1


class Expressions:
    """The keys of a layout as functions."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._names: dict[str, Any] = {"scattered": scattered, "guid": guid}
        self._time_at = ""
        self._places = self._indexes()
        spans = self._spans()
        place, self._spans_of = self._time_at, spans
        self._period_of: Callable[[int], int] = eval(f"lambda u: {place or '0'}")
        self.partition_key: Callable[[int, int, int, int], str] = self.function(
            "u, w, s, t", {}, (layout.keys.partition_key,), {}
        )

    def function(
        self,
        arguments: str,
        steps: Mapping[str, str],
        templates: Sequence[Template],
        names: Mapping[str, Any],
        made: Callable[..., Any] | None = None,
        *,
        new: bool = False,
    ) -> Any:
        """A function that makes the key of a template; or what ``made`` makes of the keys of two.

        Args:
            arguments: Names of its arguments, divided by commas.
            steps: How the variables, and what they depend on, follow from the arguments, in order.
            names: What the steps name.
            new: The entity is new: its time is now.
        """
        texts = [self._text(template, new=new) for template in templates]
        # By place: arguments with names take a fifth longer.
        result = texts[0] if made is None else f"made({texts[0]}, {texts[1]})"
        lines, needed = [], set(re.findall(r"\b[a-z]\b", result))
        for name, step in reversed(list(steps.items())):
            if name in needed:
                lines.append(f"    {name} = {step}")
                needed.update(re.findall(r"\b[a-z]\b", step))
        source = "\n".join((f"def key({arguments}):", *reversed(lines), f"    return {result}"))
        place = {**self._names, **names, "made": made}
        # Made of numbers, of names from here, and of the texts of a template as literals.
        exec(source, place)
        return place["key"]

    def ticks(self, cell: int, row: int, rows: int) -> int:
        """Time of a row of a cell that has so many rows, spread evenly over its period.

        Rows of different cells are ticks apart.
        """
        begin, length = self._spans_of[self._period_of(cell)]
        return begin + (2 * row + 1) * length // (2 * rows) + cell

    def _spans(self) -> list[tuple[int, int]]:
        time, starts = self._layout.time, self._layout.starts
        if time is None:
            return [(0, 0)]
        return [span(*pair) for pair in itertools.pairwise([*(starts or [time.begin]), NOW])]

    def _indexes(self) -> dict[str, str]:
        """The number of the value of each field, as an expression."""
        layout, places = self._layout, {}
        sizes = [len(field.values) for field in layout.further]
        of_cells = zip("u" * len(layout.sizes), layout.dimensions, layout.sizes, strict=True)
        of_others = zip("w" * len(sizes), layout.further, sizes, strict=True)
        for group in (list(of_cells), list(of_others)):
            stride = 1
            for number, (variable, field, size) in enumerate(reversed(group)):
                expression = f"{variable} // {stride}" if stride > 1 else variable
                if number < len(group) - 1:
                    expression = f"({expression}) % {size}"
                places[field.name] = expression
                if isinstance(field, Time):
                    self._time_at = expression
                stride *= size
        return places

    def _text(self, template: Template, *, new: bool) -> str:
        parts = [
            repr(part) if isinstance(part, str) else self._reference(part, new=new)
            for part in template.parts
        ]
        return " + ".join(parts)

    def _reference(self, reference: Reference, *, new: bool) -> str:
        function = reference.function
        if len(reference.names) == 1:
            field = self._layout.fields[reference.names[0]]
            if isinstance(field, ValueSet):
                return self._value(field, reference)
            if isinstance(field, Time):
                return self._time(reference, new=new)
            return self._number(reference)
        alone = (Reference((name,), _PLAIN) for name in reference.names)
        each = " + ".join(self._reference(one, new=new) for one in alone)
        return f"{self._named(function.of)}({each})" if function.text else each

    def _value(self, field: ValueSet, reference: Reference) -> str:
        function, place, values = reference.function, self._places[field.name], field.values
        if not function.text and isinstance(values, Numbered):
            return f"{values.prefix!r} + str({place}).zfill({values.width})"
        if len(values) <= _TABLED:
            return f"{self._named([function.of(value) for value in values])}[{place}]"
        value = f"{self._named(values)}[{place}]"
        return f"{self._named(function.of)}({value})" if function.text else value

    def _time(self, reference: Reference, *, new: bool) -> str:
        function, layout = reference.function, self._layout
        if function.name in PERIODS:
            if new:
                return repr(label(NOW, function.name))
            if layout.finest and PERIODS.index(function.name) <= PERIODS.index(layout.finest):
                labels = [label(moment, function.name) for moment in layout.starts]
                return f"{self._named(labels)}[{self._time_at}]"
            named = self._named(lambda ticks: label(moment_of(ticks), function.name))
            return f"{named}(t)"
        if function.name == "ticks":
            return "str(t).zfill(19)"
        if function.name == "inverted":
            return f"str({MAX_TICKS} - t).zfill(19)"
        moment = f"{self._named(_moment)}(t)"
        return f"{self._named(function.of)}({moment})" if function.text else moment

    def _number(self, reference: Reference) -> str:
        function = reference.function
        if function.name == "inverted":
            return f"str({_LAST} - s).zfill({_INVERTED_DIGITS})"
        if function.name == "pad":
            return f"str(s).zfill({function.size})"
        if function.name == "guid":
            return "guid(scattered(s))"
        return f"{self._named(function.of)}(str(s))" if function.text else "str(s)"

    def _named(self, thing: Any) -> str:
        name = f"thing{len(self._names)}"
        self._names[name] = thing
        return name


def _moment(ticks: int) -> str:
    """A time such as 2025-12-31T12:30:00.0000000Z."""
    return f"{moment_of(ticks):%Y-%m-%dT%H:%M:%S}.{ticks % 10_000_000:07}Z"
