"""The text form of figures: rates, latencies, shares, counts, sizes and lengths of time.

Every output rounds with these functions, so that a figure reads the same wherever it stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float) -> str:
    """A rate or a limit: ``1,204``, ``45.3``, ``3.0``, ``0.04``, ``0``; never 0 for something."""
    if value == 0 or value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.095 else f"{max(value, 0.01):.2f}"


def milliseconds(value: float) -> str:
    """A latency in milliseconds with about three digits: ``1,204``, ``45.3``, ``4.12``, ``0``."""
    if value == 0 or value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{max(value, 0.01):.2f}"


def request_units(value: float) -> str:
    """What an operation costs, in request units: ``1,204``, ``45.30``, ``4.95``, ``0``."""
    return f"{value:,.0f}" if value == 0 or value >= 99.995 else f"{max(value, 0.01):.2f}"


def percent(share: float, sign: str = "") -> str:
    """A share in percent: ``60%``, ``6.0%``, ``<0.01%``; never 0 for something, 100 for less.

    ``sign`` is that of a bound, as in `signed`.
    """
    value = share * 100
    if value == 0 or 9.95 <= value < 99.5 or value >= 100:
        return f"{sign}{value:,.0f}%"
    if value >= 0.95:
        return f"{sign}{min(value, 99.9):.1f}%"
    return signed(sign, f"{value:.2f}%" if value >= 0.01 else "<0.01%")


def signed(sign: str, figure: str) -> str:
    """A figure behind the sign of a bound: ``≥60%``; of ``<0.01%`` what the sign leaves of it."""
    if not figure.startswith("<"):
        return f"{sign}{figure}"
    return {"≥": ">0%", "~": "~0%"}.get(sign, figure)


def multiple(factor: float) -> str:
    """A multiple of traffic, in steps of about a tenth: it is known to 5 %. ``2.6``, ``30``."""
    power = 10.0 ** math.floor(math.log10(factor))
    step = power * (0.1 if factor < 2 * power else 0.2 if factor < 5 * power else 1)
    return f"{round(round(factor / step) * step, 6):,.10g}"


def per_operation(attempts: float) -> str:
    """Attempts for each operation: ``1.095``."""
    return f"{attempts:.3f}"


def of_core(cpu_percent: float) -> str:
    """The CPU of a process or a machine: ``87%``."""
    return f"{cpu_percent:.0f}%"


def counted(count: int, word: str, plural: str | None = None) -> str:
    """A count with its word: ``1 user``, ``20 users``."""
    return f"{count:,} {agreed(count, word, plural or word + 's')}"


def some(count: int) -> str:
    """How many "of them": ``none``, ``20``."""
    return f"{count:,}" if count else "none"


def agreed(count: int, one: str, more: str) -> str:
    """The word that goes with a count: ``was`` for 1, ``were`` for others."""
    return one if count == 1 else more


def data_size(count: int) -> str:
    """Bytes: ``512 B``, ``3.4 KiB``, ``12.0 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:,.1f} {unit}"


def duration(seconds: float) -> str:
    """A length of time to the nearest second: ``0:42``, ``12:05``, ``1:02:07``.

    Never 0:00 for something.
    """
    minutes, rest = divmod(max(round(seconds), 1) if seconds > 0 else 0, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


_LENGTHS = ((24 * 60 * 60, "days"), (60 * 60, "hours"), (60, "minutes"))


def long_duration(seconds: float) -> str:
    """A length of time that may be long: ``30 s``, ``1.5 hours``, ``365.0 days``."""
    for length, unit in _LENGTHS:
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def storage_size(count: float) -> str:
    """Bytes in the units in which Azure states sizes of data: ``1.3 MB``, ``20 GB``, ``1.2 TB``."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{count:,.0f} B"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence: ``A``, ``A and B``, ``A, B and C``."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
