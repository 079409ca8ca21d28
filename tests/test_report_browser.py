"""The report in a real browser: on paper, in the dark, on a telephone, and by people who cannot see it."""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_browser import Browser, Page, playwright
from tests.test_browser import browser as browser
from unround.job import AuditFolder
from unround.show.report import write_pages

A4 = {"width": 688, "height": 1016}
"""What is left of the paper between its margins of 14 mm, in pixels."""


@pytest.fixture(params=["audited_census", "survey_audit", "hostile_audit"])
def report(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    folder: Path = request.getfixturevalue(request.param)
    if not (folder / "report.html").exists():
        folder = shutil.copytree(folder, tmp_path / "audit")
        write_pages(AuditFolder.open(folder))
    return (folder / "report.html").as_uri()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """Open a tab that fails the test on errors, dialogs, and requests for anything but the page."""
    troubles: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda said: troubles.append(said.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda one: troubles.append(one.url) if not one.url.endswith("report.html") else None)

    def dismissed(dialog: playwright.Dialog) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    yield page
    page.close()
    assert troubles == []


def texts_on(pdf: bytes) -> list[int]:
    """Return how many pieces of text each page of a PDF has, as Chromium writes it."""
    objects = {int(match[1]): match[2] for match in re.finditer(rb"(\d+) 0 obj\s(.*?)\sendobj", pdf, re.DOTALL)}
    pages = []
    for _, one in sorted(objects.items()):
        if re.search(rb"/Type\s*/Page\b(?!s)", one):
            match = re.search(rb"/Contents (\d+) 0 R", one)
            assert match is not None
            stream = objects[int(match[1])].split(b"stream", 1)[1].lstrip(b"\r\n")
            drawn = zlib.decompress(stream[: stream.rindex(b"endstream")].rstrip(b"\r\n"))
            pages.append(len(re.findall(rb"T[jJ]\b", drawn)))
    return pages


def printed(page: Page) -> list[int]:
    return texts_on(page.pdf(format="A4", print_background=True))


def test_the_first_page_stands_alone_on_paper(tab: Page, report: str) -> None:
    tab.goto(report)
    whole = printed(tab)
    assert len(whole) > 1
    assert min(whole) > 20, "no page is empty"
    # The rest begins on a page of its own: without the first sheet it has as many pages, less one.
    tab.add_style_tag(content=".masthead, #verdict { display: none !important; }")
    assert len(printed(tab)) == len(whole) - 1
    tab.goto(report)
    tab.add_style_tag(content="main > :not(#verdict), footer { display: none !important; }")
    assert len(printed(tab)) == 1
    tab.emulate_media(media="print")
    tab.set_viewport_size(A4)
    box = tab.locator("#verdict").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= A4["height"]
    for wanted in (".headline", ".footing", ".of svg", ".next", ".made"):
        assert tab.locator(f"#verdict {wanted}").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 380])
def test_everybody_can_read_it(browser: Browser, report: str, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page.goto(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [violation["id"] for violation in violations if violation["impact"] in ("serious", "critical")] == []
    page.close()


def test_the_first_screen_answers(tab: Page, report: str) -> None:
    """Whether, why, and what to look at are all in sight before anybody scrolls."""
    tab.goto(report)
    for wanted in (".headline", ".footing", ".of svg", "#verdict h3:has-text('What to do next')"):
        box = tab.locator(wanted).first.bounding_box()
        assert box is not None
        assert box["y"] < 860


def test_it_is_not_long(tab: Page, survey_audit: Path) -> None:
    """Detail is folded: the page of an ordinary audit is some six screens."""
    tab.goto((survey_audit / "report.html").as_uri())
    assert tab.evaluate("document.documentElement.scrollHeight") < 5_800
