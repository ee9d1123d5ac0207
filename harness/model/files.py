"""Files: TOML that users write, read within bounds; and what comes with the harness."""

from __future__ import annotations

import importlib.resources
import itertools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.model.errors import SetupError, cut, echoed

MOST_DEPTH = 20
"""Levels of tables and lists inside each other."""
_MOST_INT = 2**63
"""TOML guarantees whole numbers of up to 64 bits."""
_MOST_LISTED = 20
_TWO_FORMS, _FORMS = ("values", "rows_per_partition"), ("number", "list")


def read_toml_file(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """The text and the content of a file; a `SetupError` begins with ``what``, as ``profile``."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, read_toml(text)
    except OSError as error:
        reason = error.strerror or error
        raise SetupError(f"{what} {cut(str(path))} cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{what} {path.name}: the file is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{what} {path.name}: invalid TOML: {cut(str(error))}") from error
    except ValueError as error:
        raise SetupError(f"{what} {path.name}: {error}") from error


def read_toml(text: str) -> dict[str, Any]:
    """The content of ``text``.

    Raises:
        tomllib.TOMLDecodeError: ``text`` is not valid TOML; the message names line and column.
        ValueError: a value is nested too deeply, or a whole number is too large.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise too_deep() from None
    except ValueError:
        # A whole number of more than 4,300 digits, which Python does not read.
        raise _too_large() from None
    _require_bounds(content, 0)
    return content


def _require_bounds(value: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise too_deep()
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _require_bounds(part, depth + 1)
    elif isinstance(value, int) and not -_MOST_INT <= value < _MOST_INT:
        raise _too_large()


def too_deep() -> ValueError:
    """The error for a value that is nested too deeply."""
    return ValueError(f"values are nested more than {MOST_DEPTH} levels deep")


def _too_large() -> ValueError:
    return ValueError("a whole number has more than 64 bits")


def with_tuples(value: Any) -> Any:
    """``value`` with tuples in place of TOML's arrays, as strict and frozen settings require."""
    if isinstance(value, dict):
        return {key: with_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(with_tuples(item) for item in value)
    return value


_PLAIN = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
    "tuple_type": "must be a list",
    "too_short": "must list {min_length} or more",
    "too_long": "must list {max_length} at most",
    "dict_type": "must be a table",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
}
"""What pydantic's types of errors mean, in the words of a user."""


def mistake(item: Mapping[str, Any]) -> str:
    """One item of the errors of a pydantic ``ValidationError`` as text, with its place."""
    # Behind a setting with two forms stands the name of the form, which the file does not have.
    settings = (None, *item["loc"])
    parts = [
        str(part)
        for before, part in itertools.pairwise(settings)
        if before not in _TWO_FORMS or part not in _FORMS
    ]
    place = cut(".".join(parts))
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "there is no such setting"
    elif item["type"] == "missing":
        message = "is missing"
    elif item["type"] == "model_type":
        message = f"should be a table: [{place}]"
    elif item["type"] == "tuple_type" and isinstance(item["input"], dict):
        message = f"should be a list: [[{place}]] instead of [{place}]"
    elif place:
        table = isinstance(item["input"], dict)
        if item["type"] in _PLAIN:
            # pydantic has 0.0 where a bound is 0.
            bounds = {
                name: int(bound) if isinstance(bound, float) and bound.is_integer() else bound
                for name, bound in item.get("ctx", {}).items()
            }
            message = _PLAIN[item["type"]].format_map(bounds)
            if table:
                message += ", not a table"
        if not table:
            # TOML has no tuples.
            given = item["input"]
            shown = list(given) if isinstance(given, tuple) else given
            message += f" (it is {echoed(shown)})"
    return f"{place}: {message}" if place else message


def mistakes_error(file: str, mistakes: Iterable[str]) -> SetupError:
    """The error that lists the mistakes of a file, such as ``profile mine.toml``."""
    lines = list(mistakes)
    count = "1 mistake" if len(lines) == 1 else f"{len(lines):,} mistakes"
    listed = "\n".join(f"  {line}" for line in lines[:_MOST_LISTED])
    if len(lines) > _MOST_LISTED:
        listed += f"\n  and {len(lines) - _MOST_LISTED:,} more"
    return SetupError(f"{file}: {count}:\n{listed}")


def shipped(name: str) -> Path:
    """The path of a shipped folder or file: ``profiles``, ``limits`` or ``locustfile.py``.

    In a checkout they are at the top level. A wheel has a copy in the package (see `setup.py`).
    """
    package = Path(str(importlib.resources.files("harness")))
    packed = package / "shipped"
    return (packed if packed.is_dir() else package.parent) / name
