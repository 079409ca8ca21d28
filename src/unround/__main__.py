"""`python -m unround` is `unround`; stopped by Ctrl-C while it is still being loaded, it says so like any command."""

import sys


def main() -> None:
    """Load the commands, and start from the shell."""
    try:
        from unround.cli import main as run_command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run_command()


if __name__ == "__main__":
    main()
