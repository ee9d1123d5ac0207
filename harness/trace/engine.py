"""The columnar engine that reads and writes the Parquet files of traces: DuckDB, in this process.

It is imported when it is first needed: most commands do without. It uses one thread, so that a
process can be forked, and never more memory than `MEMORY`. It loads no extensions.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.trace.head import TraceError
from harness.trace.schema import FORMAT

if TYPE_CHECKING:
    import numpy as np

MEMORY = "256MB"
_MOST_SAID = 200
_UNFINISHED = ".unfinished"
_DISK_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EIO)

Tell = Callable[[int, int], None]
"""Takes how much is done, such as bytes that were read, and how much there is."""
_TOLD_EVERY_S = 0.5
Values = dict[str, Any]
"""Values of named parameters."""


class Engine:
    """A database in memory, which reads and writes files.

    Args:
        scratch: A folder for what does not fit into memory; without one, that fails.
        threads: Above 1 for a calculation on many operations.
    """

    def __init__(self, scratch: Path | None = None, threads: int = 1) -> None:
        import duckdb

        # A damaged text in a file is found when it becomes one of Python.
        self._failures = (duckdb.Error, MemoryError, UnicodeDecodeError, OverflowError)
        config: dict[str, Any] = {
            "threads": threads,
            "memory_limit": MEMORY,
            "temp_directory": "" if scratch is None else str(scratch),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._connection = duckdb.connect(config=config)
        self._connection.execute("SET parquet_metadata_cache = true")

    def rows(self, sql: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """The rows of a result.

        Raises:
            TraceError: the query failed; the message is the first line of the reason.
        """
        with self._explained():
            return self._connection.execute(sql, values or {}).fetchall()

    def columns(self, sql: str, values: Values) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a result; one with NULL is a masked array. Raises as `rows`."""
        with self._explained():
            return self._connection.execute(sql, values).fetchnumpy()

    def copy(
        self,
        select: str,
        file: Path,
        *,
        form: str = FORMAT,
        parameters: Values | None = None,
        metadata: Mapping[str, str] | None = None,
        table: Values | None = None,
        tell: Tell | None = None,
    ) -> None:
        """Write the rows of a query to a new file, which is complete when it appears.

        Args:
            form: Options of ``COPY``.
            metadata: Of a Parquet file.
            table: Arrays that are the table ``recorded`` in the query.

        Raises:
            TraceError, OSError: as `rows`, or the file cannot be renamed.
        """
        values = {"unfinished": f"{file}{_UNFINISHED}", **(parameters or {})}
        if metadata:
            pairs = ", ".join(f"{name}: $of_{name}" for name in metadata)
            form = f"{form}, KV_METADATA {{{pairs}}}"
            values |= {f"of_{name}": value for name, value in metadata.items()}
        try:
            with self._explained():
                if table is not None:
                    self._connection.register("recorded", table)
                self._execute(f"COPY ({select}) TO $unfinished ({form})", values, tell)
            os.replace(values["unfinished"], file)
        finally:
            Path(values["unfinished"]).unlink(missing_ok=True)

    def _execute(self, sql: str, values: Values, tell: Tell | None) -> None:
        if tell is None:
            self._connection.execute(sql, values)
            return
        self._connection.execute("SET enable_progress_bar = true")
        self._connection.execute("SET enable_progress_bar_print = false")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._connection.execute, sql, values)
            try:
                while concurrent.futures.wait([running], _TOLD_EVERY_S).not_done:
                    tell(max(0, int(self._connection.query_progress())), 100)
            except BaseException:
                self._connection.interrupt()
                raise
            running.result()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise _failed(error) from error
        except RuntimeError as error:
            # What DuckDB makes of a Ctrl-C.
            raise KeyboardInterrupt from error

    def close(self) -> None:
        self._connection.close()


def _failed(error: Exception) -> TraceError:
    known = (os.strerror(number) for number in _DISK_ERRORS)
    first = (str(error).splitlines() or [""])[0].strip() or type(error).__name__
    return TraceError(next((words for words in known if words in str(error)), first[:_MOST_SAID]))


def reason_of(error: TraceError | OSError) -> str:
    """Why a file cannot be read or written."""
    return str((isinstance(error, OSError) and error.strerror) or error)
