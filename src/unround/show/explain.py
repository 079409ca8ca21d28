"""One count, and the argument for it; and how likely every count of an area is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unround.explanation.cell import Explanation
from unround.explanation.posterior import Posterior
from unround.show import parts as doc
from unround.show.charts import histogram, histograms, shown_part, strip
from unround.show.strongest import sentences
from unround.show.words import (
    again,
    arithmetic,
    by_several,
    conclusion,
    due,
    growth,
    percent,
    percent_with_error,
    span_of,
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


def explanation(cell: Explanation) -> doc.Document:
    """Give the argument for one cell, and its histogram."""
    return doc.Document(title(cell), list(_explanation(cell)))


def _explanation(cell: Explanation) -> Iterator[doc.Part]:
    yield doc.Text(title(cell), "lead")
    if cell.cell["block"] and cell.cell["block"] != cell.cell["label"]:
        yield doc.Text(f"table: {cell.cell['block']}", doc.QUIET)
    yield doc.Text(f"{published(cell)}\n{conclusion(cell)}")
    if cell.sums:
        sums = [(f"{shown.sum}{'' if shown.used else ' (not used)'}", arithmetic(shown)) for shown in cell.sums]
        yield doc.Fold(SUMS, [doc.Bullets(sums)], only="")
    if cell.others:
        yield doc.Fold("Other areas", list(others(cell)), only="")
    yield from argued(cell, 3)
    if cell.distribution and cell.low != cell.high:
        yield likelihoods(cell, cell.key, 3, height=110)
    if cell.contradictions:
        yield doc.Fold("Inconsistent published figures", [doc.Bullets(cell.contradictions)], only="")
    yield doc.Fold("Assumed", [doc.Bullets(cell.assumptions)], only="")


SUMS = "Totals that include this count"


def published(cell: Explanation) -> str:
    """Say what was published of a count, and how."""
    value = f"{cell.published:,}" if cell.published is not None else f"nothing ({cell.why_absent})"
    return f"Published: {value}{again(cell)}. {cell.mechanism}"


def argued(cell: Explanation, level: int = 2, more: Sequence[doc.Part] = ()) -> Iterator[doc.Part]:
    """Give the argument for a count, and `more` that belongs to it; or say how probable it becomes as more sums are used."""
    if cell.argument:
        yield doc.Section("The argument", [doc.Bullets(list(sentences(cell.argument)), style="steps"), *more], level=level)
        return
    if cell.growth and cell.value is not None and cell.probability is not None:
        rows: list[doc.Line] = [[said, percent(p), doc.TableCell(strip({cell.kind: p}, 1))] for said, p in growth(cell)]
        heads = (
            doc.TableColumn("with", left=True),
            doc.TableColumn("probability"),
            doc.TableColumn("", left=True, only=doc.PAGE),
        )
        table = doc.Table(heads, rows, "How probable it becomes", style="list small growth")
        yield doc.Section(f"How probable {cell.value:,} becomes", [table], level=level)
    yield doc.Text(due(cell))
    yield doc.Text(why_several(cell.priors) if by_several(cell) else "", doc.QUIET)


def others(cell: Explanation, address: Callable[[int], str] = lambda _: "") -> Iterator[doc.Part]:
    """Say which other areas bear on the count, and what they published for it; `address` is where an area is shown."""
    assert cell.others is not None
    yield doc.Bullets(cell.others.said)
    columns: doc.Columns = [
        ("area", lambda area: doc.TableCell(area.name, link=address(area.row))),
        (doc.TableColumn("", left=True), "role"),
        ("published", "published"),
        ("possible", span_of),
        ("likeliest", "value"),
        ("probability", lambda area: "" if area.probability is None else percent(area.probability)),
    ]
    yield doc.tabulated(cell.others.areas, columns, "The same count in other areas", style="list small")
    yield doc.Text(f"… and {cell.others.more:,} more areas." if cell.others.more else "", doc.QUIET)


def likelihoods(cell: Explanation, name: str, level: int = 2, **drawn: Any) -> doc.Section:
    """Return how likely each count is: as a drawing, as bars of text, and as a table."""
    shown = shown_part(cell.distribution)
    largest, left = max(p for _, p in shown), len(cell.distribution) - len(shown)
    table = doc.Table(
        (doc.TableColumn("Possible count"), "Probability"), [[f"{value:,}", percent(p)] for value, p in shown], header=-1
    )
    more = f"{left:,} more counts are possible, each less than 1/200 as likely as the most likely one." if left else ""
    parts: list[doc.Part] = [
        doc.Only(doc.TERMINAL, [doc.Bars([(f"{value:,}", percent(p), p / largest) for value, p in shown])]),
        doc.Chart(histogram(cell.distribution, name=name, kind=cell.kind, published=cell.published, **drawn)),
        doc.Only(doc.PAGE, [doc.Fold("The same as a table", [table, doc.Text(more, doc.QUIET)], style="same")]),
    ]
    return doc.Section("How likely each count is", parts, level=level)


def posterior(result: Posterior) -> doc.Document:
    """List every count of an area: what was published, what is possible, and how likely."""
    where = " ".join(str(name) for name in result.area.values())
    columns: doc.Columns = [
        ("cell", lambda cell: doc.TableCell(cell.key, small="" if cell.label in cell.key else cell.label)),
        ("published", "published"),
        ("possible", span_of),
        ("likeliest", "mode"),
        ("prob.", lambda cell: percent_with_error(cell.probability, cell.error)),
        (
            doc.TableColumn("distribution", left=True),
            lambda cell: "" if cell.kind == "given" else sparkline(cell.distribution),
        ),
        (doc.TableColumn("", left=True), lambda cell: doc.TableCell(cell.kind, badge=cell.kind)),
    ]
    cells = list(result.cells.values())
    table = doc.tabulated(cells[:MOST_CELLS], columns, "Counts")
    more = f"and {len(cells) - MOST_CELLS:,} more cells: see .to_polars(). " if len(cells) > MOST_CELLS else ""
    note = doc.Text(f"{more}Inferred from published values; not official counts.", doc.QUIET)
    return doc.Document(where, [doc.Text(where, "lead"), table, *histograms(cells), note])
