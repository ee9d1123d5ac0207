"""Stress an Azure Table endpoint: ``locust --headless --profile single-partition``.

The README shows how to write a user class of your own.
"""

from locust import events

from harness.swarm import KeySpreadUser, ProfileUser, SinglePartitionUser, wire

__all__ = ["KeySpreadUser", "ProfileUser", "SinglePartitionUser"]

wire(events)
