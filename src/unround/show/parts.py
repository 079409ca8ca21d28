"""What a result has to say, as a small tree of parts, once for all readers.

A document is built from a result by the module that is called like its command. `terminal` prints it, `page` makes a page or
the card of a notebook of it; neither knows what the result is about. Parts are plain data. Texts come from somebody's file,
and are made safe where they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

from markupsafe import Markup

from unround.show.words import shown

LEAD, STRONG, QUIET, ALARM, QUOTE = "lead", "strong", "quiet", "alarm", "quote"
"""Tones of a text: what comes first, what must be seen, what is there for those who want it, a warning, words to copy."""

PAGE, TERMINAL, CARD, MORE = "page", "terminal", "card", "more"
"""Where a part is shown, if not everywhere: on pages, the terminal or cards alone; or where it is not to be short."""


NOWHERE = "nowhere"
"""A column that has nothing to say."""

INLINE = "inline"
"""The style of a section that is part of a sheet, and no section of the page."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; lines that end in a line feed stay lines. `tone` can be a kind of claim, as `badge` is, before it."""

    text: str
    tone: str = ""
    badge: str = ""


@dataclass(frozen=True, slots=True)
class Links:
    """Words that lead elsewhere, on a page: each with its address, if any; with a `label` they are a way to move about."""

    items: Sequence[tuple[str, str]]
    style: str = ""
    label: str = ""
    between: str = " · "
    here: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one point each; a pair is a name and what is said of it."""

    items: Sequence[str | tuple[str, str]]
    tone: str = ""
    style: str = "plain"


@dataclass(frozen=True, slots=True)
class Terms:
    """Names and what they mean, on a page as a list of definitions."""

    items: Sequence[tuple[str, str | Part]]
    style: str = ""
    anchors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its heading, whether it is text, where it is shown, and how wide a terminal must be for it."""

    name: str
    left: bool = False
    only: str = ""
    least: int = 0


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell that is more than text: a kind of claim as `badge`, a smaller text after it, a tone, a title, a link."""

    text: str
    badge: str = ""
    small: str = ""
    tone: str = ""
    title: str = ""
    link: str = ""


Line: TypeAlias = list[str | TableCell]
"""A row of a table that is being made."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row that is more than cells: with a tone, or with its claims of each kind, which a page draws as a bar."""

    cells: Sequence[str | TableCell]
    tone: str = ""
    claims: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Columns are numbers, but for the first and those named in `left`.

    - `label`: What it is called for those who listen.
    - `header`: The column that names the row.
    - `foot`: A last row that sums up others.
    - `colours`: The colour of a row's dot on a page, by its name.
    - `legend`: How to read it, in small print below it.
    - `style`: A class of the stylesheet.
    """

    heads: Sequence[str | TableColumn]
    rows: Sequence[Sequence[str | TableCell] | TableRow]
    label: str = ""
    left: Sequence[str] = ()
    header: int = 0
    foot: TableRow | None = None
    colours: Mapping[str, str] = field(default_factory=dict)
    legend: str = ""
    style: str = ""

    @property
    def columns(self) -> list[TableColumn]:
        """The columns, each with everything that is known of it."""
        return [
            head if isinstance(head, TableColumn) else TableColumn(head, left=at == self.header or head in self.left)
            for at, head in enumerate(self.heads)
        ]

    @property
    def lines(self) -> list[TableRow]:
        """The rows, each with everything that is known of it."""
        return [row if isinstance(row, TableRow) else TableRow(row) for row in self.rows]


Columns: TypeAlias = Sequence[tuple[str | TableColumn, str | Callable[[Any], str | TableCell]]]
"""The columns of a table: the heading of each, and what stands in it: what a function says of a row, or a field of it."""


def tabulated(rows: Iterable[Any], columns: Columns, label: str = "", **more: Any) -> Table:
    """Return a table with a row for each of some things, which can be objects or plain data."""
    lines = [[shown(row, said) if isinstance(said, str) else said(row) for _, said in columns] for row in rows]
    return Table([head for head, _ in columns], lines, label, **more)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with its caption, for pages. What it shows is also in a table or in words."""

    picture: Markup
    caption: str = ""
    note: str = ""
    key: Sequence[tuple[str, str, str, str]] = ()
    style: str = ""
    below: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Charts:
    """Several small drawings, each with its caption, and an address that it leads to, if any."""

    charts: Sequence[Chart]
    style: str = "multiples"
    addresses: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be copied, as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram of text for the terminal: names, numbers as text, and how long each bar is, up to 1; `mark` is a place."""

    rows: Sequence[tuple[str, str, float]]


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading.

    - `anchor`, `short`: Its address on a page, and its name in the contents.
    - `aside`: What stands behind the heading, on its line.
    - `tone`: A kind of claim, for a heading that says what was found.
    """

    title: str
    parts: Sequence[Part]
    anchor: str = ""
    short: str = ""
    aside: str = ""
    style: str = ""
    level: int = 2
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that a page hides until somebody asks; elsewhere they stand under a heading, or only where `only` says."""

    title: str
    parts: Sequence[Part]
    anchor: str = ""
    only: str = MORE
    style: str = "folded"
    is_open: bool = False
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """Parts that a page puts side by side where there is room."""

    columns: Sequence[Sequence[Part]]
    style: str = "pair"


@dataclass(frozen=True, slots=True)
class Frame:
    """Parts in a frame of their own: a card, a strip, a sheet to be signed."""

    parts: Sequence[Part]
    style: str
    tag: str = "div"


@dataclass(frozen=True, slots=True)
class Facts:
    """Numbers that belong together, each with its name: in one line, as tiles, or as a strip of links."""

    items: Sequence[Fact]
    style: str = "claim"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One of them: what it is, its value, what is said of it, its tone, and the section that says more."""

    what: str
    value: str
    said: str = ""
    tone: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Only:
    """Parts that are shown in one place alone: `PAGE`, `TERMINAL`, or `MORE`: everywhere but in a short version."""

    only: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Files:
    """What was written, and what to type next."""

    folder: str
    files: Sequence[tuple[str, str]]
    commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """What is not a document: a form, a list with facets, a tree of counts; a macro of the explorer, when it is shown."""

    name: str
    given: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


