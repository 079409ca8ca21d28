"""`make r`: build the R package and check it as CRAN does, in a folder of its own, against the unround that runs this."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from unround import __version__

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Return 0 if the check ends without an error or a warning."""
    program = Path(sys.executable).with_name("unround")
    environment = os.environ | {"UNROUND": str(program), "_R_CHECK_FORCE_SUGGESTS_": "false"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["R", "CMD", "build", str(ROOT / "r")], cwd=folder, env=environment, check=True)
        command = ["R", "CMD", "check", "--as-cran", "--no-manual", f"unround_{__version__}.tar.gz"]
        done = subprocess.run(command, cwd=folder, env=environment, check=False)
        said = (Path(folder) / "unround.Rcheck" / "00check.log").read_text(encoding="utf-8")
    return 1 if done.returncode or "\nStatus: " not in said or "WARNING" in said.rsplit("\nStatus: ", 1)[1] else 0


if __name__ == "__main__":
    sys.exit(main())
