"""The limits that the gateway enforces, read from a TOML file.

The defaults are the published figures. Where no document publishes a figure (number of servers,
capacity of a server, keys in a range) the default is an assumption; `limits/published.toml` marks
these.
"""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic

from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.model.errors import SetupError, echoed
from harness.model.figures import listed
from harness.model.files import mistake, mistakes_error, read_toml_file, shipped, with_tuples
from harness.model.outcome import THROTTLING_ANSWERS
from harness.model.physical_partitions import (
    MAX_LOGICAL_PARTITION_BYTES,
    MAX_PARTITION_KEY_BYTES,
    MAX_PARTITION_RU_PER_S,
    MAX_PHYSICAL_PARTITION_BYTES,
    MAX_REQUEST_BYTES,
    MAX_ROW_KEY_BYTES,
)
from harness.model.services import service_throttling
from harness.model.services.service import PUBLISHED, UNLIMITED_PER_S, Server, Service
from harness.model.target import Throughput

_Rate = Annotated[float, pydantic.Field(gt=0, le=1e9)]
_Share = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]
_Seconds = Annotated[float, pydantic.Field(ge=0, le=86_400, allow_inf_nan=False)]
_Burst = Annotated[float, pydantic.Field(gt=0, le=3600, allow_inf_nan=False)]


def _throttling(*, late: bool) -> pydantic.AfterValidator:
    """Allows the statuses of throttling that come late, or those that come at once."""
    statuses = [answer.status for answer in THROTTLING_ANSWERS if answer.late is late]

    def check(status: int) -> int:
        if status not in statuses:
            raise ValueError(f"must be {listed(list(map(str, statuses)), 'or')}")
        return status

    return pydantic.AfterValidator(check)


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Rate(_Part):
    """Entities a second, and the burst that a quiet time allows, in seconds of that rate.

    Of partitions beside tables see `harness.model.partition.limit_at`.
    """

    entities_per_s: _Rate
    burst_s: _Burst = 1.0


class Servers(_Part):
    """Partition servers, and the ranges of keys that they serve."""

    count: Annotated[int, pydantic.Field(ge=1, le=1000)] = 16
    entities_per_s: _Rate = 2 * PUBLISHED.partition
    burst_s: _Burst = 1.0
    keys_per_range: Annotated[int, pydantic.Field(ge=2, le=1000)] = 8


class Ramping(_Part):
    """When a table that is loaded gets more servers: 0 s splits ranges by their keys, at once."""

    split_after_s: _Seconds = 0.0
    busy_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5


class Moving(_Part):
    """When a hot range is moved to another server, and how long it is offline then."""

    hot_after_s: _Seconds = 180.0
    cool_after_s: Annotated[float, pydantic.Field(gt=0, le=3600, allow_inf_nan=False)] = 10.0
    offline_s: _Seconds = 5.0


class RefusalSettings(_Part):
    """How requests are refused: at once, or a share of them later with a time-out."""

    status: Annotated[int, _throttling(late=False)] = 503
    retry_after_ms: Annotated[int, pydantic.Field(ge=0, le=3_600_000)] = 0
    timeout_share: _Share = 0.0
    timeout_statuses: Annotated[
        tuple[Annotated[int, _throttling(late=True)], ...], pydantic.Field(min_length=1)
    ] = (500,)
    timeout_after_s: _Seconds = 5.0
    seed: Annotated[int, pydantic.Field(ge=0)] = 1


class Window(_Part):
    """A time window, in seconds since the gateway started."""

    at_s: _Seconds
    for_s: _Seconds

    def holds(self, elapsed_s: float) -> bool:
        """Whether the window includes this instant."""
        return self.at_s <= elapsed_s < self.at_s + self.for_s


class InjectedFault(enum.StrEnum):
    """A fault of one request."""

    ERROR_500 = "error_500"
    ERROR_503 = "error_503"
    RESET = "reset"
    HALF_ANSWER = "half_answer"
    SLOW_ANSWER = "slow_answer"
    LOST_ANSWER = "lost_answer"
    UNAPPLIED_WRITE = "unapplied_write"


