"""An application whose requests hold secrets: a key that signs, a SAS, and a bearer token.

Prints ``ready`` when every request was sent, then waits for a signal.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import sys
import urllib.error
import urllib.request
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    generate_account_sas,
)

TOKEN, KEY_TEXT = sys.argv[1:3]
"""A fake bearer token, and the beginning of every PartitionKey."""


def main() -> None:
    """Send each kind of credential, accepted and refused."""
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    fields = dict(part.split("=", 1) for part in text.split(";") if part)
    account, url = fields["AccountName"], fields["TableEndpoint"]
    sas = generate_account_sas(
        AzureNamedKeyCredential(account, fields["AccountKey"]),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, update=True),
        dt.datetime(2090, 1, 1, tzinfo=dt.UTC),
    )
    signatures = [sas.partition("sig=")[2].partition("&")[0]]

    def keep(response: Any) -> None:
        headers = response.http_request.headers
        signatures.append(headers["Authorization"].rpartition(":")[2])

    with TableClient.from_connection_string(text, "orders", retry_total=0) as table:
        table.create_table()
        for number in range(5):
            row = {"PartitionKey": f"{KEY_TEXT}{number}", "RowKey": "r"}
            table.upsert_entity(row, raw_response_hook=keep)
            with contextlib.suppress(AzureError):
                table.create_entity(row, raw_response_hook=keep)
    for credential in (sas, f"{sas[:-6]}AAAA%3D", f"sv=2019-02-02&sig={TOKEN}"):
        with (
            TableClient(url, "orders", credential=AzureSasCredential(credential)) as table,
            contextlib.suppress(AzureError),
        ):
            table.get_entity(f"{KEY_TEXT}0", "r")
    for path in (f"/orders(PartitionKey='{KEY_TEXT}0',RowKey='r')", "/orders()", "/Tables"):
        request = urllib.request.Request(f"{url}{path}")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        with contextlib.suppress(urllib.error.URLError):
            urllib.request.urlopen(request, timeout=10.0).close()
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write("\n".join([sas, *signatures]))
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
