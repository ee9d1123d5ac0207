"""Writes the dashboard: ``python -m dashboards.generator [FILE]``."""

from __future__ import annotations

import sys
from pathlib import Path

from dashboards.generator.dashboard import generated

COMMITTED = Path(__file__).parents[1] / "partition-stress.json"


def main(arguments: list[str]) -> None:
    """Write the JSON to the file in ``arguments``, or to the committed file."""
    path = Path(arguments[0]) if arguments else COMMITTED
    path.write_text(generated(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
