"""Requests as the gateway reads them."""

from __future__ import annotations

from urllib.parse import quote

from harness.gateway.requests import Asked, read_request


def about_entity(method: str, key: str, row: str = "r", table: str = "table") -> Asked:
    """A request about one entity: GET is a point query, PUT an upsert."""
    keys = f"PartitionKey='{key}',RowKey='{row}'"
    return read_request(method, f"/account/{table}({quote(keys)})", {}, b"")


def query(text: str = "", more: str = "") -> Asked:
    """A query with this filter, and with more parameters."""
    return read_request("GET", f"/account/table()?$filter={quote(text)}{more}", {}, b"")
