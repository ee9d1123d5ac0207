"""The only room that knows Locust. A locustfile imports its user classes and `wire` from here."""

from harness.swarm.users import KeySpreadUser, SinglePartitionUser, TableUser
from harness.swarm.wiring import wire

__all__ = ["KeySpreadUser", "SinglePartitionUser", "TableUser", "wire"]