Part: TypeAlias = (
    "Text | Links | Bullets | Terms | Table | Chart | Charts | Code | Bars | Section | Fold | Side | Frame | Facts | Only | "
    "Files | Piece"
)


@dataclass(frozen=True, slots=True)
class Document:
    """A result, ready to be shown.

    - `title`, `kicker`, `facts`: The top of a page: its title, what kind of page it is, and a line about what it is of.
    - `notice`: What must stand under it.
    - `style`: A class of the stylesheet for the whole page.
    - `contents`: Whether a page lists its sections.
    - `window`: The title of a browser's window, if not that of the page.
    """

    title: str
    parts: Sequence[Part]
    kicker: str = ""
    facts: str = ""
    notice: str = ""
    style: str = ""
    contents: bool = False
    window: str = ""
    masthead: bool = True


_Result = ParamSpec("_Result")


def titled(title: str, kicker: str = "") -> Callable[[Callable[_Result, Iterator[Part]]], Callable[_Result, Document]]:
    """Turn a function that yields what a result has to say into one that returns it as a document."""

    def decorate(parts: Callable[_Result, Iterator[Part]]) -> Callable[_Result, Document]:
        @wraps(parts)
        def document(*result: _Result.args, **options: _Result.kwargs) -> Document:
            return Document(title, list(parts(*result, **options)), kicker)

        return document

    return decorate


def rest(number: int, most: int, where: str = "--all lists them") -> Text:
    """Return how many more there are than are shown; an empty text, which nobody prints, where none are."""
    return Text(f"… and {number - most:,} more; {where}." if number > most else "", QUIET)
