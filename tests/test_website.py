"""The documentation as a site: it is built, every link in it leads somewhere, and nothing is fetched to read it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from docs.website import CHAPTERS, ROOT

import unround
from tests.conftest import MakeOnce

if find_spec("sphinx") is None and "CI" not in os.environ:
    pytest.skip("Sphinx is not installed: `make test` does that", allow_module_level=True)


def build(out: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """Build the site in a process of its own: Sphinx leaves traces."""
    code = f"import sys\nfrom pathlib import Path\nimport docs.website as site\n{before}\nsite.build(Path(sys.argv[1]))"
    return subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, capture_output=True, text=True, check=False)


def build_all(out: Path) -> None:
    done = build(out)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(make_once: MakeOnce) -> Path:
    return make_once("site", build_all)


class Page(HTMLParser):
    """The links of a page, its anchors, and what a browser loads to show it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(attributes["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in attributes:
            self.loaded.append(attributes["src"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_page_of_the_documentation_is_there(site: Path) -> None:
    named = {page for pages in CHAPTERS.values() for page in pages}
    written = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    assert written <= named, "a page of docs/ is in no chapter of the site"
    for page in (*named, "index", "search"):
        assert (site / f"{page}.html").is_file()


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link in ("#", ""):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            followed += 1
            there = target.is_file() and target.is_relative_to(site)
            if there and parts.fragment and target in pages:
                there = unquote(parts.fragment) in pages[target].anchors
            if not there:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken
    assert followed > 300


def test_links_to_other_sites_are_few_and_known(pages: dict[Path, Page]) -> None:
    others = {urlsplit(link).netloc for page in pages.values() for link in page.links if urlsplit(link).netloc}
    assert others <= {"github.com"}  # the maker of the theme, named at the foot of every page


def test_nothing_is_fetched_at_reading_time(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for loaded in page.loaded:
            parts = urlsplit(loaded)
            assert not parts.scheme, f"{path.name} loads {loaded}"
            assert not parts.netloc, f"{path.name} loads {loaded}"
            assert (path.parent / unquote(parts.path)).is_file(), f"{path.name} loads {loaded}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_the_reference_has_every_public_name(pages: dict[Path, Page], site: Path) -> None:
    anchors = pages[site / "docs" / "api.html"].anchors
    assert {f"unround.{name}" for name in unround.__all__ if name != "__version__"} <= anchors
    assert "unround.AuditFolder.posterior" in anchors
    text = re.sub(r"<[^>]+>", "", (site / "docs" / "api.html").read_text(encoding="utf-8"))
    assert "Minimum probability to report a count as likely" in text
    assert "`" not in text  # marks of code that were not understood


BROKEN = """
def assemble(source):
    source.mkdir()
    (source / "index.md").write_text("# One\\n\\n[nowhere](nowhere.md)\\n", encoding="utf-8")
site.assemble = assemble
"""


def test_what_sphinx_warns_about_is_an_error(tmp_path: Path) -> None:
    done = build(tmp_path, BROKEN)
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
    assert "The site has faults" in done.stderr
