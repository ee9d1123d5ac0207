"""Producers that put messages into queues, and consumers that get, process and delete them.

"Data partitioning strategies", "Partitioning Azure storage queues": queues carry messages between
processes, and different functional areas of an application should have queues of their own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.operation import Operation
from harness.workload.operation_factory import messages_of
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Scenario


class ProducerConsumer(Scenario):
    """Messages are put one by one; a consumer gets several and deletes each of them.

    With more weight on ``produce`` than consumers can match, a backlog grows. A consumer that is
    interrupted leaves its messages hidden until their time is over, and then somebody gets them
    again.
    """

    field = "queue"
    actions: ClassVar[Mapping[str, float]] = {"produce": 50, "consume": 50}

    def partitions(self) -> Iterator[str]:
        return (self.named("queue", number) for number in range(self.setting.partitions))

    def produce(self, rng: random.Random) -> Operation:
        return self.put_message(self.named("queue", self.pick(rng)), name="produce")

    def consume(self, rng: random.Random) -> Steps:
        queue, asked = self.named("queue", self.pick(rng)), self.setting.messages
        result = yield self.get_messages(
            queue, most=asked.most, hidden_s=asked.hidden_s, name="consume"
        )
        for message in messages_of(result):
            yield self.delete_message(queue, message, name="finish")
