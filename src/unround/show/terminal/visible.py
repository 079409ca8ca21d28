"""Text from elsewhere on a terminal: what would move the cursor, change colours or turn the direction of writing is shown.

Names of areas, columns and files can hold escape sequences and bidirectional marks, by which text could overwrite what
stands above it or read as something else. Everything that is printed goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tabs and line ends, those of eight bits too
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of writing
    "\u2028\u2029]"  # line ends that only some programs take for such
)


def visible(text: str) -> str:
    r"""Return text with what would be obeyed rather than shown as visible escapes.

    Examples
    --------
    >>> print(visible("Fenwick\x1b[2Jville"))
    Fenwick\x1b[2Jville
    >>> visible("plain · ünïcode") == "plain · ünïcode"
    True
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def visible_json(text: str) -> str:
    """Return JSON that means the same, with such characters as escapes."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class VisibleConsole(Console):
    """A console of rich that obeys nothing that stands in the text; its own colours are no text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as usual, then show what is hidden."""
        for segment in super().render(renderable, options):
            if segment.control is None and _HIDDEN.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment
