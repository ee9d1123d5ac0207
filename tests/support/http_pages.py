"""Pages of a run, asked for over HTTP."""

from __future__ import annotations

import urllib.parse
import urllib.request


def content(url: str, **form: object) -> bytes:
    """What a page holds; with fields a form is sent to it."""
    data = urllib.parse.urlencode(form).encode() if form else None
    with urllib.request.urlopen(url, data, timeout=60.0) as answer:
        found: bytes = answer.read()
    return found


def page(url: str, **form: object) -> str:
    """The same as text."""
    return content(url, **form).decode()


def metrics_page(port: int) -> str:
    """The metrics page of a run on this machine."""
    return page(f"http://127.0.0.1:{port}/metrics")
