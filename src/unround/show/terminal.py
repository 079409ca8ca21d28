"""A document on a terminal, and what is printed there altogether: text from elsewhere is shown, never obeyed.

Names of areas, columns and files can hold escape sequences and bidirectional marks, by which text could overwrite what
stands above it or read as something else. Everything that is printed goes through `VisibleConsole`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import singledispatchmethod

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text as Words

from unround.show import parts as doc
from unround.show.parts import MORE, QUIET, Document, Part
from unround.show.words import STYLES

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tabs and line ends, those of eight bits too
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of writing
    "\u2028\u2029]"  # line ends that only some programs take for such
)

TONES = {"lead": "bold", "strong": "bold", "quiet": "dim", "alarm": "bold yellow", "wrong": "bold red", **STYLES}
"""How a tone is printed."""

BAR = 40
"""Characters in the longest bar of a histogram."""

WIDEST_NAME = 44
"""Characters of a row's name in a table of claims, before it is broken into lines."""


def visible(text: str) -> str:
    r"""Return text with what would be obeyed rather than shown as visible escapes.

    >>> print(visible("Fenwick\x1b[2Jville"))
    Fenwick\x1b[2Jville
    >>> visible("plain · ünïcode") == "plain · ünïcode"
    True
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def visible_json(text: str) -> str:
    """Return JSON that means the same, with such characters as escapes."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class VisibleConsole(Console):
    """A console of rich that obeys nothing that stands in the text; its own colours are not text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as usual, then show what is hidden."""
        for segment in super().render(renderable, options):
            if segment.control is None and _HIDDEN.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment


def show(document: Document, console: Console, verbose: bool = False) -> None:
    """Print a document; with `verbose` also what only pages show otherwise at length."""
    _TerminalPrinter(console, verbose).all(document.parts)


