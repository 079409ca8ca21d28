"""What `make demo` runs: three systems and the audit of a small table in the terminal, and histograms as a page to open."""

from __future__ import annotations

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


def main() -> None:
    """Run the demonstration."""
    OUT.mkdir(exist_ok=True)
    page = OUT / "small-town.html"
    show("solve", "48! = 20 + 20 + 20")
    show("solve", "examples/compound.txt", "--top", "3")
    show("solve", "examples/small-town.txt", "--plot", str(page.relative_to(HERE.parent)))
    audit = str((OUT / "audit").relative_to(HERE.parent))
    show("audit", "examples/survey.toml", "-o", audit)
    show("explain", audit, "D08", "30-44/men")
    print(f"\nOpen {page.as_uri()} to see every cell's histogram.")
    print('Try your own numbers: .venv/bin/unround solve "87! = 35 + 45"')


if __name__ == "__main__":
    main()
