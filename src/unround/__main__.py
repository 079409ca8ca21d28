"""`python -m unround` is `unround`; stopped by Ctrl-C while it is still being loaded, or already ending, it says so too."""

import gc
import os
import sys

UNCOLLECTED = 50_000
"""Objects that are made before somebody looks which of them refer to each other in circles only. Libraries make hundreds of
thousands while they are loaded, which stay: to look at them as often as Python does takes 8 % of a small audit."""


def main() -> None:
    """Load the commands, and start from the shell."""
    _have_streams()
    gc.set_threshold(UNCOLLECTED)
    try:
        from unround.cli import main as run_command

        run_command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _have_streams() -> None:
    """Replace streams that the caller closed by ones that say nothing: files would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the least number that is free
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115


if __name__ == "__main__":
    main()
