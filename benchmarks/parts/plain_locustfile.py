"""What an application's engineer writes first: a Locust user around azure-data-tables as it comes.

The same entities as the harness sends, and the request event, as Locust's documentation asks.
"""

from __future__ import annotations

import itertools
import time

from locust import User, task

from azure.core.credentials import AzureNamedKeyCredential  # isort: skip
from azure.data.tables import EdmType, EntityProperty, TableClient  # isort: skip

from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY
from harness.model.entity import Int64
from harness.workload.entity_factory import EntityFactory

_ROWS = 100
_SIZE_BYTES = 900
_NUMBERS = itertools.count()


class PlainUser(User):
    """Upserts one entity after the other."""

    def on_start(self) -> None:
        """Make the client, with its own transport, policies and retries."""
        self._client = TableClient(
            f"{self.host}/{EMULATOR_ACCOUNT}",
            "stress",
            credential=AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY),
        )
        properties = EntityFactory(_SIZE_BYTES, "0" * 25).properties("p0", "0-00000000", 0)
        self._template = {
            name: EntityProperty(value, EdmType.INT64) if isinstance(value, Int64) else value
            for name, value in properties.items()
        }

    @task
    def upsert(self) -> None:
        """One operation, timed and told to Locust."""
        number = next(_NUMBERS)
        entity = {
            "PartitionKey": "p0",
            "RowKey": f"0-{number % _ROWS:08d}",
            **self._template,
            "Count": number,
        }
        began = time.perf_counter()
        failure: Exception | None = None
        try:
            self._client.upsert_entity(entity)
        except Exception as error:
            failure = error
        self.environment.events.request.fire(
            request_type="PATCH",
            name="upsert_merge",
            response_time=(time.perf_counter() - began) * 1000.0,
            response_length=0,
            exception=failure,
            context={},
        )
