"""Stress-test Azure Table endpoints with Locust, counted by the service's own rule.

The rooms and who may import whom are in ARCHITECTURE.md.
"""

__version__ = "0.1.0"
