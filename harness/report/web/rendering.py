"""Templates, which escape every text and make it printable, and the assets of pages."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import jinja2

from harness.report.names import printable

_HERE = Path(__file__).parent


@functools.cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # HTML from other templates is of a subclass of str.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def render(template: str, **content: Any) -> str:
    return _templates().get_template(template).render(content)


@functools.cache
def page_css() -> str:
    return (_HERE / "assets" / "page.css").read_text(encoding="utf-8")


@functools.cache
def page_js() -> str:
    """The script of a page: tables that can be searched, then charts and the live page."""
    assets = _HERE / "assets"
    return "".join((assets / f"{name}.js").read_text("utf-8") for name in ("tables", "page"))


@functools.cache
def plotly_js() -> str:
    """The library that draws the charts, from the installed package."""
    # Only this file is needed, and importing the package would take long.
    spec = importlib.util.find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("plotly is not installed", name="plotly")
    script = Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    return script.read_text(encoding="utf-8")
