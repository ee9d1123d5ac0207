"""Records: frozen dataclasses that are cheap to make, and nothing else about them is different."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from harness.model.lean import lean
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result
from harness.workload.keys import Key

OPERATION = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"Name": 1})
ATTEMPT = Attempt(status=204, sent_s=1.0, latency_s=0.5)
RESULT = Result(
    operation=OPERATION, outcome=Outcome.SUCCESS, sent_s=1.0, done_s=1.5, attempts=(ATTEMPT,)
)
KEY = Key(partition_key="p", row_key="r", place=0.5)
ALL = pytest.mark.parametrize(
    "made", [OPERATION, ATTEMPT, RESULT, KEY], ids=lambda one: repr(type(one))
)


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """As Python makes it."""

    first: int
    second: str = "two"
    third: tuple[int, ...] = dataclasses.field(default=(), kw_only=True)


@lean
@dataclasses.dataclass(frozen=True, slots=True)
class Quick:
    """The same as a record."""

    first: int
    second: str = "two"
    third: tuple[int, ...] = dataclasses.field(default=(), kw_only=True)


@ALL
def test_a_record_is_frozen(made: object) -> None:
    """No field can be set or deleted, no other attribute added, and the class is its own."""
    field = dataclasses.fields(made)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, field, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(made, field)
    with pytest.raises((AttributeError, TypeError)):
        made.another = 1  # type: ignore[attr-defined]
    assert type(made) in (Operation, Attempt, Result, Key)
    assert not hasattr(made, "__dict__")


@ALL
def test_a_record_is_copied_replaced_and_pickled_as_any_dataclass(made: object) -> None:
    """What is made from it equals it and is of its class."""
    again = dataclasses.replace(made)  # type: ignore[type-var]
    for one in (again, copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert one == made
        assert type(one) is type(made)


@pytest.mark.parametrize(
    ("positional", "named"),
    [((1,), {}), ((1, "b"), {}), ((), {"first": 1}), ((1,), {"second": "b", "third": (3,)})],
)
def test_a_record_is_made_as_its_dataclass_is(
    positional: tuple[int | str, ...], named: dict[str, object]
) -> None:
    """Arguments in order and by name, and defaults, mean the same with and without."""
    plain, quick = Plain(*positional, **named), Quick(*positional, **named)  # type: ignore[arg-type]
    assert dataclasses.astuple(plain) == dataclasses.astuple(quick)
    assert repr(plain).replace("Plain", "Quick") == repr(quick)
    assert hash(plain) == hash(quick)
    assert inspect.signature(Plain) == inspect.signature(Quick)


@pytest.mark.parametrize(("positional", "named"), [((), {}), ((1, "b", ()), {}), ((1,), {"no": 1})])
def test_a_record_refuses_what_its_dataclass_refuses(
    positional: tuple[int | str, ...], named: dict[str, object]
) -> None:
    """A missing, a surplus and an unknown argument are errors in both."""
    for made in (Plain, Quick):
        with pytest.raises(TypeError):
            made(*positional, **named)  # type: ignore[arg-type]
