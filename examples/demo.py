"""What `make demo` runs: two systems, the audit of a small table, and that of a simulated census to look around in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent / "demo"
UNROUND = Path(sys.executable).parent / "unround"


def show(*arguments: str) -> None:
    """Print a command as a person would type it, and run it."""
    typed = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    print(f"\n$ unround {typed}\n", flush=True)
    subprocess.run([UNROUND, *arguments], check=True, cwd=HERE.parent)


def an_address(audit: str) -> str:
    """Return where the explorer shows one finding: a small count that is likely, though it was published rounded."""
    view = "/findings.json?kind=likely&size=1-2&probability=80"
    shown = subprocess.run([UNROUND, "serve", audit, "--get", view], check=True, cwd=HERE.parent, capture_output=True)
    findings = json.loads(shown.stdout)["findings"]
    return next((finding["address"] for finding in findings if finding["published"] is not None), "/findings")


def main() -> None:
    """Run the demonstration."""
    OUT.mkdir(exist_ok=True)
    page = OUT / "small-town.html"
    show("solve", "48! = 20 + 20 + 20")
    show("solve", "examples/small-town.txt", "--top", "3", "--page", str(page.relative_to(HERE.parent)))
    audit = str((OUT / "audit").relative_to(HERE.parent))
    show("audit", "examples/survey.toml", "-o", audit)
    show("explain", audit, "D08", "30-44/men")
    census, census_audit = (str((OUT / name).relative_to(HERE.parent)) for name in ("census", "census-audit"))
    show("simulate", "-o", census, "--areas", "600", "--levels", "da", "--boundaries")
    table, shapes = f"{census}/98-401-X2021006_English_CSV_data.csv", f"{census}/boundaries.geojson.gz"
    show("audit", table, "-o", census_audit, "--truth", f"{census}/truth.parquet", "--boundaries", shapes)
    print("\nWhat to look at now")
    for what, where in (
        ("the report on the small table, in a browser", (OUT / "audit" / "report.html").as_uri()),
        ("how likely each count of the small town is", page.as_uri()),
        ("the audited census, to look around in", f".venv/bin/unround serve {census_audit} --open"),
        ("one of its counts, while that runs", f"http://127.0.0.1:8765{an_address(census_audit)}"),
        ("numbers of your own", '.venv/bin/unround solve "87! = 35 + 45"'),
    ):
        print(f"  {what}\n    {where}")


if __name__ == "__main__":
    main()
