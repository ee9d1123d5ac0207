"""The shipped scenarios: the applications that the documents name, one small file each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.workload.scenarios.bank_transfers import BankTransfers
from harness.workload.scenarios.blog import Blog, BlogNewestFirst
from harness.workload.scenarios.customers_products_orders import CustomersProductsOrders
from harness.workload.scenarios.data_series import DataSeries
from harness.workload.scenarios.event_log import EventLog
from harness.workload.scenarios.foot_race import FootRace
from harness.workload.scenarios.iot_telemetry import IotTelemetry, IotTelemetryByDate
from harness.workload.scenarios.orders import Orders
from harness.workload.scenarios.saas import Saas
from harness.workload.scenarios.scenario import Scenario
from harness.workload.scenarios.user_profiles import UserProfiles
from harness.workload.scenarios.vertical_split import VerticalSplit

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
        "orders": Orders,
        "saas": Saas,
        "user-profiles": UserProfiles,
        "vertical-split": VerticalSplit,
    }
)
"""By the name that a profile gives."""
