"""Which variables lead an application to another table endpoint, by their names and values."""

from __future__ import annotations

import pytest

from harness.watch.other_endpoints import Lead, lead_of, leads_of, without_secrets

KEY = "k" * 86 + "=="
SAS = "sv=2019-02-02&ss=bt&srt=sco&sp=rwdlacu&sig=c2ln"


@pytest.mark.parametrize(
    ("name", "value", "lead"),
    [
        ("ANY", f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={KEY}", "string"),
        ("ANY", f"AccountName=a;SharedAccessSignature={SAS};", "string"),
        ("ANY", "TableEndpoint=https://a.table.core.windows.net;SharedAccessSignature=x", "string"),
        ("AzureWebJobsStorage", "UseDevelopmentStorage=true", "string"),
        ("ANY", "BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=x", "string"),
        ("ANY", f'{{"store": "AccountName=a;AccountKey={KEY}"}}', "text"),
        ("ANY", "https://acme.table.core.windows.net/", "url"),
        ("ANY", "HTTPS://ACME.table.cosmos.azure.com:443/", "url"),
        ("ANY", "https://acme.z07.table.storage.azure.net", "url"),
        ("ANY", "http://127.0.0.1:10002/devstoreaccount1", "url"),
        ("ANY", f"https://acme.table.core.windows.net/orders?{SAS}", "text"),
        ("ANY", "store: acme.table.core.chinacloudapi.cn", "text"),
        ("ANY", "https://acme.queue.core.windows.net/", "url"),
        ("ANY", "http://127.0.0.1:10001/devstoreaccount1", "url"),
        ("ANY", "https://acme.blob.core.windows.net/", "url"),
        ("ANY", "https://acme.documents.azure.com:443/", None),
        ("ANY", "http://127.0.0.1:10000/devstoreaccount1", "url"),
        ("ANY", "https://acme.file.core.windows.net/", None),
        ("ANY", f"?{SAS}", "sas"),
        ("ANY", "sv=2019-02-02&tn=orders&sp=r&sig=c2ln", "sas"),
        ("ANY", "sv=2019-02-02&sr=c&sp=r&sig=c2ln", None),
        ("AZURE_STORAGE_SAS_TOKEN", "anything", "sas"),
        ("AZURE_STORAGE_ACCOUNT", "prodacct", "account"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "prodacct", "account"),
        ("TABLES_STORAGE_ACCOUNT_NAME", "prodacct", "account"),
        ("StorageAccountName", "prodacct", "account"),
        ("ACCOUNT_NAME", "prodacct", "account"),
        ("STORAGEACCOUNT", "prodacct", "account"),
        ("storageaccountname", "prodacct", "account"),
        ("STORAGEKEY", KEY, "key"),
        ("AZURE_STORAGE_KEY", "short", "key"),
        ("AZURE_STORAGE_ACCESS_KEY", "short", "key"),
        ("TABLES_PRIMARY_STORAGE_ACCOUNT_KEY", KEY, "key"),
        ("Tables__AccountKey", KEY, "key"),
        ("COSMOS_KEY", KEY, "key"),
        ("AZURE_STORAGE_KEY_ORDERS1", KEY, "key"),
        ("AZURE_STORAGE_KEY_VAULT", "vault", None),
        ("ACCOUNT_KEY", KEY, "key"),
        ("STORAGE_SECRET", KEY, "key"),
        ("STORAGE_NAME", "prodacct", None),
        ("STORAGE_KEY", "cart", None),
        ("JWT_KEY", KEY, None),
        ("SECRET", KEY, None),
        ("AZURE_TENANT_ID", "4f9c1a2b", None),
        ("AZURE_STORAGE_AUTH_MODE", "login", None),
        ("AZURE_STORAGE_ACCOUNT", "", None),
        ("PATH", "/usr/bin:/bin", None),
        ("HOME", "/home/storage/account", None),
    ],
)
def test_what_a_variable_holds(name: str, value: str, lead: str | None) -> None:
    """Names of Azure's tools and samples count, and the forms of values under any name."""
    names = {"string": "connection_string", None: ""}
    expected = names.get(lead, lead or "")
    found = lead_of(name, value)
    assert ("" if found is None else found.name.lower()) == expected


@pytest.mark.parametrize(
    ("beside", "name", "value", "found"),
    [
        ({"STORAGE_KEY": KEY}, "STORAGE_NAME", "prodacct", True),
        ({"TABLES_SAS": SAS}, "storageName", "prodacct", True),
        ({"COSMOS_KEY": KEY}, "COSMOS_NAME", "prod-acct", True),
        ({"STORAGE_KEY": KEY}, "STORAGE_NAME", "Local disk", False),
        ({"TABLE_KEY": KEY}, "TABLE_NAME", "orders", False),
        ({"JWT_KEY": KEY}, "STORAGE_NAME", "uploads", False),
    ],
)
def test_a_name_beside_a_key_is_that_of_its_account(
    beside: dict[str, str], name: str, value: str, found: bool
) -> None:
    """Alone it could be the name of anything."""
    assert (leads_of({name: value, **beside}).get(name) is Lead.ACCOUNT) == found


def test_a_text_loses_its_secrets_only() -> None:
    """Account and address stay; key and signature cannot be used."""
    text = f"AccountName=acme;AccountKey={KEY};A=https://acme.table.core.windows.net/?{SAS}&x=1"
    made = without_secrets(text, "bmV3")
    assert made.startswith("AccountName=acme;AccountKey=bmV3;A=https://acme.table.core.windows.net")
    assert made.endswith(f"&sig={'A' * 43}%3D&x=1")
