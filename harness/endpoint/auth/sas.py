"""The fields of a shared access signature, and what they lack for a run.

The service often gives one error for all causes of a refused SAS. The fields tell them apart; they
are signed, so they are reliable.
"""

from __future__ import annotations

import datetime as dt
from urllib.parse import parse_qs

_WANTED = "rwdlacu on services t, resource types sco"
_TABLE_RIGHTS = {"r": "read", "a": "add", "u": "update", "d": "delete"}
_ACCOUNT_RIGHTS = {**_TABLE_RIGHTS, "l": "list", "c": "create"}
_RESOURCE_TYPES = {"s": "service", "c": "container", "o": "object"}


def sas_table(token: str) -> str | None:
    """The table of a SAS for one table; None for a SAS for the account."""
    return _fields(token).get("tn")


def sas_problem(token: str, now_s: float) -> str | None:
    """Why a run cannot work with this SAS at ``now_s`` UTC seconds, or None where it may.

    A run reads, adds, updates and deletes entities. With a SAS for the account it also creates,
    lists and deletes tables. The grants of a stored access policy (`si`) are unknown here.
    """
    fields = _fields(token)
    expiry, start = _time(fields.get("se")), _time(fields.get("st"))
    if expiry is not None and expiry <= now_s:
        return f"the SAS expired at {fields['se']}: create a new one"
    if start is not None and start > now_s:
        return f"the SAS is not valid before {fields['st']}: wait, or create a new one"
    if "si" in fields:
        return None
    if "tn" in fields:
        return _lacking(fields.get("sp", ""), _TABLE_RIGHTS, "permission", "sp", "raud")
    if "ss" in fields and "t" not in fields["ss"]:
        return f"the SAS does not cover tables: ss={fields['ss']} lacks t"
    if "srt" in fields:
        problem = _lacking(fields["srt"], _RESOURCE_TYPES, "resource type", "srt", _WANTED)
        if problem is not None:
            return problem
    return _lacking(fields.get("sp", ""), _ACCOUNT_RIGHTS, "permission", "sp", _WANTED)


def _lacking(given: str, needed: dict[str, str], noun: str, field: str, wanted: str) -> str | None:
    missing = [f"{name} ({letter})" for letter, name in needed.items() if letter not in given]
    if not missing:
        return None
    return f"the SAS lacks the {noun} {', '.join(missing)}: {field}={given}; a run needs {wanted}"


def _fields(token: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(token).items()}


def _time(text: str | None) -> float | None:
    """UTC seconds of a SAS time, which may be a date alone; None where it is invalid."""
    if not text:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.timestamp()