class _TerminalPrinter:
    """Prints parts one after the other, with a blank line where one is due."""

    def __init__(self, console: Console, verbose: bool) -> None:
        self.console, self.verbose = console, verbose
        self.last: object = None  # what was printed before; None at the top and under a heading

    def all(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self.put(part)

    def gap(self, part: Part) -> None:
        """Print a blank line, unless the part belongs to what stands above it."""
        above, self.last = self.last, part
        if above is None or (isinstance(above, doc.Bullets) and isinstance(part, doc.Bullets)):
            return
        if isinstance(part, doc.Text) and part.tone == QUIET and isinstance(above, doc.Text | doc.Table | doc.Bullets):
            return
        self.console.print()

    def heading(self, title: str, aside: str = "") -> None:
        if self.last is not None:
            self.console.print()
        words = Words(title, style="bold")
        self.console.print(words.append(f" {aside}", style="not bold") if aside else words)
        self.last = None

    @singledispatchmethod
    def put(self, part: Part) -> None:
        raise NotImplementedError(type(part))

    @put.register
    def _(self, part: doc.Text) -> None:
        if part.text:
            self.gap(part)
            self.console.print(Words(part.text, style=TONES.get(part.tone, "")))

    @put.register
    def _(self, part: doc.Bullets) -> None:
        if not part.items:
            return
        self.gap(part)
        grid = Grid.grid(padding=(0, 1, 0, 0))
        for at, item in enumerate(part.items, 1):
            mark = f"{at:>2}." if part.style in ("next", "steps") else " •"
            if isinstance(item, str):
                grid.add_row(mark, Words(item))
            else:
                grid.add_row(mark, Words(item[0]).append(f": {item[1]}" if item[1] else "", style="dim"))
        self.console.print(grid, style=TONES.get(part.tone, ""))

    @put.register
    def _(self, part: doc.Terms) -> None:
        grid = Grid.grid(padding=(0, 2, 0, 0))
        rest: list[Part] = []
        for name, text in part.items:
            if isinstance(text, str):
                grid.add_row(Words(name, style="bold"), Words(text))
            else:
                rest.append(doc.Section(name, [text]))
        if grid.row_count:
            self.gap(part)
            self.console.print(grid)
        self.all(rest)

    @put.register
    def _(self, part: doc.Table) -> None:
        if not part.rows:
            return
        self.gap(part)
        shown = [
            at
            for at, column in enumerate(part.columns)
            if column.only in ("", doc.TERMINAL, doc.CARD) and column.least <= self.console.width
        ]
        grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for at in shown:
            column = part.columns[at]
            bars = column.name == "distribution"
            grid.add_column(Words(column.name), justify="left" if column.left else "right", no_wrap=bars, overflow="fold")
        if any(row.claims for row in part.lines):
            grid.columns[0].max_width = WIDEST_NAME
        for row in [*part.lines, *([part.foot] if part.foot else [])]:
            cells = [row.cells[at] if at < len(row.cells) else "" for at in shown]
            grid.add_row(*(_cell(cell) for cell in cells), style=TONES.get(row.tone, ""))
        if Measurement.get(self.console, self.console.options.update(max_width=10_000), grid).maximum > self.console.width:
            grid.padding = (0, 1, 0, 0)
        self.console.print(grid)
        if part.legend:
            self.console.print(Words(part.legend), style="dim")

    @put.register
    def _(self, part: doc.Bars) -> None:
        self.gap(part)
        wide = max(len(row[0]) for row in part.rows), max(len(row[1]) for row in part.rows)
        for name, number, share in part.rows:
            bar = "█" * round(BAR * share) or "▏"
            self.console.print(Words(f"  {name:>{wide[0]}} {number:>{wide[1]}}  {bar}"))

    @put.register
    def _(self, part: doc.Code) -> None:
        self.gap(part)
        self.console.print(Words(part.text), soft_wrap=True, style="dim")

    @put.register
    def _(self, part: doc.Section) -> None:
        self.heading(part.title, part.aside)
        self.all(part.parts)
        self.last = part

    @put.register
    def _(self, part: doc.Fold) -> None:
        if part.only == "" or (part.only == MORE and self.verbose):
            self.heading(part.title)
            self.all(part.parts)
            self.last = part

    @put.register
    def _(self, part: doc.Side) -> None:
        for column in part.columns:
            self.all(column)

    @put.register
    def _(self, part: doc.Frame) -> None:
        self.all(part.parts)

    @put.register
    def _(self, part: doc.Facts) -> None:
        self.gap(part)
        line = Words(f"{part.title}: " if part.title else "")
        for at, fact in enumerate(part.items):
            line.append("; " if at else "").append(f"{fact.what} ").append(fact.value, style=TONES.get(fact.tone, ""))
        self.console.print(line.append("."))

    @put.register
    def _(self, part: doc.Only) -> None:
        if part.only == doc.TERMINAL or (part.only == MORE and self.verbose):
            self.all(part.parts)

    @put.register
    def _(self, part: doc.Files) -> None:
        self.gap(part)
        self.console.print(Words(f"Written to {part.folder}:" if part.folder else "Written:"), soft_wrap=True)
        wide = max((len(name) for name, _ in part.files), default=0)
        for name, what in part.files:
            self.console.print(Words(f"  {name:<{wide}}  ").append(what, style="dim"), soft_wrap=True)
        for command in part.commands:  # in one piece, however long: they are there to be copied
            self.console.print(Words(f"  {command}"), soft_wrap=True)

    @put.register(doc.Chart)
    @put.register(doc.Charts)
    @put.register(doc.Links)
    def _(self, part: doc.Chart | doc.Charts | doc.Links) -> None:
        pass  # what a chart shows stands in a table or in words beside it


def _cell(cell: str | doc.TableCell) -> Words:
    if isinstance(cell, str):
        return Words(cell)
    words = Words(cell.text, style=TONES.get(cell.badge or cell.tone, ""))
    return words.append(f" {cell.small}", "dim") if cell.small else words
