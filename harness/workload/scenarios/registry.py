"""The shipped scenarios: the applications that the documents name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.workload.scenarios.blog import Blog, BlogNewestFirst
from harness.workload.scenarios.producer_consumer import ProducerConsumer
from harness.workload.scenarios.row_pairs import BankTransfers, FootRace
from harness.workload.scenarios.scenario import Scenario
from harness.workload.scenarios.shops import CustomersProductsOrders, Orders, VerticalSplit
from harness.workload.scenarios.tenants import Saas, UserProfiles
from harness.workload.scenarios.time_series import (
    DataSeries,
    EventLog,
    IotTelemetry,
    IotTelemetryByDate,
    Log,
    LogHashPrefix,
)

SCENARIOS: Mapping[str, type[Scenario]] = MappingProxyType(
    {
        "bank-transfers": BankTransfers,
        "blog": Blog,
        "blog-newest-first": BlogNewestFirst,
        "customers-products-orders": CustomersProductsOrders,
        "data-series": DataSeries,
        "event-log": EventLog,
        "foot-race": FootRace,
        "iot-telemetry": IotTelemetry,
        "iot-telemetry-by-date": IotTelemetryByDate,
        "log": Log,
        "log-hash-prefix": LogHashPrefix,
        "orders": Orders,
        "producer-consumer": ProducerConsumer,
        "saas": Saas,
        "user-profiles": UserProfiles,
        "vertical-split": VerticalSplit,
    }
)
"""By the name that a profile gives."""
