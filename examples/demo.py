"""What `make demo` runs: three systems, the audit of a small table, and that of a simulated census to look around in."""

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
    return next((one["address"] for one in findings if one["published"] is not None), "/findings")


def main() -> None:
    """Run the demonstration."""
    OUT.mkdir(exist_ok=True)
    page = OUT / "small-town.html"
    show("solve", "48! = 20 + 20 + 20")
    show("solve", "examples/compound.txt", "--top", "3")
    show("solve", "examples/small-town.txt", "--page", str(page.relative_to(HERE.parent)))
    audit = str((OUT / "audit").relative_to(HERE.parent))
    show("audit", "examples/survey.toml", "-o", audit)
    show("explain", audit, "D08", "30-44/men")
    census, found = (str((OUT / name).relative_to(HERE.parent)) for name in ("census", "census-audit"))
    show("simulate", "-o", census, "--areas", "600", "--levels", "da", "--boundaries")
    table, shapes = f"{census}/98-401-X2021006_English_CSV_data.csv", f"{census}/boundaries.geojson.gz"
    show("audit", table, "-o", found, "--truth", f"{census}/truth.parquet", "--boundaries", shapes)
    print(f"\nOpen {page.as_uri()} to see every cell's histogram.")
    print('Try your own numbers: .venv/bin/unround solve "87! = 35 + 45"')
    print(f"Look around in the census that was just audited: .venv/bin/unround serve {found} --open")
    print(f"Then, for one count's histogram: http://127.0.0.1:8765{an_address(found)}")


if __name__ == "__main__":
    main()
