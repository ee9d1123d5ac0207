"""From a TOML file to the limits that the gateway holds, or to the list of all its mistakes.

What a document publishes is the default. What none publishes (how many servers, what one of them
carries, how many keys share a range) is an assumption; `limits/published.toml` says which is which.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic

from harness.model.errors import SetupError
from harness.model.target import PUBLISHED

_Rate = Annotated[float, pydantic.Field(gt=0, le=1e9)]
_Share = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]
_Seconds = Annotated[float, pydantic.Field(ge=0, le=86_400, allow_inf_nan=False)]
_Burst = Annotated[float, pydantic.Field(gt=0, le=3600, allow_inf_nan=False)]


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Rate(_Part):
    """Entities a second, and for how many seconds' worth of them a quiet time saves up."""

    entities_per_s: _Rate
    burst_s: _Burst = 1.0


class Servers(_Part):
    """Partition servers, and the ranges of keys that live on them."""

    count: Annotated[int, pydantic.Field(ge=1, le=1000)] = 16
    entities_per_s: _Rate = 2 * PUBLISHED.partition
    burst_s: _Burst = 1.0
    keys_per_range: Annotated[int, pydantic.Field(ge=2, le=1000)] = 8


class Moving(_Part):
    """When a hot range is moved, and how long it is gone then."""

    hot_after_s: _Seconds = 180.0
    cool_after_s: Annotated[float, pydantic.Field(gt=0, le=3600, allow_inf_nan=False)] = 10.0
    offline_s: _Seconds = 5.0


class Refusal(_Part):
    """How the service refuses for a partition: 503 at once, or for a share 500 after a while."""

    timeout_share: _Share = 0.0
    timeout_after_s: _Seconds = 5.0
    seed: Annotated[int, pydantic.Field(ge=0)] = 1


class Window(_Part):
    """A stretch of time, in seconds since the gateway started."""

    at_s: _Seconds
    for_s: _Seconds

    def holds(self, elapsed_s: float) -> bool:
        """Whether it is now."""
        return self.at_s <= elapsed_s < self.at_s + self.for_s


class Faults(_Part):
    """What goes wrong without any limit being met. Shares are of requests about entities."""

    seed: Annotated[int, pydantic.Field(ge=0)] = 1
    error_500: _Share = 0.0
    error_503: _Share = 0.0
    reset: _Share = 0.0
    half_answer: _Share = 0.0
    slow_answer: _Share = 0.0
    slow_s: _Seconds = 1.0
    lost_answer: _Share = 0.0
    unapplied_write: _Share = 0.0
    stalls: tuple[Window, ...] = ()
    closed: tuple[Window, ...] = ()

    @pydantic.model_validator(mode="after")
    def _shares_fit(self) -> Self:
        total = sum(self.shares())
        if total > 1:
            raise ValueError(f"the shares add up to {total:g}, and a request has one fault at most")
        return self

    def shares(self) -> tuple[float, ...]:
        """The shares, in the order of `harness.gateway.rules.faults.Fault`."""
        return (
            self.error_500,
            self.error_503,
            self.reset,
            self.half_answer,
            self.slow_answer,
            self.lost_answer,
            self.unapplied_write,
        )


class Limits(_Part):
    """All that the gateway holds a client to."""

    partition: Rate = Rate(entities_per_s=PUBLISHED.partition)
    account: Rate = Rate(entities_per_s=PUBLISHED.account)
    servers: Servers = Servers()
    moving: Moving = Moving()
    refusal: Refusal = Refusal()
    faults: Faults = Faults()


def shipped_directory() -> Path:
    """Where the shipped limits are."""
    return Path(__file__).resolve().parents[2] / "limits"


def limits_path(name: str) -> Path:
    """The file of the limits called ``name``: one of the shipped names, or a path.

    Raises:
        SetupError: there is none.
    """
    shipped = {path.stem: path for path in sorted(shipped_directory().glob("*.toml"))}
    if name in shipped:
        return shipped[name]
    path = Path(name)
    if path.is_file():
        return path
    raise SetupError(
        f"there are no limits {name!r}; there are: {', '.join(shipped)}. A file of your own is "
        "given by its path"
    )


def load_limits(path: Path) -> Limits:
    """The limits that a file holds.

    Raises:
        SetupError: it cannot be read, or is wrong; every mistake is named.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"limits {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"limits {path.name} are no TOML: {error}") from error
    try:
        return Limits.model_validate(_frozen(content))
    except pydantic.ValidationError as error:
        lines = [_mistake(item) for item in error.errors(include_url=False)]
        count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
        listed = "\n".join(f"  {line}" for line in lines)
        raise SetupError(f"limits {path.name} have {count}:\n{listed}") from error


def _frozen(value: Any) -> Any:
    """TOML has arrays and whole numbers where limits have tuples and real ones."""
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value


def _mistake(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "there is no such setting"
    elif item["type"] == "missing":
        message = "is missing"
    elif not isinstance(item["input"], dict):
        message = f"{message} (it is {item['input']!r})"
    return f"{place}: {message}" if place else message
