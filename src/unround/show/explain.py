"""One count, and the argument for it; and how likely every count of an area is."""

from __future__ import annotations

from collections.abc import Iterator

from unround.explanation.cell import Explanation
from unround.explanation.posterior import Posterior
from unround.show.charts import histogram, shown_part
from unround.show.parts import (
    QUIET,
    Bars,
    Bullets,
    Chart,
    Document,
    Fold,
    Line,
    Only,
    Part,
    Section,
    Table,
    TableCell,
    TableColumn,
    Text,
)
from unround.show.words import (
    again,
    arithmetic,
    by_several,
    conclusion,
    due,
    growth,
    number,
    percent,
    percent_with_error,
    span,
    sparkline,
    why_several,
)

MOST_CELLS = 400


def title(cell: Explanation) -> str:
    """Say which count it is: its area, its label, its codes, each once."""
    names = [str(part) for part in cell.area.values()]
    where = " ".join(name for i, name in enumerate(names) if not any(name in other for other in names[:i]))
    codes = [str(code) for axis, code in cell.cell.items() if axis not in ("label", "block") and code != cell.cell["label"]]
    listed = f" ({', '.join(codes)})" if codes else ""
    return f"{where} · {cell.cell['label']}{listed}"


def explanation(cell: Explanation) -> Document:
    """Give the argument for one cell, and its histogram."""
    return Document(title(cell), list(_explanation(cell)))


def _explanation(cell: Explanation) -> Iterator[Part]:
    yield Text(title(cell), "lead")
    if cell.cell["block"] and cell.cell["block"] != cell.cell["label"]:
        yield Text(f"table: {cell.cell['block']}", QUIET)
    published = f"{cell.published:,}" if cell.published is not None else f"nothing ({cell.why_absent})"
    yield Text(f"Published: {published}{again(cell)}. {cell.mechanism}\n{conclusion(cell)}")
    if cell.sums:
        sums = [(f"{shown.sum}{'' if shown.used else ' (not used)'}", arithmetic(shown)) for shown in cell.sums]
        yield Fold("Totals that include this count", [Bullets(sums)], only="")
    if cell.others:
        yield Fold("Other areas", list(_others(cell)), only="")
    if cell.argument:
        yield Section("The argument", [Bullets([cell.argument])], level=3)
    elif cell.growth and cell.value is not None and cell.probability is not None:
        rows = [(percent(probability), said) for said, probability in growth(cell)]
        table = Table((TableColumn("probability"), "with"), rows, "How probable it becomes", left=("with",))
        yield Section(f"How probable {cell.value:,} becomes", [table], level=3)
    if not cell.argument:
        yield Text(due(cell))
        yield Text(why_several(cell.priors) if by_several(cell) else "", QUIET)
    if cell.distribution and cell.low != cell.high:
        yield Section("How likely each count is", list(_histogram(cell)), level=3)
    if cell.contradictions:
        yield Fold("Inconsistent published figures", [Bullets(cell.contradictions)], only="")
    yield Fold("Assumed", [Bullets(cell.assumptions)], only="")


def _others(cell: Explanation) -> Iterator[Part]:
    """Say which other areas bear on the count, and what they published for it."""
    others = cell.others
    assert others is not None
    yield Bullets(others.said)
    heads = ("area", TableColumn("", left=True), "published", "possible", "likeliest", "probability")
    rows = [
        [
            area.name,
            area.role,
            number(area.published),
            span(area.low, area.high),
            number(area.value),
            "" if area.probability is None else percent(area.probability),
        ]
        for area in others.areas
    ]
    yield Table(heads, rows, "Other areas")
    if others.more:
        yield Text(f"… and {others.more:,} more areas.", QUIET)


def _histogram(cell: Explanation) -> Iterator[Part]:
    shown = shown_part(cell.distribution)
    largest = max(p for _, p in shown)
    yield Only("terminal", [Bars([(f"{value:,}", percent(p), p / largest) for value, p in shown])])
    yield Chart(histogram(cell.distribution, name=cell.key, kind=cell.kind, published=cell.published, height=110))


def posterior(result: Posterior) -> Document:
    """List every count of an area: what was published, what is possible, and how likely."""
    where = " ".join(str(name) for name in result.area.values())
    heads = (
        "cell",
        "published",
        "possible",
        "likeliest",
        "prob.",
        TableColumn("distribution", left=True),
        TableColumn("", left=True),
    )
    rows: list[Line] = []
    for value in result.cells.values():
        name = TableCell(value.key, small="" if value.label in value.key else value.label)
        sure = percent_with_error(value.probability, value.error)
        bars = "" if value.kind == "given" else sparkline(value.distribution)
        kind = TableCell(value.kind, badge=value.kind)
        rows.append([name, number(value.published), span(value.low, value.high), number(value.mode), sure, bars, kind])
    more = f"and {len(rows) - MOST_CELLS:,} more cells: see .to_polars(). " if len(rows) > MOST_CELLS else ""
    note = Text(f"{more}Inferred from published values; not official counts.", QUIET)
    return Document(where, [Text(where, "lead"), Table(heads, rows[:MOST_CELLS], "Counts"), note])
