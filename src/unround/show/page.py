"""A document as a page, or as the card of a notebook: HTML that needs nothing from elsewhere and runs no script.

Every text comes from somebody's file, and is escaped and shortened here. What stands between backticks is shown as code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache, singledispatchmethod
from pathlib import Path

from markupsafe import Markup, escape

from unround.errors import InputError
from unround.output import text_of, write_text
from unround.show import parts as doc
from unround.show.charts import strip
from unround.show.palette import PALETTE
from unround.show.parts import PAGE, TERMINAL, Document, Part
from unround.show.site import macro, render, static
from unround.show.words import CLAIMS, cut

KINDS = (*CLAIMS, "open", "given")
LONG, NAME, CELL = 900, 160, 600
"""Characters of a sentence, a name and a cell that are shown."""

BARS = Markup('<td class="bars" aria-hidden="true">{}</td>')

COPY = Markup('\n<button type="button" class="link tool" data-copy>Copy the sentence</button>')
SAVE = Markup('<button type="button" class="link tool" data-save="{}">Save picture</button>')
"""Buttons that appear where there is a script."""

GENERATOR = '<meta name="generator" content="unround '
"""What every page has, and hardly anything else."""

RELATIONS = {"← Previous": "prev", "Next →": "next"}
"""What a link is to the page it stands on, by its words."""

_CODE = re.compile(r"`([^`\n]{1,200})`")


def page(document: Document) -> str:
    """Return a document as a page of its own."""
    printer = _PagePrinter(short=False)
    return render(
        "document.html", document=document, content=printer.all(document.parts), contents=list(_contents(document.parts))
    )


def check_name(path: Path) -> None:
    """Raise unless a page can have this name, and its folder exists: before anything takes long."""
    if path.suffix.lower() != ".html":
        raise InputError(f"a page is written as .html: give the file such a name, not {path.name!r}.")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if os.path.lexists(path) and GENERATOR not in text_of(path):
        raise InputError(f"{path} exists, and is not a page of unround: choose another name.")


def write(path: Path, document: Document) -> None:
    """Write a page, in place of an older one."""
    check_name(path)
    write_text(path, page(document))


def card(document: Document) -> str:
    """Return a document as a notebook card, in short and in light colours: a notebook's scheme need not follow ours."""
    return Markup('<div class="unround"><style>{}</style>\n{}\n</div>').format(
        Markup(card_style()), _PagePrinter(short=True).all(document.parts)
    )


@cache
def card_style() -> str:
    """Return the stylesheet of a card, within which alone it holds: a notebook has a style of its own."""
    tokens = ";".join(f"--{name}:{pair[0]}" for name, pair in PALETTE.items())
    rules = "\n".join(static(name).decode() for name in ("notebook.css", "charts.css"))
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", f".unround {{ {tokens}; {rules} }}")).strip()


def html(parts: Iterable[Part]) -> Markup:
    """Return parts for the explorer, whose pages have tools: a sentence can be copied, a picture saved."""
    return _PagePrinter(short=False, tools=True).all(parts)


def _contents(parts: Iterable[Part]) -> Iterable[tuple[str, str]]:
    for part in parts:
        if isinstance(part, doc.Section) and part.anchor and part.short:
            yield part.anchor, part.short
        elif isinstance(part, doc.Only | doc.Frame):
            yield from _contents(part.parts)


def prose(text: object, longest: int = LONG) -> Markup:
    """Return a sentence as HTML."""
    lines = str(escape(cut(text, longest))).split("\n")
    return Markup("<br/>".join(_CODE.sub(r"<code>\1</code>", line) for line in lines))


