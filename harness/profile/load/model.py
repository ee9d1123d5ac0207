"""A load model: when operations are due, for how long, how many at most, and all of it in words."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

import pydantic
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from harness.measure.record.origin import ReplayPart
from harness.model.figures import counted
from harness.model.services.service import PUBLISHED, CountedUnit, Service
from harness.profile.settings.parts import LEAST_RATE, MOST_RATE, TWO_WEEKS_S, Part, Rate, Rest
from harness.workload.pacing import ClosedLoop, OpenLoop, Pacer, RecordedOrder, Schedule


def _cap_is_a_rate_or_inf(cap: float) -> float:
    if MOST_RATE < cap < math.inf:
        raise ValueError(f"a cap is at most {MOST_RATE:,}, or inf, which is no cap")
    return cap


_Cap = Annotated[
    float, Field(ge=LEAST_RATE, allow_inf_nan=True), pydantic.AfterValidator(_cap_is_a_rate_or_inf)
]


class Load(Part):
    """How many users send, how fast, and for how long.

    Without a rate the load is closed: each user waits for its answer, and the caps limit the rate.
    With ``entities_per_s`` or ``operations_per_s`` it is open: a schedule sets when each operation
    is due, and users only limit how many are in flight.
    """

    users: Annotated[int, Field(ge=1, le=100_000)] = 20
    """Users that send at the same time; each waits for its answer."""
    spawn_rate_per_s: Annotated[float, Field(ge=LEAST_RATE, le=1000)] = 10.0
    """Users started per second; an open load ramps up in the same time."""
    settle_s: Rest = 3.0
    """Seconds between the ramp and measuring."""
    run_time_s: Annotated[int, Field(ge=1, le=TWO_WEEKS_S)] = 30
    """Length of the measured window; stages have their own, a search has most_s."""
    entities_per_s: Rate | None = None
    """Open load: entities due per second, all users together."""
    operations_per_s: Rate | None = None
    """Open load: operations due per second, all users together."""
    arrivals: Literal["constant", "poisson"] = "constant"
    """Open load: evenly spaced, or random with the same mean."""
    give_up_after_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Open load: an operation that is later than this is dropped, and counted."""
    max_entities_per_s: _Cap | None = None
    """Closed load: most entities per second; inf is no cap. Default: 2,000 at an account."""
    emulator_max_entities_per_s: _Cap = 500.0
    """Closed load: the same on an emulator, which shares the machine."""

    @property
    def rate_per_s(self) -> float | None:
        """The rate of an open load, in entities or in operations; None in a closed load."""
        return self.entities_per_s or self.operations_per_s

    @property
    def ramp_s(self) -> float:
        """Seconds in which all users start."""
        return self.users / self.spawn_rate_per_s

    def cap(self, *, emulated: bool, otherwise: float = PUBLISHED.partition) -> float | None:
        """Highest rate of a closed load, in entities/s; None without a limit.

        By default an account gets at most the target of one partition, so that nobody floods it by
        accident: ``otherwise`` is another default. An emulator, which shares the machine with its
        generator, has a further cap.
        """
        cap = self.max_entities_per_s or (math.inf if emulated else otherwise)
        if emulated:
            cap = min(cap, self.emulator_max_entities_per_s)
        return None if math.isinf(cap) else cap

    @pydantic.model_validator(mode="after")
    def _one_unit(self) -> Self:
        if self.entities_per_s is not None and self.operations_per_s is not None:
            raise ValueError("entities_per_s and operations_per_s: set only one of them")
        return self


class Replay(Part):
    """Send the operations of a trace again, in place of a mix.

    They are due at the recorded instants; or, with a rate in ``[load]``, stages or a search, in the
    recorded order at that rate.
    """

    trace: Annotated[str, Field(min_length=1)]
    """A trace of `harness watch --trace` or of a run with --trace, or a log of Azure Storage; the
    path is relative to the working directory."""
    speed: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    """2.0 sends the same in half the time, as `--rate 2` of `harness whatif` asks about."""
    keys: Annotated[str, Field(min_length=1)] | None = None
    """A key scheme, as `harness whatif` takes it: the operations go to its keys."""
    share: Literal["key", "client"] = "key"
    """What stays on one worker: all operations of a PartitionKey, or all of a recorded client."""
    found: Annotated[SkipJsonSchema[ReplayPart | None], Field(repr=False)] = None
    """What the trace holds; set by the harness when it reads the trace."""

    @property
    def content(self) -> ReplayPart:
        """What the trace holds, after it was read."""
        assert self.found is not None
        return self.found