class Faults(_Part):
    """Faults injected independently of any limit. Shares are of requests about entities."""

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
        total = sum(self.shares)
        if total > 1:
            raise ValueError(f"the shares add up to {total:g}, and a request has one fault at most")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares, in the order of `InjectedFault`."""
        return tuple(getattr(self, fault) for fault in InjectedFault)


class RequestUnitLimits(_Part):
    """Limits in request units, as Azure Cosmos DB has them, in place of those of Storage."""

    provisioned_ru_per_s: Annotated[float, pydantic.Field(ge=1, le=1e7)] = 18_000.0
    physical_partitions: Annotated[int, pydantic.Field(ge=1, le=1000)] = 3
    partition_ru_per_s: Annotated[float, pydantic.Field(ge=1, le=1e7)] = float(
        MAX_PARTITION_RU_PER_S
    )
    partition_bytes: Annotated[int, pydantic.Field(ge=10_000, le=10**15)] = (
        MAX_PHYSICAL_PARTITION_BYTES
    )
    logical_partition_bytes: Annotated[int, pydantic.Field(ge=1_000, le=10**15)] = (
        MAX_LOGICAL_PARTITION_BYTES
    )
    partition_key_bytes: Annotated[int, pydantic.Field(ge=1, le=4096)] = MAX_PARTITION_KEY_BYTES
    row_key_bytes: Annotated[int, pydantic.Field(ge=1, le=4096)] = MAX_ROW_KEY_BYTES
    request_bytes: Annotated[int, pydantic.Field(ge=1, le=MAX_TRANSACTION_BYTES)] = (
        MAX_REQUEST_BYTES
    )
    burst_capacity_s: _Seconds = 0.0
    burst_ru_per_s: Annotated[float, pydantic.Field(gt=0, le=1e7)] = 3000.0
    autoscale: bool = False

    @property
    def throughput(self) -> Throughput:
        """What is provisioned, for runs against the stand-in."""
        return Throughput(
            ru_per_s=self.provisioned_ru_per_s, physical_partitions=self.physical_partitions
        )


class GatewayLimits(_Part):
    """Everything that the gateway enforces: the limits of Storage, or those of Cosmos DB."""

    partition: Rate = Rate(entities_per_s=PUBLISHED.partition)
    account: Rate = Rate(entities_per_s=PUBLISHED.account)
    servers: Servers = Servers()
    ramping: Ramping = Ramping()
    moving: Moving = Moving()
    refusal: RefusalSettings = RefusalSettings()
    faults: Faults = Faults()
    cosmos: RequestUnitLimits | None = None

    @pydantic.model_validator(mode="after")
    def _of_one_service(self) -> Self:
        if self.cosmos is not None and (of_storage := self.model_fields_set & _OF_STORAGE):
            listed = ", ".join(f"[{name}]" for name in sorted(of_storage))
            raise ValueError(f"[cosmos] replaces the limits of Storage: leave out {listed}")
        return self

    @property
    def units(self) -> RequestUnitLimits | None:
        """The limits in request units; None where entities are limited."""
        return self.cosmos

    def service(self, server: Server = "table", *, keeps_writes: bool = True) -> Service | None:
        """See `service_throttling`."""
        in_units = self.cosmos is not None
        return service_throttling(server, in_units=in_units, keeps_writes=keeps_writes)

    def provisioned(self, throughput: Throughput) -> Self:
        """The same limits with what is known to be provisioned, if they are in request units."""
        if self.cosmos is None or throughput.ru_per_s is None:
            return self
        known: dict[str, Any] = {"provisioned_ru_per_s": throughput.ru_per_s}
        if throughput.physical_partitions is not None:
            known["physical_partitions"] = throughput.physical_partitions
        return self.model_copy(update={"cosmos": self.cosmos.model_copy(update=known)})

    def as_json(self) -> dict[str, Any]:
        """What a gateway's page tells: the limits of one service, which `model_validate` takes."""
        others = _OF_STORAGE if self.cosmos is not None else {"cosmos"}
        return self.model_dump(mode="json", exclude=set(others))

    def rates(self, service: Service) -> dict[str, float]:
        """What the limits of Storage allow a service in its unit, as fields of ``EnforcedPart``."""
        return {
            "partition_per_s": service.limit(self.partition.entities_per_s),
            "account_per_s": self.account.entities_per_s,
            "server_per_s": self.servers.entities_per_s,
        }

    @property
    def unlimited(self) -> bool:
        """Whether no limit of Storage can be reached, and no page is cut."""
        if self.cosmos is not None:
            return True
        rates = (self.partition, self.account, self.servers)
        least = min(rate.entities_per_s for rate in rates)
        return least >= UNLIMITED_PER_S and self.servers.count == 1


_IN_UNITS = "cosmos"
"""Name of the shipped limits in request units."""
_OF_STORAGE = frozenset(GatewayLimits.model_fields) - {"faults", "cosmos"}


def shipped_directory() -> Path:
    return shipped("limits")


def shipped_limits() -> list[str]:
    return sorted(path.stem for path in shipped_directory().glob("*.toml"))


def limits_for(throughput: Throughput) -> str | None:
    """The shipped limits of a service with a throughput; None where none was provisioned."""
    return None if throughput.ru_per_s is None else _IN_UNITS


def limits_path(name: str) -> Path:
    """The file of limits by a shipped name, or a path; a `SetupError` if there is none."""
    names = shipped_limits()
    if name in names:
        return shipped_directory() / f"{name}.toml"
    path = Path(name)
    if os.path.isfile(path):
        return path
    raise SetupError(
        f"there are no limits {echoed(name)}; the shipped limits are: {', '.join(names)}. To use "
        "a file of your own, give its path"
    )


def load_limits(path: Path) -> GatewayLimits:
    """Read a file of limits; a `SetupError` lists every mistake."""
    _, content = read_toml_file(path, "limits file")
    try:
        return GatewayLimits.model_validate(with_tuples(content))
    except pydantic.ValidationError as error:
        mistakes = (mistake(item) for item in error.errors(include_url=False))
        raise mistakes_error(f"limits file {path.name}", mistakes) from error
