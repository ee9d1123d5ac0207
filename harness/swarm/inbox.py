"""What workers say to the master, outside of Locust's own reports."""

from __future__ import annotations

import gevent
from locust.env import Environment
from locust.rpc import Message

from harness.swarm.conductor import Conductor
from harness.swarm.looking_up import FOUND_MESSAGE
from harness.swarm.run import Phase, Run
from harness.swarm.sending import DEFECT_MESSAGE, REPORT_MESSAGE, THROTTLED_MESSAGE
from harness.swarm.terminal import Terminal
from harness.swarm.worker import REFUSED_MESSAGE


class Inbox:
    """Listens to the workers of every run.

    Args:
        environment: Locust's.
        conductor: Leads the runs.
        terminal: Where a late worker's refusal is said.
    """

    def __init__(self, environment: Environment, conductor: Conductor, terminal: Terminal) -> None:
        self._conductor = conductor
        self._terminal = terminal
        runner = environment.runner
        runner.register_message(REPORT_MESSAGE, self._on_report)
        runner.register_message(REFUSED_MESSAGE, self._on_refused)
        runner.register_message(THROTTLED_MESSAGE, self._on_account_throttled)
        runner.register_message(DEFECT_MESSAGE, self._on_defect)
        runner.register_message(FOUND_MESSAGE, self._on_found)

    def _run_of(self, msg: Message) -> Run | None:
        """The run that a message is about, while it goes on."""
        run = self._conductor.run
        if run is None or msg.data["run_id"] != run.plan.run_id or run.phase >= Phase.DONE:
            return None
        return run

    def _on_report(self, environment: Environment, msg: Message) -> None:
        run = self._run_of(msg)
        if run is not None:
            run.take_report(msg.node_id, msg.data)

    def _on_found(self, environment: Environment, msg: Message) -> None:
        """A worker looks up what it wrote, or has."""
        run = self._run_of(msg)
        if run is not None and msg.node_id in run.reports:
            run.take_found(msg.node_id, msg.data)

    def _on_refused(self, environment: Environment, msg: Message) -> None:
        run = self._run_of(msg)
        if run is None or run.phase >= Phase.ENDING:
            return
        sentence = f"a worker refuses to take part: {msg.data['sentence']}"
        if self._conductor.sharing.exclude(msg.node_id):
            # It came late: the others go on without it.
            self._terminal.complain(sentence)
            return
        run.phase = Phase.ENDING
        gevent.spawn(self._conductor.give_up, run, sentence)

    def _on_defect(self, environment: Environment, msg: Message) -> None:
        run = self._run_of(msg)
        if run is None or run.phase >= Phase.ENDING:
            return
        self._terminal.complain(msg.data["sentence"])
        gevent.spawn(self._conductor.end, run, "a mistake in the workload")

    def _on_account_throttled(self, environment: Environment, msg: Message) -> None:
        run = self._run_of(msg)
        if run is None or run.phase >= Phase.ENDING:
            return
        if run.plan.remote and run.plan.profile.limits.stop_on_account_throttling:
            gevent.spawn(self._conductor.end, run, "throttling of the account")
