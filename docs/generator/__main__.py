"""``python -m docs.generator WORD``: ``reference`` writes pages of docs/, ``site`` builds the site.

``gallery`` makes the reports that the site shows, if they are there.
"""

from __future__ import annotations

import sys

from docs.generator.gallery import make
from docs.generator.reference import pages
from docs.generator.site import ROOT, BrokenSite, add_version, build
from harness import __version__

SITE = ROOT / "build" / "docs"
GALLERY = ROOT / "build" / "gallery"


def main(what: str) -> None:
    """Write what the word on the command line names."""
    if what == "reference":
        for name, text in pages().items():
            (ROOT / "docs" / name).write_text(text, encoding="utf-8")
        return
    if what == "gallery":
        make(GALLERY)
        return
    try:
        gallery = GALLERY if (GALLERY / "index.md").is_file() else None
        count = build(SITE / __version__, gallery=gallery)
        add_version(SITE)
    except BrokenSite as error:
        sys.exit(str(error))
    print(f"{count} pages: {SITE / 'index.html'}")


if __name__ == "__main__":
    main(sys.argv[1])
