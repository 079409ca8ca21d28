"""Everything that a person sees. A result becomes a document, and a document is printed, or made a page or a card.

- `parts`: what documents are made of; `terminal`, `page`: the two that show them
- one module per command, with its sentences, tables and document: `solve`, `check`, `explain`,
  `compare`, `reconcile`, `reconstruct`, `diff`, `rates`, `review`; of an audit `report`
- `audit`, `selfcheck`, `strongest`: the sentences about an audit, which report, terminal and explorer share
- `words`: numbers, kinds of claims, and what is said of one count
- `palette`, `charts`, `maps`: colours, and everything that is drawn
- `site`: the templates and the stylesheet of the explorer
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from unround.show.parts import Document

WIDTH = 100
"""Columns of text that is printed where there is no terminal."""

DOCUMENTS = {
    "Solution": "solve.solution",
    "Expectation": "solve.expectation",
    "Described": "check.description",
    "Inspection": "check.inspection",
    "Check": "check.check",
    "AuditFolder": "report.short",
    "Explanation": "explain.explanation",
    "Posterior": "explain.posterior",
    "Verification": "diff.verification",
    "Diff": "diff.difference",
    "Review": "review.review",
    "RateSteps": "rates.rate_steps",
    "Protected": "compare.protected",
    "Comparison": "compare.comparison",
    "Reconciled": "reconcile.reconciled",
    "Reconstruction": "reconstruct.reconstruction",
}
"""The function that makes a document of a result, by the name of its class."""


def document(result: object, **options: Any) -> Document:
    """Return what a result has to say."""
    from unround.show.parts import Document

    if isinstance(result, Document):
        return result
    name = next(DOCUMENTS[kind.__name__] for kind in type(result).__mro__ if kind.__name__ in DOCUMENTS)
    module, function = name.split(".")
    made: Document = getattr(import_module(f"unround.show.{module}"), function)(result, **options)
    return made


def show(result: object, console: Console, *, verbose: bool = False, **options: Any) -> None:
    """Print a result."""
    from unround.show import terminal

    at_length = {"verbose": True} if verbose else {}
    terminal.show(document(result, **options, **at_length), console, verbose)


def text(result: object) -> str:
    """Return what a terminal would show, without colours."""
    import io

    from unround.show.terminal import VisibleConsole

    written = io.StringIO()
    show(result, VisibleConsole(file=written, width=WIDTH, highlight=False, color_system=None))
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())


def card(result: object) -> str:
    """Return a result as the card of a notebook."""
    from unround.show import page

    return page.card(document(result))


def save(result: object, path: str | os.PathLike[str]) -> None:
    """Write a result as a page."""
    from unround.show import page

    page.write(Path(path), document(result))
