"""The pictures of the explorer in the README, taken in a browser, of a simulated census.

    python -m docs.pictures                    simulates and audits the census first
    python -m docs.pictures --folder demo/census-audit

They show invented areas only. They are not compared by any test: browsers draw letters differently.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE = 1360


@dataclass(frozen=True)
class Picture:
    """One picture: where it is taken, in which colours, how tall it is, and what was done before."""

    name: str
    address: str
    scheme: str
    tall: int
    keys: tuple[str, ...] = ()


PICTURES = (
    Picture("explorer", "/", "light", 860),
    Picture("findings", "/findings?size=1-2", "light", 860, ("j", "j", "Enter")),
    Picture("map", "/map", "dark", 860),
)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve an audit, and yield the address."""
    command = [sys.executable, "-m", "unround", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+(?=/)", server.stdout.readline())
        assert found is not None, "the explorer did not start"
        try:
            yield found[0]
        finally:
            server.terminate()


def take(folder: Path, into: Path = IMAGES) -> list[Path]:
    """Take all pictures of an audit."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    written = []
    with served(folder) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for one in PICTURES:
            tab = browser.new_page(viewport={"width": WIDE, "height": one.tall}, color_scheme=one.scheme)  # type: ignore[arg-type]
            tab.goto(address + one.address)
            for key in one.keys:
                tab.keyboard.press(key)
            if one.keys:
                tab.locator("#drawer").get_by_role("heading", name="Assumed").wait_for(state="attached")
            written.append(into / f"{one.name}.png")
            tab.screenshot(path=written[-1])
            tab.close()
        browser.close()
    return written


def audited(place: Path) -> Path:
    """Return the audit of a census that is simulated, made in a folder."""
    import unround
    from unround import simulate

    made = simulate(place / "census", areas=1000, seed=1, boundaries=True)
    unround.audit(made.files[0], place / "audit", truth=made.truth, boundaries=made.boundaries)
    return place / "audit"


def main() -> None:
    """Take the pictures, and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures", description="Take the pictures of the explorer.")
    parser.add_argument("--folder", type=Path, default=None, help="an audit of a simulated census that is there already")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for path in take(asked.folder or audited(Path(place))):
            print(path)


if __name__ == "__main__":
    main()
