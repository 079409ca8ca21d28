"""`python -m unround` is `unround`."""

from unround.cli import main

main()
