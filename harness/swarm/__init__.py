"""The only room that knows Locust. A locustfile imports its user classes and `wire` from here."""

from harness.swarm.users import KeySpreadUser, ProfileUser, SinglePartitionUser, TableUser
from harness.swarm.wiring import wire

__all__ = ["KeySpreadUser", "ProfileUser", "SinglePartitionUser", "TableUser", "wire"]
