"""The workers that a master knows."""

from __future__ import annotations

from locust.runners import WorkerNode

from harness.swarm.membership import KnownWorkers


def test_a_worker_may_leave_while_the_master_looks_through_them() -> None:
    """All that were there are seen, and nothing raises."""
    workers = KnownWorkers()
    for name in ("a", "b", "c"):
        workers[name] = WorkerNode(name)
    seen = []
    for worker in workers.all:
        workers.pop("b", None)
        seen.append(worker.id)
    assert seen == ["a", "b", "c"]
    assert [worker.id for worker in workers.all] == ["a", "c"]
