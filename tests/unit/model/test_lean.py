"""Records: frozen dataclasses that are cheap to make, and nothing else about them is different."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from harness.model.operation import Kind, Operation, lean, new_operation
from harness.model.outcome import Attempt, Outcome, Result, new_attempt, new_result
from harness.workload.keys.design import Key, new_key

OPERATION = new_operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"Name": 1})
ATTEMPT = new_attempt(status=204, sent_s=1.0, latency_s=0.5)
RESULT = new_result(
    operation=OPERATION, outcome=Outcome.SUCCESS, sent_s=1.0, done_s=1.5, attempts=(ATTEMPT,)
)
KEY = new_key(partition_key="p", row_key="r")
ALL = pytest.mark.parametrize(
    "made", [OPERATION, ATTEMPT, RESULT, KEY], ids=lambda one: repr(type(one))
)


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """As Python makes it."""

    first: int
    second: str = "two"
    third: tuple[int, ...] = dataclasses.field(default=(), kw_only=True)


quick = lean(Plain)


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
    """Arguments in order and by name, and defaults, mean the same in both."""
    plain, made = Plain(*positional, **named), quick(*positional, **named)  # type: ignore[arg-type]
    assert made == plain
    assert repr(made) == repr(plain)
    assert hash(made) == hash(plain)
    assert type(made) is Plain


@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, "b", (), 4), {}), ((1,), {"no": 1})]
)
def test_a_record_refuses_what_its_dataclass_refuses(
    positional: tuple[int | str, ...], named: dict[str, object]
) -> None:
    """A missing, a surplus and an unknown argument are errors in both."""
    for make in (Plain, quick):
        with pytest.raises(TypeError):
            make(*positional, **named)  # type: ignore[arg-type]


def test_a_field_without_a_default_may_come_last() -> None:
    """Where fields have to be named their order means nothing."""

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        first: int = 1
        second: str

    assert lean(Named)(second="b") == Named(second="b")


def test_what_cannot_be_made_so_is_refused() -> None:
    """Defaults made by a function, and what a dataclass does after its fields, would be lost."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Listed:
        values: list[int] = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(frozen=True, slots=True)
    class Checked:
        value: int

        def __post_init__(self) -> None:
            assert self.value

    for refused in (Listed, Checked):
        with pytest.raises(TypeError, match=refused.__name__):
            lean(refused)
