"""Counts in the rows of a page's tables, as HTML: an area's page has hundreds, which a template would spend most time on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from unround.show.words import by_several, number, percent, probabilities, several, span

EXACT = {"proved": "proved", "given": "exact", "conditional": "conditional"}
"""What stands in place of a probability."""
NOTHING = '<td class="first"></td><td></td><td></td><td></td>'
"""The cells of a count that the release does not have."""
DEEPEST = 9
"""The deepest level that is indented further than the one above it."""
CONDITIONAL_IN_SHORT = Markup('<abbr title="conditional">cond.</abbr>')


def published(cell: Mapping[str, Any]) -> Markup:
    """Return what was published of a count, or why nothing was.

    Examples
    --------
    >>> published({"published": 1250}), published({"published": None, "why_absent": None})
    (Markup('1,250'), Markup('<span class="absent">not published</span>'))
    """
    if cell["published"] is not None:
        return Markup(number(cell["published"]))
    return Markup(f'<span class="absent">{escape(cell["why_absent"] or "not published")}</span>')


def chance(cell: Mapping[str, Any], short: bool = False) -> Markup:
    """Return how likely the likeliest count is; where several priors were asked, all that they say is its title.

    Examples
    --------
    >>> chance({"kind": "given", "probability": 1.0}), chance({"kind": "open", "probability": None})
    (Markup('exact'), Markup('–'))
    """
    probability, kind = cell["probability"], cell["kind"]
    if probability is None:
        return Markup("–")
    if kind in EXACT:
        return CONDITIONAL_IN_SHORT if short and kind == "conditional" else Markup(EXACT[kind])
    said = escape(percent(probability))
    return Markup(f'<span title="{escape(probabilities(cell))}">{said}</span>') if by_several(cell) else said


def count_line(line: Mapping[str, Any]) -> Markup:
    """Return a line of an area's table: what it is called, and a count for each sex."""
    label, below = escape(line["label"]), line["claims_below"]
    under = "" if line["parent"] is None else f' data-under="line{line["parent"]}"'
    parts = f' data-parts="{below}"' if line["has_parts"] else ""
    note = f" <small>{several(below, 'finding')} below</small>" if below else ""
    counts = "\n".join(NOTHING if cell is None else _count(label, cell) for cell in line["cells"])
    return Markup(
        f'<tr id="line{line["at"]}"{under}{parts}>\n<th scope="row" class="level{min(line["level"], DEEPEST)}">'
        f'<span class="label">{label}</span>{note}</th>\n{counts}\n</tr>'
    )


def _count(label: Markup, cell: Mapping[str, Any]) -> str:
    """Return the four cells of a count: published, possible, likeliest and its probability.

    The link says the label again, for those who listen. Kinds and addresses hold no sign that HTML would take for its own.
    """
    kind, value = cell["kind"], number(cell["value"])
    sex = f", {escape(cell['sex'])}" if cell.get("sex") else ""
    return (
        f'<td class="n first">{published(cell)}</td><td class="n">{span(cell["low"], cell["high"])}</td>'
        f'<td class="n {kind}"><a href="{cell["address"]}" aria-label="{label}{sex}: '
        f'{"unknown" if cell["value"] is None else value}">{value}</a></td><td class="n {kind}">{chance(cell, True)}</td>'
    )
