"""How many processes or machines a client-limited run needed, and whether more would help."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.generator import CpuSample, GeneratorLog
from harness.measure.record.measured import (
    USEFUL_SHARE,
    CapacityPart,
    GeneratorPart,
    MachineLoadPart,
)
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.client_limit import latency_doubt
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.process import Machine
from harness.model.services.cosmos import COSMOS
from harness.model.services.storage import AZURITE
from harness.report.sentences import cost
from tests.support.evidence import START, evidence, generator, recorded, snapshot_of
from tests.support.records import kept

SLOW = snapshot_of({"p0": 1000})


def load(**figures: float) -> MachineLoadPart:
    """A machine of two cores with one worker, which has time left but for ``figures``."""
    usual = {"busy_share": 0.0, "cpu_percent": 50.0, "workers_percent": 50.0}
    return MachineLoadPart.model_validate(
        {"name": "box", "cores": 2, "workers": 1, **usual, **figures}
    )


def limited(machine: MachineLoadPart, rate: float = 1000.0, **more: object) -> Evidence:
    """A run whose worker made so many entities in a second of CPU time, and was busy."""
    made = CapacityPart(
        session="sdk", operations_per_cpu_s=rate, entities_per_cpu_s=rate, machines=(machine,)
    )
    busy = generator(
        cpu_percents=(98.0,),
        cpu_percent_mean=98.0,
        machine_busy_share=machine.busy_share,
        capacity=made,
    )
    return evidence(SLOW, generator=busy, **more)


def advised(given: Evidence) -> str:
    verdict = recorded(given, session="sdk").verdict
    assert verdict.result == "client_limited"
    return "\n".join(f"{advice.text} {advice.why}" for advice in verdict.advice).lower()


FULL = {"busy_share": 0.9, "cpu_percent": 99.0}


@pytest.mark.parametrize(
    ("given", "says", "never"),
    [
        # A full worker on a machine with an idle core: processes, for the wanted rate.
        (limited(load(), wanted_per_s=1500.0), "use --processes 2 for the wanted 1,500", "machine"),
        # Without a wanted rate, for the target that was not reached.
        (limited(load(), 2000.0), "use --processes 2 for 2,000 entities/s, the target", "machine"),
        # A worker without a reserve needs another one beside it, however cheap its operations are.
        (limited(load(), 9e6, wanted_per_s=5000.0), "use --processes 2 for the wanted", "machine"),
        # More processes than the machine has cores for: machines.
        (limited(load(), wanted_per_s=5000.0), "use 4 machines with 2 cores each", "--processes"),
        # Nothing was counted: no number is made up.
        (limited(load(), 0.0), "use more worker processes", "--processes 1"),
        # The workers fill the machine: machines, and never more processes.
        (
            limited(load(workers_percent=95.0, **FULL), wanted_per_s=5000.0),
            "use 4 machines such as this one for the wanted 5,000",
            "--processes",
        ),
        # ... and one more than there is, where the figures say that it was nearly enough.
        (
            limited(load(workers_percent=95.0, **FULL), 5000.0, wanted_per_s=1100.0),
            "use 2 machines",
            "--processes",
        ),
        # A leaner session needs less of the full machine.
        (
            limited(load(workers_percent=95.0, **FULL)),
            "use session 'wire'",
            "--processes",
        ),
        # Others fill the machine: neither processes nor machines such as this one.
        (
            limited(load(workers_percent=30.0, **FULL)),
            "other processes took 69% of its 2 cores, and the workers 30%",
            "such as this one",
        ),
        # The emulator of the run fills it.
        (
            limited(load(workers_percent=40.0, harness_percent=55.0, **FULL)),
            "emulator and master took 55% of the cpu of box",
            "free the cpu",
        ),
        # An emulator that somebody else started is among the others.
        (
            limited(load(workers_percent=40.0, **FULL), kind=AZURITE),
            "the emulator among them, took 59%",
            "--processes",
        ),
        # It was stopped for a while: no process more would help.
        (
            evidence(SLOW, generator=generator(lag_s_max=2.5), wanted_per_s=1500.0),
            "find what held the generator up",
            "--processes",
        ),
        # Request units have no target in entities per second.
        (
            limited(load(), kind=COSMOS, targets=None),
            "use more worker processes",
            "target",
        ),
    ],
)
def test_the_advice_says_what_would_have_been_enough(
    given: Evidence, says: str, never: str
) -> None:
    """Processes where cores are idle, machines where ours fill it, else who has to go."""
    text = advised(given)
    assert says in text
    assert never not in text


def test_a_record_keeps_the_figures_and_old_ones_have_none() -> None:
    """They are read back as they were written, and are one line in every report."""
    old = kept()
    assert old.generator.capacity is None
    assert "capacity" not in dict(cost(old))
    made = limited(load(workers_percent=20.0, harness_percent=10.0)).generator
    new = old.model_copy(update={"generator": GeneratorPart.recorded(made)})
    assert RunRecord.from_json(new.to_json()) == new
    assert dict(cost(new))["capacity"] == (
        "1,000 operations (1,000 entities) in a second of CPU time with session 'sdk'; box: "
        "workers 20% of 2 cores, emulator or master 10%, other processes 20%"
    )


def test_the_verdict_says_who_filled_the_machine() -> None:
    """The sentence has the shares of workers, emulator and others."""
    full = load(workers_percent=40.0, harness_percent=35.0, **FULL)
    idle = limited(full).generator.model_copy(update={"cpu_percent_mean": 60.0})
    sentence = judge(evidence(SLOW, generator=idle)).sentence
    assert "(workers 40% of 2 cores, emulator or master 35%, other processes 24%)" in sentence


@given(
    rate=st.floats(0.1, 1e6),
    wanted=st.floats(0.1, 1e7),
    cores=st.integers(1, 256),
)
def test_enough_processes_are_enough(rate: float, wanted: float, cores: int) -> None:
    """With one process fewer the rate needs more of each core than is useful."""
    made = CapacityPart(session="wire", operations_per_cpu_s=rate, entities_per_cpu_s=rate)
    processes = made.processes_for(wanted)
    assert processes is not None
    assert processes * rate * USEFUL_SHARE >= wanted * 0.999999
    assert processes == 1 or (processes - 1) * rate * USEFUL_SHARE < wanted
    machines = made.machines_for(wanted, cores)
    assert machines is not None
    assert (machines - 1) * cores < processes <= machines * cores


def test_cpu_of_several_machines() -> None:
    """Workers are told apart by machine; each machine has its cores, its workers and others."""
    snapshot = snapshot_of({"p0": 1000}, seconds=4)
    log = GeneratorLog()
    near = {core: Machine(id="near", name="near", cores=(core,)) for core in (0, 1)}
    far = Machine(id="far", name="far", cores=(0, 1, 2, 3))
    log.note_machine("a", near[0])
    log.note_machine("b", near[1])
    log.note_machine("c", far)
    for second in range(START - 1, START + 5):
        inside = START <= second < START + 4
        for worker, cpu, machine in (("a", 100.0, 99.0), ("b", 50.0, 91.0), ("c", 100.0, 40.0)):
            log.add(
                worker,
                CpuSample(
                    second=second,
                    cpu_percent=cpu if inside else 0.0,
                    machine_percent=machine,
                    lag_s=0.0,
                    cpu_s=cpu / 100 if inside else 99.0,
                ),
            )
        log.note_harness(near[0], second, 20.0)
    made = log.capacity(snapshot, "wire")
    assert made is not None
    assert made.entities_per_cpu_s == pytest.approx(4000 / 10)
    assert made.operations_per_cpu_s == pytest.approx(80 / 10)
    assert made.cores == 6
    first, second_machine = made.machines
    assert (first.name, first.cores, first.workers) == ("near", 2, 2)
    assert first.cpu_percent == pytest.approx(95.0)
    assert first.workers_percent == pytest.approx(75.0)
    assert first.harness_percent == pytest.approx(10.0)
    assert first.others_percent == pytest.approx(10.0)
    assert first.busy_share == 1.0
    assert (second_machine.cores, second_machine.harness_percent) == (4, 0.0)
    assert second_machine.workers_percent == pytest.approx(25.0)
    assert made.fullest == first
    # Others used 10 % of the cores of "near", as above, and 40 - 100 / 4 of those of "far".
    others = log.view(START, START + 4).others_by_second
    assert others[START + 1] == pytest.approx(15.0)
    assert set(others) == set(range(START - 1, START + 5))
    # Without a measured window, or without samples, nothing is known.
    assert log.capacity(dataclasses.replace(snapshot, end=snapshot.start), "wire") is None
    assert GeneratorLog().capacity(snapshot, "wire") is None


OTHERS = load(busy_share=0.79, cpu_percent=98.0, workers_percent=19.0)
OURS = load(busy_share=0.79, cpu_percent=98.0, workers_percent=60.0)
EMULATOR = load(busy_share=0.79, cpu_percent=98.0, workers_percent=19.0, harness_percent=60.0)


@pytest.mark.parametrize(
    ("figures", "machine", "doubt"),
    [
        ({}, None, None),
        ({"machine_busy_share": 0.1, "busy_share": 0.1}, OTHERS, None),
        (
            {"machine_busy_share": 0.79, "busy_share": 0.3},
            OTHERS,
            "the machine was saturated in 79% of the seconds, mostly by other processes",
        ),
        (
            {"machine_busy_share": 0.79},
            OURS,
            "the machine was saturated in 79% of the seconds, mostly by the workers",
        ),
        (
            {"machine_busy_share": 0.79},
            EMULATOR,
            "the machine was saturated in 79% of the seconds, mostly by the emulator or the master",
        ),
        ({"machine_busy_share": 0.11}, None, "the machine was saturated in 11% of the seconds"),
        ({"busy_share": 0.11}, OTHERS, "a worker used over 90% of a core in 11% of the seconds"),
    ],
)
def test_latencies_of_a_busy_machine_are_upper_bounds(
    figures: dict[str, float], machine: MachineLoadPart | None, doubt: str | None
) -> None:
    """From more than a tenth of the seconds on; the sentence names who used the CPU."""
    made = machine and CapacityPart(
        session="sdk", operations_per_cpu_s=1.0, entities_per_cpu_s=1.0, machines=(machine,)
    )
    busy = generator(capacity=made, **figures)
    assert latency_doubt(busy) == doubt
    footnote = judge(evidence(SLOW, wanted_per_s=1000.0, generator=busy)).footnote
    assert footnote == ("" if doubt is None else f"Latencies are only upper bounds: {doubt}.")


def test_latencies_at_a_gateway_are_its_own() -> None:
    """A busy thread of the application delays no answer; a busy gateway does."""
    busy = generator(busy_share=0.9)
    assert latency_doubt(busy, WatchedPart()) is None
    assert latency_doubt(busy, WatchedPart(gateway_busy_share=0.2)) == (
        "the gateway used over 90% of a core in 20% of the seconds"
    )


@pytest.mark.parametrize(("machine", "limited_by"), [(OTHERS, "machine"), (OURS, "generator")])
def test_other_processes_that_use_up_the_machine_are_the_limit(
    machine: MachineLoadPart, limited_by: str
) -> None:
    """Where the rate was missed; the sentence has their share."""
    made = CapacityPart(
        session="sdk", operations_per_cpu_s=1.0, entities_per_cpu_s=1.0, machines=(machine,)
    )
    busy = generator(machine_busy_share=0.79, capacity=made)
    verdict = judge(evidence(SLOW, wanted_per_s=2000.0, generator=busy))
    assert (verdict.result, verdict.limited_by) == ("client_limited", limited_by)
    assert "saturated in 79% of the seconds (workers" in verdict.sentence
    others = "other processes 79%" in verdict.sentence
    assert others is ("was reached beside them" in verdict.sentence) is (limited_by == "machine")
    held = judge(evidence(SLOW, wanted_per_s=1000.0, generator=busy))
    assert held.result == "within_target"
