"""The pages: the report, which is one file and opens offline, and the shell of the live page."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from typing import Any

from harness.measure.record.record import RunRecord
from harness.report.names import printable
from harness.report.web.charts import charts
from harness.report.web.parts import parts
from harness.report.web.rendering import page_css, page_js, plotly_js, render


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part or a chart; its id is that of its element.

    Attributes:
        id: As `parts` and `charts` name it.
        title: Above it; empty where it has its own.
        reads: How to read it, in a line.
        half: Whether two of them share a row where there is room.
        folded: Whether it is collapsed at first.
    """

    id: str
    title: str = ""
    reads: str = ""
    half: bool = False
    folded: bool = False

    @property
    def chart(self) -> bool:
        """Whether it is drawn."""
        return self.id.startswith("chart-")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under a title, which is empty for those at the top."""

    id: str
    title: str
    blocks: tuple[Block, ...]


SECTIONS = (
    Section(
        id="summary",
        title="",
        blocks=(
            Block(id="verdict"),
            Block(id="figures"),
            Block(id="conditions", title="Conditions"),
            Block(id="why", title="Why", half=True),
            Block(id="advice", title="What the documents advise", half=True),
            Block(id="search", title="Search for the highest sustainable rate"),
        ),
    ),
    Section(
        id="over-time",
        title="Over time",
        blocks=(
            Block(id="chart-rate"),
            Block(
                id="chart-heat",
                reads="A horizontal line is a hot key, a diagonal is an append-only key, an even "
                "area is an even spread.",
            ),
            Block(id="chart-throttling"),
            Block(
                id="chart-refused",
                reads="The key ranges that were throttled. Compare with the map of entities above.",
            ),
            Block(id="course", title="Throttling"),
            Block(
                id="chart-service",
                reads="From the first attempt to the complete answer, retries included. The colour "
                "shows the number of operations on a logarithmic scale.",
                half=True,
            ),
            Block(
                id="chart-response",
                reads="From the moment an operation was due to its complete answer: what an "
                "application would see.",
                half=True,
            ),
            Block(
                id="chart-backlog",
                reads="A growing backlog: operations become due faster than they are sent.",
                half=True,
            ),
            Block(id="chart-generator", half=True),
        ),
    ),
    Section(
        id="by-partition",
        title="Partitions",
        blocks=(
            Block(id="partitions", title="Most accessed first"),
            Block(id="throttled", title="Most throttled"),
            Block(id="predicted", title="Predicted and measured"),
        ),
    ),
    Section(
        id="details",
        title="Details",
        blocks=(
            Block(id="operations", title="Operations"),
            Block(id="account", title="Account", half=True),
            Block(id="attempts", title="Attempts", half=True),
            Block(id="scans", title="Scans"),
            Block(id="pointers", title="Index tables"),
            Block(id="audit", title="Audit", half=True),
            Block(id="generator", title="Generator and cost", half=True),
            Block(id="machine", title="Machine and versions", half=True),
            Block(id="profile", title="Resolved profile", folded=True),
        ),
    ),
)


_STYLE = "style-src 'unsafe-inline'"
"""Bars have their widths, and charts their style, in attributes."""
_IMAGES = "img-src data: blob:"
"""A chart that is saved as a picture."""


def update(record: RunRecord, *, live: bool) -> dict[str, dict[str, Any]]:
    """What a page shows now: HTML of the parts and figures of the charts, by id of the element.

    The content is JSON and bounded in size. Elements without content are left out.

    Args:
        record: The run so far.
        live: Whether the run is in progress.
    """
    return {"parts": dict(parts(record, live=live)), "charts": charts(record)}


def document(record: RunRecord) -> str:
    """``report.html`` of ``record``: one file that loads nothing else.

    Without scripts it still shows the verdict and the tables, but no charts.
    """
    shown = update(record, live=False)
    figures = shown["charts"]
    scripts = [plotly_js(), page_js()] if figures else []
    known = {*shown["parts"], *figures}
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return render(
        "document.html",
        title=printable(f"{record.profile.get('name', 'run')} {record.run_id}"),
        policy=f"default-src 'none'; script-src {hashes}; {_STYLE}; {_IMAGES}; "
        "base-uri 'none'; form-action 'none'",
        css=page_css(),
        scripts=scripts,
        charts=embedded(figures),
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
    """The shell of the live page, which polls ``data`` and shows it.

    Args:
        data: Relative address of an `update` with ``state``, ``sentence`` and ``run_id``.
        plotly: Relative address of `plotly_js`.
        script: Relative address of `page_js`.
        style: Relative address of `page_css`.
        back: Relative address of Locust's own page.
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
    """``content`` as JSON for a script element, which no character of it can end."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _digest(script: str) -> str:
    """What a content security policy names a script by."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