class _PagePrinter:
    """Makes HTML of parts; `short` leaves out what only a whole page shows, `tools` adds what a script does."""

    def __init__(self, short: bool, tools: bool = False) -> None:
        self.short, self.tools = short, tools

    def all(self, parts: Iterable[Part]) -> Markup:
        return Markup("\n").join(filter(None, (self.html(part) for part in parts)))

    @singledispatchmethod
    def html(self, part: Part) -> Markup:
        raise NotImplementedError(type(part))

    @html.register
    def _(self, part: doc.Piece) -> Markup:
        return macro(part.name, *part.given, **part.named)

    @html.register
    def _(self, part: doc.Text) -> Markup:
        if not part.text:
            return Markup()
        if part.tone == doc.QUOTE:
            return Markup('<blockquote class="quote">{}</blockquote>{}').format(prose(part.text), COPY if self.tools else "")
        badge = _said(doc.TableCell(part.badge, badge=part.badge)) + " " if part.badge else ""
        return Markup("<p{}>{}{}</p>").format(_class(part.tone), badge, prose(part.text))

    @html.register
    def _(self, part: doc.Links) -> Markup:
        if not part.items:
            return Markup()
        items = []
        for text, address in part.items:
            current = _attribute("aria-current", "true" if part.here and text == part.here else "")
            relation = _attribute("rel", RELATIONS.get(text, ""))
            link = Markup('<a{} href="{}"{}>{}</a>').format(relation, address, current, cut(text, NAME))
            items.append(link if address else Markup("<span>{}</span>").format(cut(text, NAME)))
        tag, body = "nav" if part.label else "p", Markup(escape(part.between)).join(items)
        return Markup("<{0}{1}{2}>{3}</{0}>").format(tag, _class(part.style), _attribute("aria-label", part.label), body)

    @html.register
    def _(self, part: doc.Bullets) -> Markup:
        if not part.items:
            return Markup()
        items = Markup().join(_item(item) for item in part.items)
        tag = "ol" if part.style in ("next", "steps") else "ul"
        return Markup("<{0}{1}>{2}</{0}>").format(tag, _class(f"{part.style} {part.tone}"), items)

    @html.register
    def _(self, part: doc.Terms) -> Markup:
        rows = Markup()
        for name, text in part.items:
            anchor = part.anchors.get(name, "")
            body = prose(text) if isinstance(text, str) else self.html(text)
            rows += Markup("<dt{}>{}</dt><dd>{}</dd>\n").format(_attribute("id", anchor), prose(name, NAME), body)
        return Markup("<dl{}>{}</dl>").format(_class(f"terms {part.style}"), rows)

    @html.register
    def _(self, part: doc.Table) -> Markup:
        if not part.rows:
            return Markup()
        places = ("", PAGE, doc.CARD) if self.short else ("", PAGE)
        shown = [(at, column) for at, column in enumerate(part.columns) if column.only in places]
        drawn = any(row.claims for row in part.lines)
        kinds = [kind for kind in CLAIMS if any((row.claims or {}).get(kind) for row in part.lines)]
        largest = max((sum(row.claims.values()) for row in part.lines if row.claims), default=0)
        heads = [_head(column, at == part.header) for at, column in shown]
        if drawn:
            heads.insert(part.header + 1, BARS.format(""))
        body = Markup("\n").join(self.row(part, row, shown, largest if drawn else None) for row in part.lines)
        foot = Markup()
        if part.foot is not None:
            foot = Markup("<tfoot>{}</tfoot>").format(self.row(part, part.foot, shown, 0.0 if drawn else None))
        key = _key([(kind, kind, "", "") for kind in kinds]) if drawn else Markup()
        legend = Markup('<p class="quiet">{}</p>').format(prose(part.legend)) if part.legend else Markup()
        table = Markup("<table{}><thead><tr>{}</tr></thead>\n<tbody>{}</tbody>{}</table>").format(
            _class(part.style), Markup().join(heads), body, foot
        )
        region = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>')
        return key + (region.format(cut(part.label or "Table", NAME), table) if not self.short else table) + legend

    def row(
        self, table: doc.Table, row: doc.TableRow, shown: Sequence[tuple[int, doc.TableColumn]], largest: float | None
    ) -> Markup:
        """Return a row; where rows have claims, a bar of them follows the name."""
        cells = []
        for at, column in shown:
            cell = row.cells[at] if at < len(row.cells) else ""
            said = cell if isinstance(cell, doc.TableCell) else doc.TableCell(cell)
            if at == table.header:
                dot = Markup('<i class="dot {}"></i>').format(table.colours[said.text]) if table.colours else ""
                small = Markup(" <small><bdi>{}</bdi></small>").format(cut(said.small, 80)) if said.small else ""
                text: str = cut(said.text, NAME)
                text = Markup('<a href="{}">{}</a>').format(said.link, text) if said.link else text
                name = _class(f"name {said.tone}")
                cells.append(Markup('<th scope="row"{}>{}<bdi>{}</bdi>{}</th>').format(name, dot, text, small))
            else:
                kind = f"{'' if column.left else 'n'} {said.tone}"
                cells.append(Markup("<td{}{}>{}</td>").format(_class(kind), _attribute("title", said.title), _said(said)))
        if largest is not None:
            cells.insert(table.header + 1, BARS.format(strip(row.claims, largest) if row.claims and largest else ""))
        return Markup("<tr{}>{}</tr>").format(_class(row.tone), Markup().join(cells))

    @html.register
    def _(self, part: doc.Chart) -> Markup:
        note = Markup("<small>{}</small>").format(prose(part.note)) if part.note else ""
        caption = Markup("<figcaption>{}{}</figcaption>").format(prose(part.caption), note)
        below = Markup().join(Markup('<p class="hint">{}</p>').format(prose(sentence)) for sentence in part.below)
        key = _key(part.key, "map-key" if part.style == "map-figure" else "counted") if part.key else Markup()
        first, last = (key, Markup()) if part.style == "map-figure" else (Markup(), key)
        caption = caption if part.caption or part.note else Markup()
        save = SAVE.format(cut(part.caption or "Picture", 80)) if self.tools else Markup()
        return Markup("<figure{}>{}{}{}{}{}{}</figure>").format(
            _class(part.style), caption, first, part.picture, save, last, below
        )

    @html.register
    def _(self, part: doc.Charts) -> Markup:
        items = [self.html(chart) for chart in part.charts]
        for at, address in enumerate(part.addresses):
            chart = part.charts[at]
            body = Markup('<span class="name">{}</span>{}<small>{}</small>').format(chart.caption, chart.picture, chart.note)
            items[at] = Markup('<a href="{}">{}</a>').format(address, body)
        return Markup("<ul{}>{}</ul>").format(_class(part.style), Markup().join(map(Markup("<li>{}</li>").format, items)))

    @html.register
    def _(self, part: doc.Code) -> Markup:
        return Markup("<pre><code>{}</code></pre>").format(cut(part.text, 20_000))

    @html.register
    def _(self, part: doc.Section) -> Markup:
        body = self.all(part.parts)
        if not body:
            return Markup()
        name = part.anchor or re.sub(r"\W+", "-", part.title.lower()).strip("-")
        aside = Markup(" <small>{}</small>").format(prose(part.aside)) if part.aside else ""
        address = _attribute("id", f"{name}-h" if part.level == 2 else part.anchor)
        tone = _class(f"headline {part.tone}" if part.tone else "")
        head = Markup("<h{0}{1}{2}>{3}{4}</h{0}>").format(part.level, address, tone, prose(part.title, 400), aside)
        if part.level != 2 or self.short or part.style == doc.INLINE:
            return head + Markup("\n") + body
        return Markup('<section{} aria-labelledby="{}-h"{}>\n{}\n{}\n</section>').format(
            _attribute("id", part.anchor), name, _class(part.style), head, body
        )

    @html.register
    def _(self, part: doc.Fold) -> Markup:
        if self.short and part.only == doc.MORE:
            return Markup()
        aside = Markup(" <small>{}</small>").format(prose(part.aside)) if part.aside else ""
        is_open = not self.short and (part.is_open or (self.tools and not part.only))
        address = _attribute("id", part.anchor) + (Markup(" open") if is_open else "")
        return Markup("<details{}{}><summary>{}{}</summary>\n{}\n</details>").format(
            _class(part.style), address, prose(part.title), aside, self.all(part.parts)
        )

    @html.register
    def _(self, part: doc.Side) -> Markup:
        bodies = filter(None, map(self.all, part.columns))
        columns = Markup("\n").join(Markup("<div>{}</div>").format(body) for body in bodies)
        return Markup("<div{}>{}</div>").format(_class(part.style), columns)

    @html.register
    def _(self, part: doc.Frame) -> Markup:
        return Markup("<{0}{1}>{2}</{0}>").format(part.tag, _class(part.style), self.all(part.parts))

    @html.register
    def _(self, part: doc.Facts) -> Markup:
        return Markup("<ul{}{}>{}</ul>").format(
            _class(part.style),
            _attribute("aria-label", part.title),
            Markup().join(_fact(item, part.style == "tiles") for item in part.items),
        )

    @html.register
    def _(self, part: doc.Only) -> Markup:
        hidden = part.only == TERMINAL or (self.short and part.only in (doc.MORE, PAGE))
        return Markup() if hidden else self.all(part.parts)

    @html.register
    def _(self, part: doc.Files) -> Markup:
        files = [f"`{name}`: {what}" for name, what in part.files]
        return self.html(doc.Bullets(files, doc.QUIET)) if self.short else Markup()

    @html.register
    def _(self, _part: doc.Bars) -> Markup:
        return Markup()  # a page has the chart


