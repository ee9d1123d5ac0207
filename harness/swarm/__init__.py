"""The only package that uses Locust. A locustfile imports user classes and `wire` from here."""

from harness.swarm.wiring import wire
from harness.swarm.worker.users import KeySpreadUser, ProfileUser, SinglePartitionUser, TableUser

__all__ = ["KeySpreadUser", "ProfileUser", "SinglePartitionUser", "TableUser", "wire"]
