"""The explorer in a real browser: what a person does with it, in light and dark, wide and narrow, by mouse and keyboard."""

from __future__ import annotations

import importlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from tests.shared import FORMULA, IMAGE, listening
from unround.web.page import area_address, cell_address

CI = os.environ.get("CI", "").lower() in ("1", "true")
if CI:
    playwright = importlib.import_module("playwright.sync_api")
else:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no tests in a browser")
Browser, Page, expect = playwright.Browser, playwright.Page, playwright.expect

expect.set_options(timeout=300_000)  # for machines that do other things too; nothing waits longer than it must
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the machine's own chromium; skip where there is none, but never under CI."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        said = "no chromium is installed: the tests in a browser did not run (Debian: apt-get install chromium)"
        if CI:
            pytest.fail(said)
        pytest.skip(said)
    with playwright.sync_playwright() as driver:
        # Chromium's own sandbox does not work for root in a container; the pages are our own.
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with listening(folder) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def hostile(hostile_audit: Path) -> Iterator[str]:
    with served(hostile_audit) as address:
        yield address


@pytest.fixture(scope="module")
def census(census_audit: Path) -> Iterator[str]:
    with served(census_audit) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a tab that fails the test on any error in the console, any dialog, and any request to another host."""
    troubles: list[str] = []
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    tab.set_default_timeout(300_000)
    tab.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: troubles.append(str(error)))

    def dismissed(dialog: playwright.Dialog) -> None:
        troubles.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    tab.on("dialog", dismissed)
    tab.on(
        "request",
        lambda context: (
            troubles.append(context.url) if not context.url.startswith(("http://127.0.0.1:", "blob:", "data:")) else None
        ),
    )
    yield tab
    tab.close()
    assert troubles == []


def claim(folder: Path, kind: str = "likely") -> dict[str, str]:
    """Return a finding by sex, below the top of its table."""
    frame = pl.read_parquet(folder / "findings.parquet")
    return frame.filter((pl.col("kind") == kind) & (pl.col("sex") == "men")).row(0, named=True)


def test_from_a_search_to_an_argument(page: Page, census: str, census_audit: Path) -> None:
    row = claim(census_audit)
    page.goto(census)
    expect(page.get_by_role("heading", level=1)).to_contain_text("This release gives some counts away")
    box = page.get_by_role("combobox", name="Search for areas")
    box.press_sequentially(row["region"][-6:], delay=20)
    option = page.get_by_role("option").first
    expect(option).to_be_visible()
    box.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    page.wait_for_url(f"**{area_address(row['region'])}")
    page.get_by_text("all counts of this area").click()
    name = f"{row['characteristic']}, men: {row['value']}"
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_url(f"**{cell_address(row['region'], row['characteristic_id'] + '/men')}")
    expect(page.get_by_role("img", name="histogram of the possible true counts")).to_be_visible()
    expect(page.locator("rect.bar").first).to_be_visible()
    expect(page.get_by_role("heading", name=f"How probable {row['value']} becomes")).to_be_visible()
    page.get_by_text("The same as a table").click()
    expect(page.locator("details.same table")).to_be_visible()
    page.go_back()
    page.wait_for_url(f"**{area_address(row['region'])}")
    page.go_forward()
    page.reload()
    expect(page.get_by_role("heading", name="Totals that include this count")).to_be_visible()
    page.locator("details.sum tbody a").first.click()
    expect(page.get_by_role("heading", name="How likely each count is")).to_be_visible()


def test_tables_unfold_by_mouse_and_keyboard_and_stay_so(page: Page, census: str) -> None:
    page.goto(f"{census}/area/10010001?table=0")
    inner = page.locator("tr", has_text="20 to 24 years")
    page.get_by_role("button", name="Collapse all").click()
    expect(inner).to_be_hidden()
    top = page.get_by_role("button", name="Total - Age groups").first
    expect(top).to_have_attribute("aria-expanded", "false")
    top.focus()
    page.keyboard.press("Enter")
    expect(top).to_have_attribute("aria-expanded", "true")
    expect(inner).to_be_hidden()
    page.get_by_role("button", name="15 to 64 years").click()
    expect(inner).to_be_visible()
    page.reload()
    expect(inner).to_be_visible()


def test_everything_is_there_without_script(browser: Browser, census: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(census)
    tab.get_by_role("searchbox", name="Search for areas").fill("10010001")
    tab.get_by_role("button", name="Search").click()
    tab.get_by_role("link", name="10010001").first.click()
    tab.get_by_text("all counts of this area").click()
    expect(tab.locator("tr", has_text="20 to 24 years")).to_be_visible()
    tab.goto(f"{census}/findings?size=0")
    everything = status_number(tab)
    tab.get_by_label("90% or more").check()
    tab.get_by_role("button", name="Apply").click()
    assert 0 < status_number(tab) < everything
    tab.get_by_label("Order").select_option("area")
    tab.get_by_role("button", name="Sort").click()
    expect(tab).to_have_url(re.compile("size=0.*probability=90.*sort=area"))
    tab.locator(".row a").first.click()  # without the script, the argument has a page of its own
    expect(tab.get_by_role("heading", name="Totals that include this count")).to_be_visible()
    tab.goto(f"{census}/try")
    tab.get_by_label("Sums, one per line").fill("48! = 20 + 20 + 20")
    tab.get_by_role("button", name="Solve").click()
    expect(tab.get_by_text("This is the only solution.")).to_be_visible()
    context.close()


def status_number(tab: Page) -> int:
    """Return how many findings a list says that it has."""
    return int(re.sub(r"\D", "", tab.get_by_role("status").inner_text()))


def test_findings_are_filtered_paged_and_exported(page: Page, census: str, census_audit: Path) -> None:
    frame = pl.read_parquet(census_audit / "findings.parquet")
    page.goto(f"{census}/findings")
    expect(page.get_by_role("status")).to_have_text(f"{frame.height:,} findings.")
    page.get_by_role("link", name="Next →").click()
    expect(page.get_by_text(f"51–{min(100, frame.height)} of {frame.height:,}")).to_be_visible()
    zeros = page.get_by_role("checkbox", name="zeros")
    zeros.check()
    expect(page.get_by_role("status")).to_contain_text(f"{(frame['value'] == 0).sum():,} finding")
    expect(zeros).to_be_focused()  # the list came anew, and the place was kept
    page.get_by_role("radio", name="90% or more").check()
    expected = frame.filter((pl.col("probability_low") >= 0.9) & (pl.col("value") == 0))
    assert expected.height > 0
    expect(page.get_by_role("status")).to_contain_text(f"{expected.height:,} finding")
    page.wait_for_url("**/findings?size=0&probability=90")
    rows = page.locator("#found .row")
    with page.expect_download() as waiting:
        page.locator(".export a").first.click()
    exported = pl.read_csv(waiting.value.path())
    assert exported.height == rows.count()
    assert set(exported["value"]) == {0}
    page.reload()
    expect(page.get_by_role("radio", name="90% or more")).to_be_checked()
    page.go_back()
    expect(page.get_by_role("status")).to_contain_text(f"{(frame['value'] == 0).sum():,} finding")
    expect(page.get_by_role("radio", name="any")).to_be_checked()
    page.get_by_label("Order").select_option("probability")
    first = frame.filter(pl.col("value") == 0)["probability_low"].max()
    expect(rows.first.locator(".sure")).to_contain_text(f"{100 * first:.1f}%")
    page.get_by_label("Words").fill("women")
    expect(rows.filter(has_not_text="women")).to_have_count(0)
    expect(page.get_by_label("Words")).to_be_focused()


def test_reading_on_by_keyboard_without_losing_the_place(page: Page, census: str) -> None:
    page.goto(f"{census}/findings?size=0")
    rows, drawer = page.locator("#found .row"), page.locator("#drawer")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_have_class(re.compile("here"))
    expect(drawer).to_be_hidden()
    page.keyboard.press("Enter")
    expect(drawer.get_by_role("heading", name="Totals that include this count")).to_be_visible()
    second = drawer.locator("h2").first.inner_text(), drawer.locator(".where").inner_text()
    assert rows.nth(1).get_attribute("data-address") in page.evaluate("decodeURIComponent(location.search)")
    page.keyboard.press("j")
    expect(rows.nth(2)).to_have_class(re.compile("here"))
    expect(drawer.locator(".where")).not_to_have_text(second[1])
    page.keyboard.press("k")
    expect(drawer.locator(".where")).to_have_text(second[1])
    page.reload()  # every state has an address
    expect(drawer.locator(".where")).to_have_text(second[1])
    expect(rows.nth(1)).to_have_class(re.compile("here"))
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    assert "open=" not in page.url
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search for areas")).to_be_focused()
    page.keyboard.type("jk")  # what is typed moves nothing
    expect(drawer).to_be_hidden()
    rows.nth(4).click()
    expect(drawer.locator("h2").first).to_be_visible()
    page.go_back()
    expect(drawer).to_be_hidden()
    page.go_forward()
    expect(drawer.locator("h2").first).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(drawer).to_be_hidden()


def test_a_telephone_shows_list_and_argument_one_over_the_other(browser: Browser, census: str) -> None:
    tab = browser.new_page(viewport={"width": 380, "height": 800})
    tab.goto(f"{census}/findings?size=0")
    expect(tab.get_by_role("checkbox", name="zeros")).to_be_hidden()  # the filters are folded
    tab.get_by_text("Filters", exact=True).click()
    expect(tab.get_by_role("checkbox", name="zeros")).to_be_visible()
    tab.locator("#found .row").first.click()
    drawer = tab.locator("#drawer")
    expect(drawer.get_by_role("heading", name="Assumed")).to_be_attached()
    box = drawer.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 380
    assert not tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    tab.close()


def test_a_search_leads_to_the_findings_about_a_characteristic(page: Page, census: str) -> None:
    page.goto(census)
    page.get_by_role("combobox").press_sequentially("20 to 24", delay=20)
    page.get_by_role("option", name="20 to 24 years").click()
    expect(page).to_have_url(re.compile(r"/findings\?line=\d+"))
    expect(page.locator("#found .row .what").first).to_contain_text("20 to 24 years")
    page.get_by_role("link", name="remove").click()
    expect(page).to_have_url(re.compile("/findings$"))


def test_the_first_screen_leads_to_the_argument(page: Page, census: str) -> None:
    page.goto(census)
    first = page.locator(".row").first
    expect(first).to_be_in_viewport()
    first.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/findings.*open="))
    expect(page.locator("#drawer").get_by_role("heading", name="Assumed")).to_be_attached()


def test_a_typed_system_redraws(page: Page, hostile: str) -> None:
    page.goto(f"{hostile}/try")
    field = page.get_by_label("Sums, one per line")
    field.press_sequentially("48! = 20 + 20 + 20", delay=10)
    expect(page.get_by_text("This is the only solution.")).to_be_visible()
    expect(page.locator("#answer svg.histogram")).to_have_count(3)
    field.fill("87! = men: 35 + women: 45")
    expect(page.get_by_text("2 solutions.")).to_be_visible()
    page.wait_for_url("**/try?system=87*")
    field.fill("87! = ")
    expect(page.locator("#answer .warning")).to_contain_text("line 1")
    field.fill("<img src=x onerror=alert(1)> = 3")
    expect(page.locator("#answer .warning")).to_be_visible()
    field.fill("60! = 20 + 20")
    expect(page.get_by_text("No true counts fit.")).to_be_visible()
    page.reload()
    expect(field).to_have_value("60! = 20 + 20")
    page.get_by_role("link", name="Base 3").click()
    expect(page.get_by_label("How counts were published")).to_have_value("rounding:3")


def test_hostile_names_are_only_text(page: Page, hostile: str) -> None:
    page.goto(hostile)
    page.get_by_role("combobox").press_sequentially("<img src", delay=20)
    expect(page.get_by_role("option")).to_have_text(re.compile(re.escape(IMAGE)))
    page.get_by_role("option").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(IMAGE)
    page.goto(hostile + cell_address(IMAGE, "30-44/men"))
    expect(page.get_by_role("heading", name="The argument")).to_be_visible()
    page.goto(f"{hostile}/findings?area=img")
    expect(page.get_by_role("link", name=IMAGE).first).to_be_visible()
    page.goto(hostile + area_address(FORMULA))
    expect(page.get_by_role("heading", level=1)).to_have_text(FORMULA)
    assert page.locator("img, main script").count() == 0


VIEWS = (
    *("/", "/areas", "/areas?q=20+to", "/area/10010001", "/area/10010001?table=0", "CELL", "/findings?size=1-2", "DRAWER"),
    *("/map", "/structure", "/structure/1", "/contradictions", "/try?system=87!+%3D+men%3A+35+%2B+women%3A+45", "/about"),
)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 320)])
def test_everybody_can_use_every_page(
    browser: Browser, census: str, census_audit: Path, mapped: str, scheme: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    row = claim(census_audit)
    serious, wide, colours = [], [], set()
    for view in VIEWS:
        count = cell_address(row["region"], f"{row['characteristic_id']}/men")
        tab.goto(
            (mapped if view == "/map" else census) + {"CELL": count, "DRAWER": f"/findings?open={count}"}.get(view, view)
        )
        if view == "DRAWER":
            expect(tab.locator("#drawer").get_by_role("heading", name="Assumed")).to_be_attached()
        violations = Axe().run(tab, options={"resultTypes": ["violations"]}).response["violations"]
        serious += [
            (view, rule["id"], rule["nodes"][0]["html"]) for rule in violations if rule["impact"] in ("serious", "critical")
        ]
        for narrow in {width, 380}:
            tab.set_viewport_size({"width": narrow, "height": 800})
            if tab.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                wide.append((view, narrow))
        tab.set_viewport_size({"width": width, "height": 800})
        colours.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert serious == []
    assert wide == []
    assert len(colours) == 1
    dark = sum(map(int, re.findall(r"\d+", colours.pop()))) < 3 * 64
    assert dark == (scheme == "dark")
    tab.close()


@pytest.fixture(scope="module")
def mapped(mapped_audit: Path) -> Iterator[str]:
    with served(mapped_audit) as address:
        yield address


@pytest.mark.parametrize("width", [1200, 380])
def test_a_map_names_areas_and_leads_to_them(page: Page, mapped: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{mapped}/map")
    picture = page.get_by_role("img", name="Map of the areas by worst finding")
    expect(picture).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    box = picture.bounding_box()
    assert box is not None
    spot = {"x": box["width"] / 2, "y": box["height"] / 2}
    picture.hover(position=spot)
    said = page.locator(".pointed")
    expect(said).to_contain_text("findings")
    name = said.inner_text().split(",")[0]
    picture.click(position=spot)
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.go_back()
    page.get_by_label("Colours show").select_option("rate")
    expect(page.get_by_role("img", name="Map of the areas by findings per 1,000 counts")).to_be_visible()
    expect(page).to_have_url(re.compile("measure=rate"))
    page.goto(mapped)
    small = page.locator("svg.choropleth")
    box = small.bounding_box()
    assert box is not None
    small.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile("/area/"))


def test_the_keyboard_leads_everywhere(page: Page, census: str) -> None:
    page.goto(census)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    focused = page.locator("main :focus")
    expect(focused).to_have_count(1)
    assert focused.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
