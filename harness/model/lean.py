"""Frozen dataclasses that are made for every operation, and so have to be cheap to make.

What Python generates for a frozen dataclass calls `object.__setattr__` for each field, and a class
that is called with names gathers them in a dict first: most of the time that making one takes.
A function has neither. It assigns the fields while the object is of a class that allows it; then
the object becomes what it is, and is frozen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")
_NONE = dataclasses.MISSING


def lean(frozen: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that makes what a frozen, slotted dataclass makes, in a third of the time.

    The dataclass must have no subclass. Fields that have to be named may come in order too.

    Raises:
        TypeError: a function makes the default of a field, or there is a ``__post_init__``.
    """
    made = cast("type[Any]", frozen)
    fields = sorted(dataclasses.fields(made), key=lambda field: field.default is not _NONE)
    if hasattr(made, "__post_init__"):
        raise TypeError(f"{made.__name__} has a __post_init__")
    for field in fields:
        if field.default_factory is not _NONE:
            raise TypeError(f"a function makes the default of {made.__name__}.{field.name}")
    # Both, because they are one slot of the type: only so is it that of a plain object again.
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    opened = type(made.__name__, (made,), {"__slots__": (), **plain})
    names: dict[str, Any] = {"_new": object.__new__, "_opened": opened, "_frozen": made}
    parameters = []
    for place, field in enumerate(fields):
        if field.default is _NONE:
            parameters.append(field.name)
        else:
            names[f"_default_{place}"] = field.default
            parameters.append(f"{field.name}=_default_{place}")
    lines = [
        f"def make({', '.join(parameters)}):",
        "    _made = _new(_opened)",
        *(f"    _made.{field.name} = {field.name}" for field in fields),
        "    _made.__class__ = _frozen",
        "    return _made",
    ]
    # As dataclasses itself does it: there is no other way to a function with these parameters.
    exec("\n".join(lines), names)
    make = names["make"]
    make.__name__ = make.__qualname__ = made.__qualname__
    return cast("Callable[_P, _T]", make)
