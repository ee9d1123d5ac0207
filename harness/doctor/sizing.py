"""What this machine can generate, as lines: per process, for all cores, and for each target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.doctor.checks import CheckResult, Status
from harness.doctor.generator import Generated
from harness.measure.record.capacity import CapacityPart
from harness.model.figures import counted, number
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.request_units import RU, WRITE_CHARGES
from harness.model.target import PUBLISHED

_TARGETS = {
    "one partition": PUBLISHED.partition,
    "the account": PUBLISHED.account,
}


_TARGETS_OF_COSMOS = {"one partition": MAX_PARTITION_RU_PER_S * RU / WRITE_CHARGES[0][1]}
"""Writes of 1 KB, the cheapest, that a partition serves."""


def capacity_checks(made: Sequence[Generated], *, cosmos: bool = False) -> Iterator[CheckResult]:
    """A line for each session, and a line for each target. Accounts need TLS.

    ``cosmos``: the endpoints are Cosmos DB, or its stand-in.
    """
    by_session: dict[str, list[Generated]] = {}
    for one in made:
        by_session.setdefault(one.alone.session, []).append(one)
    for session, pair in by_session.items():
        yield _session(session, pair)
    for name, rate in (_TARGETS_OF_COSMOS if cosmos else _TARGETS).items():
        yield _target(name, rate, [one.together for one in made if one.tls])


def _session(session: str, pair: Iterable[Generated]) -> CheckResult:
    parts = []
    figures = {}
    for one in pair:
        over = "over TLS" if one.tls else "without TLS"
        cores = one.together.cores
        every = one.together.entities_per_cpu_s * cores
        parts.append(
            f"{over} {number(one.alone.entities_per_cpu_s)}/s a process, {number(every)}/s on "
            f"{counted(cores, 'core')}"
        )
        figures["tls" if one.tls else "plain"] = {
            "alone": one.alone.model_dump(),
            "together": one.together.model_dump(),
            "all_cores_per_s": every,
        }
    return CheckResult(name=session, text=f"upserts of 1 KiB: {'; '.join(parts)}", figures=figures)


def _target(name: str, rate: float, made: Iterable[CapacityPart]) -> CheckResult:
    ways, figures, fits = [], {}, False
    for capacity in made:
        processes, cores = capacity.processes_for(rate), capacity.cores
        machines = capacity.machines_for(rate, cores)
        if processes is None or machines is None:
            continue
        figures[capacity.session] = {"processes": processes, "machines": machines}
        if machines > 1:
            ways.append(
                f"--session {capacity.session} on {machines:,} such machines "
                f"({counted(processes, 'process', 'processes')})"
            )
        else:
            fits = True
            ways.append(f"--session {capacity.session} --processes {processes}")
    return CheckResult(
        name=f"for {name}",
        status=Status.OK if fits else Status.WARNING,
        text=f"{number(rate)}/s need {' or '.join(ways)}",
        advice="" if fits else "one machine such as this one cannot reach the target",
        figures=figures,
    )
