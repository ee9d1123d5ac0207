"""Whole applications: the shipped scenarios, and what a scenario of your own imports."""

from harness.model.operation import KeyRange
from harness.workload.scenarios.scenario import Scenario

__all__ = ["KeyRange", "Scenario"]
