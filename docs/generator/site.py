"""Builds the documentation as a site, and checks each link of it.

The site has the tree of the repository, so that a link in Markdown works in both. Its navigation is
the list of ``docs/index.md``. It loads nothing from other hosts.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness import __version__

ROOT = Path(__file__).parents[2]
GALLERY = "gallery"
_PROJECT = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_PART = re.compile(r"^## (.*)$|^- \[([^\]]*)\]\(([^)]*)\)", re.MULTILINE)
_LATEST = (
    '<!DOCTYPE html><title>{0}</title><meta http-equiv="refresh" content="0; url={0}/index.html">'
)
_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class BrokenSite(Exception):
    """The site cannot be built, or has links that lead nowhere; the text lists them."""


def navigation(index: str) -> dict[str, dict[str, str]]:
    """The parts of the list of pages: each has the titles of its pages with their files."""
    parts: dict[str, dict[str, str]] = {}
    for part, title, page in _PART.findall(index):
        if part:
            pages = parts.setdefault(part, {})
        else:
            pages[title] = page
    return {part: pages for part, pages in parts.items() if pages}


def build(target: Path, *, gallery: Path | None = None) -> int:
    """Build the site into ``target``, with the pages of a gallery, and return its number of pages.

    Raises `BrokenSite`.
    """
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        staging = Path(work)
        for pattern in ("*.md", "docs/*.md", "docs/images/*", "docs/assets/*", "examples/*.md"):
            for file in ROOT.glob(pattern):
                copy = staging / "pages" / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        if gallery is not None:
            shutil.copytree(gallery, staging / "pages" / GALLERY)
        # JSON is YAML too.
        (staging / "mkdocs.yml").write_text(json.dumps(_settings(gallery)), encoding="utf-8")
        command = (sys.executable, "-m", "zensical", "build", "--strict", "--clean")
        done = subprocess.run(command, cwd=staging, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise BrokenSite(done.stdout + done.stderr)
        shutil.copytree(staging / "site", target)
    if broken := sorted(_broken_links(target)):
        raise BrokenSite("\n".join(broken))
    return len(list(target.rglob("*.html")))


def add_version(folder: Path) -> None:
    """List the versions in ``folder``, each a site in a folder of its name, and lead to the latest.

    Whoever publishes the site keeps the folders of earlier versions beside it.
    """
    there = {site.parent.name for site in folder.glob("*/index.html")} - {__version__}
    found = [__version__, *sorted(there, key=_numbers, reverse=True)]
    listed = [
        {"version": one, "title": one, "aliases": ["latest"][: not place]}
        for place, one in enumerate(found)
    ]
    (folder / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "index.html").write_text(_LATEST.format(found[0]), encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _settings(gallery: Path | None) -> dict[str, object]:
    parts = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    nav: list[dict[str, object]] = [{"Home": "README.md"}, {"Questions": "docs/questions.md"}]
    for part, pages in parts.items():
        nav.append({part: [{title: f"docs/{page}"} for title, page in pages.items()]})
    if gallery is not None:
        nav.append({"Gallery": f"{GALLERY}/index.md"})
    nav.append({"Project": [{Path(page).stem.capitalize(): page} for page in _PROJECT]})
    return {
        "site_name": f"Table stress harness {__version__}",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {
            "font": False,
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
            "features": ["navigation.sections", "navigation.top", "content.code.copy"],
        },
        "extra_css": ["docs/assets/site.css"],
        "extra_javascript": ["docs/assets/site.js"],
        "plugins": ["search", "offline"],
        "markdown_extensions": ["tables", "attr_list", {"toc": {"permalink": True}}, "fenced_code"],
        # What the offline search needs from a disk. Another one would be loaded from a network.
        "extra": {
            "generator": False,
            # The list of versions beside the site, as mike makes it.
            "version": {"provider": "mike"},
            "polyfills": [{"path": "docs/assets/iframe-worker.js", "type": "text/javascript"}],
        },
        "nav": nav,
    }


class _Page(HTMLParser):
    """The names of a page's places, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.names.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
        if tag in _LOADS and (link := values.get(_LOADS[tag])):
            self.loaded.append(link)


def _broken_links(site: Path) -> Iterator[str]:
    # The page of an unknown address has links from the root of a server. Reports check themselves.
    files = [file for file in site.rglob("*.html") if file.name != "404.html"]
    pages = {file: _Page(file.read_text(encoding="utf-8")) for file in files}
    for file, page in pages.items():
        where = file.relative_to(site)
        for link in (*page.links, *page.loaded):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                if link in page.loaded and address.scheme != "data":
                    yield f"{where}: loads {link} from another host"
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            if not target.is_file():
                yield f"{where}: no file {link}"
            elif target in pages and unquote(address.fragment) not in pages[target].names:
                yield f"{where}: no place {link}"