def _class(names: str) -> Markup:
    return _attribute("class", " ".join(names.split()))


def _attribute(name: str, value: str) -> Markup:
    return Markup(' {}="{}"').format(name, value) if value else Markup()


def _item(item: str | tuple[str, str]) -> Markup:
    if isinstance(item, str):
        return Markup("<li>{}</li>").format(prose(item, 700))
    name, text = item
    said = Markup(': <span class="quiet">{}</span>').format(prose(text, 500)) if text else ""
    return Markup("<li><bdi>{}</bdi>{}</li>").format(prose(name, 300), said)


def _head(column: doc.TableColumn, is_header: bool) -> Markup:
    kind = "name" if is_header else "" if column.left else "n wrap"
    if not column.name:
        return Markup("<td{}></td>").format(_class("" if is_header else kind))
    return Markup('<th scope="col"{}>{}</th>').format(_class(kind), column.name)


def _said(cell: doc.TableCell) -> Markup:
    if isinstance(cell.text, Markup):
        return cell.text
    small = Markup(" <small>{}</small>").format(prose(cell.small, CELL)) if cell.small else ""
    if cell.badge in KINDS:
        return Markup('<span class="badge {}">{}</span>{}').format(cell.badge, cell.text, small)
    text = prose(cell.text, CELL)
    text = Markup('<a href="{}">{}</a>').format(cell.link, text) if cell.link else text
    return Markup("<bdi>{}</bdi>{}").format(text, small) if cell.text or small else Markup()