class LoadModel:
    """What open loads share; each model replaces what differs.

    Amounts are in entities, or with ``by_operation`` in operations. ``words``, ``scheduled`` and
    `users_words` need no more of the settings than a record holds; the other answers of a replay
    need the content of its trace.

    Attributes:
        scheduled: Whether the load is open: what is due does not depend on answers.
        rate_per_s: The highest rate of an open load.
        setting: The setting that limits the rate.
        jumps: Rises of the load at once, from one value to another.
        speed: Multiple of the recorded speed; None unless operations are due at recorded instants.
        starts_with_window: Whether nothing is due before all users are up and the measured window
            is open.
        searched: Whether a search changes the rate, and ends the load before `window_s`.
        steady: Whether the load asks for one rate, ramp apart.
        lasting: Whether the rate may be that of an application day by day; others try out limits.
        run_time_setting: The setting that a run time replaces; None if stages set it.
        may_end_early: What throttling of an account ends, and what to do; or empty.
        without_rate: Why it is unknown how many operations will be due, if it is.
    """

    scheduled: ClassVar[bool] = True
    rate_per_s: float = 0.0
    by_operation: bool = False
    setting: str
    jumps: Sequence[tuple[float, float]] = ()
    speed: float | None = None
    starts_with_window: ClassVar[bool] = False
    searched: ClassVar[bool] = False
    steady: ClassVar[bool] = True
    lasting: ClassVar[bool] = False
    run_time_setting: ClassVar[str | None] = "load.run_time_s"
    may_end_early: ClassVar[str] = ""
    without_rate: ClassVar[str] = "the closed loop has no target rate"

    def __init__(self, load: Load, replay: Replay | None = None) -> None:
        self.load = load
        self.replay = replay
        self.settle_s = load.settle_s

    def problems(self) -> Iterator[str]:
        """Why the settings do not go together, as sentences."""
        cap, rate = self.load.max_entities_per_s, self.rate_per_s
        if cap is not None and not self.by_operation and rate > cap:
            yield (
                f"load.max_entities_per_s: {cap:g} is below {self.setting} ({rate:g}), and applies "
                "only to a load without a rate; lower the rate, or leave out the cap"
            )

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of all workers together; None if no rate is known beforehand."""
        return None

    def pacer(self, kind: Service, arrivals: random.Random) -> Pacer:
        """The pacer of all workers together; ``arrivals`` is the source of random arrivals."""
        assert self.schedule is not None
        return self._following(self.schedule, arrivals)

    def _following(self, schedule: Schedule, arrivals: random.Random) -> Pacer:
        if self.replay is not None:
            return RecordedOrder(schedule, self._trace_units(self.replay.content))
        return OpenLoop(schedule, poisson=arrivals if self.load.arrivals == "poisson" else None)

    def _trace_units(self, content: ReplayPart) -> int:
        return content.operations if self.by_operation else content.units

    def loading_pacer(self, kind: Service) -> ClosedLoop:
        """The pacer of loading: the cap of an account applies, an emulator has none."""
        return ClosedLoop(None if kind.emulated else self.load.cap(emulated=False))

    def highest_per_s(self, kind: Service, entities: float = 1.0) -> float | None:
        """The highest rate, in entities/s if ``entities`` is the mean of an operation; or None."""
        return self.rate_per_s * entities if self.by_operation else self.rate_per_s

    def due_within(self, seconds: float, kind: Service) -> float | None:
        """What is due in so many seconds; of a closed load, if it reaches its cap; or None."""
        return None if self.schedule is None else self.schedule.due_by(seconds)

    def most_due_by(self, at_s: float) -> float | None:
        """The most that is due by an instant of the schedule; None if it is not known."""
        even = self.replay is None and self.load.arrivals == "constant"
        return self.schedule.due_by(at_s) if even and self.schedule is not None else None

    def most_requests(self, kind: Service) -> float:
        """Most requests of the whole load without retries, ramp and settling included; or inf."""
        if self.replay is not None:
            return sum(one.attempts for one in self.replay.content.kinds)
        whole_s = self.window_s + self.load.ramp_s + self.load.settle_s + 2
        return (self.highest_per_s(kind) or math.inf) * whole_s

    def users_at(self, at_s: float) -> int | None:
        """Users so many seconds after the window was opened; None where they stay."""
        return None

    @property
    def before_s(self) -> float:
        """Seconds of the load before the measured window."""
        return 0.0 if self.starts_with_window else self.load.ramp_s + self.settle_s

    @property
    def window_s(self) -> int:
        """Length of the measured window, in whole seconds; of a search or a replay, the longest."""
        return self.load.run_time_s

    @property
    def expected_window_s(self) -> float:
        """The length of the measured window if a replay keeps up with its schedule."""
        return float(self.window_s)

    @property
    def trace_s(self) -> float | None:
        """Seconds from the first operation of a trace to the last, or inf; None if not known."""
        if self.replay is None or self.schedule is None:
            return None
        return self.schedule.at(self._trace_units(self.replay.content))

    def users_words(self, users: int) -> str:
        """The number of users, or with stages of users the fewest and the most."""
        return counted(users, "user")

    def described(self, users: int, kind: Service) -> str:
        """Users, rate and length, before the load begins."""
        window = f"{self.expected_window_s:,.0f} s measured"
        if self.searched:
            window = f"at most {self.window_s:,} s"
        after = f"the ramp and {self.load.settle_s:g} s to settle"
        if self.starts_with_window and not self.settle_s:
            after = "all users are up"
        return f"{self.users_words(users)}, {self.rate_words(kind)}, {window} after {after}"

    def words(self, unit: CountedUnit) -> str | None:
        """The schedule of an open load; None in a closed loop."""
        return None

    def rate_words(self, kind: Service) -> str:
        """The schedule; in a closed loop the cap, and the setting that has it."""
        return self.words(kind.unit) or ""
