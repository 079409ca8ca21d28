"""The picture of the report in the README: the first page of the audit of `examples/survey.toml`, an invented table.

`python -m docs.report_picture` takes it again. No test compares it: browsers draw letters differently.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import unround

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def take(report: Path, to: Path = PICTURE) -> None:
    """Take a picture of what a reader sees of a report before scrolling."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        page.screenshot(path=to)
        browser.close()


def main() -> None:
    """Audit the example, and take the picture of its report."""
    with tempfile.TemporaryDirectory() as place:
        unround.audit(ROOT / "examples" / "survey.toml", Path(place) / "audit")
        take(Path(place) / "audit" / "report.html")
    print(f"{PICTURE} was taken.")


if __name__ == "__main__":
    main()
