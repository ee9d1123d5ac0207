"""The pages: a report that is one file and opens offline, and the shell of the live page."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from harness.measure.record import RunRecord
from harness.report.web.layout import SECTIONS
from harness.report.web.rendering import page_css, page_js, plotly_js, render
from harness.report.web.update import update
from harness.report.words import printable

_STYLE = "style-src 'unsafe-inline'"
"""Bars have their widths, and charts their style, in attributes."""
_IMAGES = "img-src data: blob:"
"""A chart that is saved as a picture."""


def document(record: RunRecord) -> str:
    """``report.html`` of ``record``: everything is in it, and it asks nobody for anything.

    Without scripts the verdict and the tables are there; only the charts are not.
    """
    shown = update(record, live=False)
    charts = shown["charts"]
    scripts = [plotly_js(), page_js()] if charts else []
    known = {*shown["parts"], *charts}
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return render(
        "document.html",
        title=printable(f"{record.profile.get('name', 'run')} {record.run_id}"),
        policy=f"default-src 'none'; script-src {hashes}; {_STYLE}; {_IMAGES}; "
        "base-uri 'none'; form-action 'none'",
        css=page_css(),
        scripts=scripts,
        charts=embedded(charts),
        sections=SECTIONS,
        known=known,
        parts=shown["parts"],
        run_id=printable(record.run_id),
        started=printable(record.started_at),
        version=printable(record.harness_version),
    )


def live_page(
    *,
    data: str = "data",
    plotly: str = "plotly.js",
    script: str = "page.js",
    style: str = "page.css",
    back: str = "../",
) -> str:
    """The shell of the live page: it asks for ``data`` and shows it.

    Args:
        data: Where an `update` is, with ``state``, ``sentence`` and ``run_id`` beside it. This and
            the others are relative addresses.
        plotly: Where `plotly_js` is.
        script: Where `page_js` is.
        style: Where `page_css` is.
        back: Where Locust's own page is.
    """
    return render(
        "live.html",
        title="Table stress",
        policy=f"default-src 'none'; script-src 'self'; {_STYLE} 'self'; {_IMAGES} 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'",
        data=data,
        plotly=plotly,
        script=script,
        style=style,
        back=back,
        sections=SECTIONS,
    )


def embedded(content: Any) -> str:
    """``content`` as JSON inside a page: no sign in it can end its element or a line."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _digest(script: str) -> str:
    """What a content security policy names a script by."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
