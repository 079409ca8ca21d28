"""What is made of a table that comes without a description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unround.results.shown import Shown
from unround.tables import describing

if TYPE_CHECKING:
    from rich.console import Console


class Described(Shown, describing.Described):
    """What `unround.describe` returns: what a table was taken for, and the draft of its description."""

    __slots__ = ()

    def _show(self, console: Console) -> None:
        from unround.show.terminal.describe import show_description

        show_description(self, console, draft=True)
