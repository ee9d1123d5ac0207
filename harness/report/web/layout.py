"""The order of parts and charts, the same on the live page and in a report."""

from __future__ import annotations

import dataclasses


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
