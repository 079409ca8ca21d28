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
    Cell,
    Chart,
    Column,
    Document,
    Fold,
    Line,
    Only,
    Part,
    Section,
    Table,
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


def title(one: Explanation) -> str:
    """Say which count it is: its area, its label, its codes, each once."""
    names = [str(part) for part in one.area.values()]
    where = " ".join(name for i, name in enumerate(names) if not any(name in other for other in names[:i]))
    codes = [str(code) for axis, code in one.cell.items() if axis not in ("label", "block") and code != one.cell["label"]]
    listed = f" ({', '.join(codes)})" if codes else ""
    return f"{where} · {one.cell['label']}{listed}"


def explanation(one: Explanation) -> Document:
    """Give the argument for one cell, and its histogram."""
    return Document(title(one), list(_explanation(one)))


def _explanation(one: Explanation) -> Iterator[Part]:
    yield Text(title(one), "lead")
    if one.cell["block"] and one.cell["block"] != one.cell["label"]:
        yield Text(f"table: {one.cell['block']}", QUIET)
    published = f"{one.published:,}" if one.published is not None else f"nothing ({one.why_absent})"
    yield Text(f"Published: {published}{again(one)}. {one.mechanism}\n{conclusion(one)}")
    if one.sums:
        sums = [(f"{shown.sum}{'' if shown.used else ' (not used)'}", arithmetic(shown)) for shown in one.sums]
        yield Fold("Totals that include this count", [Bullets(sums)], only="")
    if one.others:
        yield Fold("Other areas", list(_others(one)), only="")
    if one.argument:
        yield Section("The argument", [Bullets([one.argument])], level=3)
    elif one.growth and one.value is not None and one.probability is not None:
        rows = [(percent(probability), said, 0.0) for said, probability in growth(one)]
        table = Table((Column("probability"), "with"), [row[:2] for row in rows], "How probable it becomes", left=("with",))
        yield Section(f"How probable {one.value:,} becomes", [table], level=3)
    if not one.argument:
        yield Text(due(one))
        yield Text(why_several(one.priors) if by_several(one) else "", QUIET)
    if one.distribution and one.low != one.high:
        yield Section("How likely each count is", list(_histogram(one)), level=3)
    if one.contradictions:
        yield Fold("Inconsistent published figures", [Bullets(one.contradictions)], only="")
    yield Fold("Assumed", [Bullets(one.assumptions)], only="")


def _others(one: Explanation) -> Iterator[Part]:
    """Say which other areas bear on the count, and what they published for it."""
    others = one.others
    assert others is not None
    yield Bullets(others.said)
    heads = ("area", Column("", left=True), "published", "possible", "likeliest", "probability")
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


def _histogram(one: Explanation) -> Iterator[Part]:
    shown = shown_part(one.distribution)
    largest = max(p for _, p in shown)
    yield Only("terminal", [Bars([(f"{value:,}", percent(p), p / largest) for value, p in shown])])
    yield Chart(histogram(one.distribution, name=one.key, kind=one.kind, published=one.published, height=110))


def posterior(found: Posterior) -> Document:
    """List every count of an area: what was published, what is possible, and how likely."""
    where = " ".join(str(name) for name in found.area.values())
    heads = ("cell", "published", "possible", "likeliest", "prob.", Column("distribution", left=True), Column("", left=True))
    rows: list[Line] = []
    for one in found.cells.values():
        name = Cell(one.key, small="" if one.label in one.key else one.label)
        sure = percent_with_error(one.probability, one.error)
        bars = "" if one.kind == "given" else sparkline(one.distribution)
        kind = Cell(one.kind, badge=one.kind)
        rows.append([name, number(one.published), span(one.low, one.high), number(one.mode), sure, bars, kind])
    more = f"and {len(rows) - MOST_CELLS:,} more cells: see .to_polars(). " if len(rows) > MOST_CELLS else ""
    note = Text(f"{more}Inferred from published values; not official counts.", QUIET)
    return Document(where, [Text(where, "lead"), Table(heads, rows[:MOST_CELLS], "Counts"), note])
