"""Frozen dataclasses that are made for every operation, and so have to be cheap to make.

What Python generates for a frozen dataclass calls `object.__setattr__` for each field, which is
most of the time that making one takes. Here the fields are assigned while the object is of a class
that allows it; then it becomes what it is, and is frozen.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

_T = TypeVar("_T")


def lean(frozen: type[_T]) -> type[_T]:
    """Make a frozen, slotted dataclass cheap to make; nothing else about it changes.

    To be written above ``@dataclasses.dataclass(frozen=True, slots=True, ...)``. The class must
    have no field that a function makes the default of, no ``__post_init__`` and no subclass.
    """
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    generated: Any = vars(frozen)["__init__"]
    # Both, because they are one slot of the type: only so is it that of a plain object again.
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    opened = type(frozen.__name__, (frozen,), {"__slots__": (), **plain})
    parameters = [field.name for field in fields if not field.kw_only]
    named = [field.name for field in fields if field.kw_only]
    signature = ", ".join(["self", *parameters, *(["*", *named] if named else [])])
    lines = [
        f"def __init__({signature}):",
        "    become(self, '__class__', opened)",
        *(f"    self.{field.name} = {field.name}" for field in fields),
        "    self.__class__ = frozen",
    ]
    names = {"become": object.__setattr__, "opened": opened, "frozen": frozen}
    # As dataclasses itself does it: there is no other way to a function with these parameters.
    exec("\n".join(lines), names)
    made: Any = names["__init__"]
    made.__defaults__, made.__kwdefaults__ = generated.__defaults__, generated.__kwdefaults__
    made.__qualname__, made.__annotations__ = generated.__qualname__, generated.__annotations__
    frozen.__init__ = made  # type: ignore[method-assign]
    return frozen