def _key(rows: Iterable[tuple[str, str, str, str]], style: str = "") -> Markup:
    """Return what colours mean: the class of each, its name, a number, and what is to be added."""
    items = Markup()
    for kind, name, number, more in rows:
        mark = f"area {kind}" if style == "map-key" else kind
        bold = Markup(" <b>{}</b>").format(number) if number else ""
        small = Markup(" <small>{}</small>").format(more) if more else ""
        items += Markup('<li><i class="{}"></i><span>{}</span>{}{}</li>').format(mark, name, bold, small)
    return Markup('<ul{} aria-label="Colours">{}</ul>').format(_class(f"key {style}"), items)


def _fact(fact: doc.Fact, value_first: bool) -> Markup:
    said = Markup(" <small>{}</small>").format(prose(fact.said, 200)) if fact.said else ""
    order = Markup("<b>{1}</b> <span>{0}</span>{2}") if value_first else Markup("<span>{0}</span> <b>{1}</b>{2}")
    body = order.format(prose(fact.what, NAME), prose(fact.value, NAME), said)
    if fact.anchor:
        address = fact.anchor if fact.anchor.startswith("/") else f"#{fact.anchor}"
        body = Markup('<a href="{}">{}</a>').format(address, body)
    return Markup("<li{}>{}</li>").format(_class(fact.tone), body)
