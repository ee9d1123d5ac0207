"""Names of the tables that a run makes: ``stress``, UTC time, 8 hex digits, and an ending.

Only a workload of several tables has endings: a capital letter, then letters and digits. A name of
this form is what `harness sweep` takes for ours, and nothing else is touched.
"""

from __future__ import annotations

import datetime as dt
import random
import re

_FORM = re.compile(r"stress(\d{8}T\d{6})Z[0-9a-f]{8}([A-Z][A-Za-z0-9]*)?")
_TIME = "%Y%m%dT%H%M%S"


def new_table_name(now_utc: dt.datetime, rng: random.Random) -> str:
    """A name that no other run has, such as ``stress20261121T004512Z1a2b3c4d``.

    Args:
        now_utc: The time now, in UTC.
        rng: Where the 8 digits come from; not seeded, or two runs could meet.
    """
    return f"stress{now_utc.strftime(_TIME)}Z{rng.getrandbits(32):08x}"


def made_at(table_name: str) -> dt.datetime | None:
    """When the run that made the table began, in UTC; None where the name is not of our form."""
    found = _FORM.fullmatch(table_name)
    if found is None:
        return None
    try:
        return dt.datetime.strptime(found[1], _TIME).replace(tzinfo=dt.UTC)
    except ValueError:
        return None
