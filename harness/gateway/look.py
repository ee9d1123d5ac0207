"""Reads the keys of a table that was created without the gateway: once, page by page, no I/O.

The requests reuse the target and the credentials of a client's query. Neither Shared Key nor a
shared access signature covers the parameters that choose rows and columns.
"""

from __future__ import annotations

from harness.gateway.answers import GatewayAnswer
from harness.gateway.contents import Contents
from harness.gateway.key_ranges import Key
from harness.gateway.reading import entities_in, with_parameters

MOST_PAGES = 200
"""200,000 rows."""
_TOKENS = ("NextPartitionKey", "NextRowKey")


class TableLook:
    """One reading of the keys of a table.

    The caller sends ``GET`` with `target` and the headers of the client's query, and hands each
    answer to `take`, until `target` is None. `abandon` ends the reading early.

    Args:
        table: Name of the table in lower case.
    """

    def __init__(self, contents: Contents, table: str, target: str) -> None:
        self._contents = contents
        self._table = table
        self._pages = 0
        dropped = dict.fromkeys(("$filter", "$top", *_TOKENS))
        self._base = with_parameters(target, {**dropped, "$select": "PartitionKey,RowKey"})
        self.target: str | None = self._base
        """Path and query of the next request; None at the end."""

    def take(self, answer: GatewayAnswer) -> None:
        """Read a page."""
        if answer.status != 200:
            self.abandon()
            return
        self._pages += 1
        keys: list[Key] = []
        for partition_key, row_key in entities_in(answer.headers, answer.body):
            if partition_key is None or row_key is None:
                self.abandon()
                return
            keys.append((partition_key, row_key))
        self._contents.looked(self._table, keys)
        tokens = {name: answer.headers.get(f"x-ms-continuation-{name}") for name in _TOKENS}
        if tokens["NextPartitionKey"] is None:
            self._end(whole=True)
        elif self._pages >= MOST_PAGES:
            self.abandon()
        else:
            self.target = with_parameters(self._base, tokens)

    def abandon(self) -> None:
        """End the reading before the last page."""
        self._end(whole=False)

    def _end(self, *, whole: bool) -> None:
        if self.target is not None:
            self.target = None
            self._contents.end_look(self._table, whole=whole)
