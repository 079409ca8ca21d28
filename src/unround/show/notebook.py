"""How results look in a notebook: a card of their own, in light colours, which needs nothing from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from unround.show import site, words
from unround.show.palette import PALETTE

if TYPE_CHECKING:
    from rich.console import Console

    from unround.audits import AuditFolder
    from unround.explanation.cell import Explanation
    from unround.explanation.posterior import Distribution, Posterior
    from unround.solution import CellAnswer, Solution

WIDTH = 100
"""Columns of text that is printed."""

MOST_FINDINGS, MOST_CELLS, MOST_PROOFS = 8, 60, 12
"""What a card lists; the rest is in the tables behind it."""

Show = Callable[["Console"], None]


def text(show: Show) -> str:
    """Return what a terminal would show, without colours."""
    from unround.show.terminal.visible import VisibleConsole

    written = io.StringIO()
    show(VisibleConsole(file=written, width=WIDTH, highlight=False, color_system=None))
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())


def text_card(show: Show) -> str:
    """Return what a terminal would show as a card."""
    return _card("text.html", text=text(show))


def solution_card(solution: Solution) -> str:
    """Return the cells of a system, what is proved of them, and on what it rests."""
    from unround.show.terminal.solve import likeliest, show_solution, solutions_counted

    if not solution.feasible:
        return text_card(lambda console: show_solution(solution, console))
    rows = [_row(cell, cell.name, likeliest(cell), cell.distribution) for cell in solution.cells[:MOST_CELLS]]
    return _card(
        "solution.html",
        title=solutions_counted(solution),
        rows=rows,
        more=len(solution.cells) - len(rows),
        proofs=[proof.text for proof in solution.proofs[:MOST_PROOFS]],
        assumptions=solution.assumptions,
    )


def audit_card(folder: AuditFolder) -> str:
    """Return the verdict of an audit, how many claims it makes, and the first of them."""
    from unround.show.check import fit_in_words

    summary, findings = folder.summary, folder.first_findings(MOST_FINDINGS)
    claims = sum(summary[kind] for kind in words.CLAIMS)
    return _card(
        "audit.html",
        verdict=words.verdict(summary),
        claims=claims,
        by_value=summary["sensitive_claims"]["by_value"],
        summary=summary,
        check=fit_in_words(summary.get("check")),
        notes=words.not_listed(summary),
        axes=findings.columns[: findings.columns.index("published")],  # what says where: codes and names
        findings=findings.to_dicts(),
        more=claims - findings.height,
        path=str(folder.path),
        notice=words.notice(summary["product"]),
    )


def explanation_card(one: Explanation) -> str:
    """Return the argument for one count, and its histogram."""
    from unround.show.charts import histogram
    from unround.show.terminal.explain import title

    chart = None
    if one.distribution and one.low != one.high:
        chart = histogram(one.distribution, name=one.key, kind=one.kind, published=one.published, height=110)
    published = f"{one.published:,}" if one.published is not None else f"nothing ({one.why_absent})"
    return _card(
        "explanation.html",
        title=title(one),
        published=f"Published: {published}{words.again(one)}. {one.mechanism}",
        conclusion=words.conclusion(one),
        kind=one.kind,
        argument=one.argument,
        due=words.due(one),
        sums=[(shown.sum, words.arithmetic(shown)) for shown in one.sums],
        chart=chart,
        contradictions=one.contradictions,
        assumptions=one.assumptions,
    )


def posterior_card(found: Posterior) -> str:
    """Return every count of an area: what was published, what is possible, what is likely."""
    shown = list(found.cells.values())
    rows = [_row(one, _called(one), words.number(one.mode), _pairs(one)) for one in shown[:MOST_CELLS]]
    where = " ".join(str(name) for name in found.area.values())
    return _card("posterior.html", title=where, rows=rows, more=len(shown) - len(rows))


def _called(one: Any) -> str:
    """Return the key of a cell, which `explain` takes, and its label where that says more."""
    return str(one.key) if one.label in one.key else f"{one.key} · {one.label}"


def _pairs(one: Any) -> list[tuple[int, float]]:
    return list(zip(one.counts.tolist(), one.probabilities.tolist(), strict=True))


def _row(
    cell: CellAnswer | Distribution, name: str, value: str, distribution: Iterable[tuple[int, float]]
) -> Mapping[str, str]:
    from unround.show.terminal.layout import sparkline

    return {
        "name": name,
        "kind": cell.kind,
        "published": words.number(cell.published),
        "possible": words.span(cell.low, cell.high),
        "value": value,
        "probability": words.percent_with_error(cell.probability, cell.error),
        "bars": "" if cell.kind == "given" else sparkline(list(distribution)),
    }


def _card(template: str, **context: Any) -> str:
    from markupsafe import Markup

    return site.render(f"notebook/{template}", context, style=Markup(style()))


@cache
def style() -> str:
    """Return the stylesheet of a card, within which alone it holds: a notebook has a style of its own.

    The colours are the light ones, whatever the reader's system prefers, for a notebook's own scheme need not follow it.
    """
    tokens = ";".join(f"--{name}:{pair[0]}" for name, pair in PALETTE.items())
    rules = "\n".join(site.static(name).decode() for name in ("notebook.css", "charts.css"))
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", f".unround {{ {tokens}; {rules} }}")).strip()
