"""The one Jinja environment and the one stylesheet: every page, in a file or served, is a template of these.

Counts in the rows of an area's table are put together here: a page has hundreds, which a template would spend most time on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from unround._version import __version__
from unround.show import charts, palette, words
from unround.show.words import by_several, number, percent, probabilities, several, span

if TYPE_CHECKING:
    from jinja2 import Environment

EXACT = {"proved": "proved", "given": "exact", "conditional": "conditional"}
"""What stands in place of a probability."""
NOTHING = '<td class="first"></td><td></td><td></td><td></td>'
"""The cells of a count that the release does not have."""
DEEPEST = 9
"""The deepest level that is indented further than the one above it."""
CONDITIONAL_IN_SHORT = Markup('<abbr title="conditional">cond.</abbr>')


def published(cell: Mapping[str, Any]) -> Markup:
    """Return what was published of a count, or why nothing was.

    >>> published({"published": 1250}), published({"published": None, "why_absent": None})
    (Markup('1,250'), Markup('<span class="absent">not published</span>'))
    """
    if cell["published"] is not None:
        return Markup(number(cell["published"]))
    return Markup(f'<span class="absent">{escape(cell["why_absent"] or "not published")}</span>')


def chance(cell: Mapping[str, Any], short: bool = False) -> Markup:
    """Return how likely the likeliest count is; where several priors were asked, all that they say is its title.

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

    The link says the label again, for those who listen. Kinds and addresses need no escaping.
    """
    kind, value = cell["kind"], number(cell["value"])
    sex = f", {escape(cell['sex'])}" if cell.get("sex") else ""
    return (
        f'<td class="n first">{published(cell)}</td><td class="n">{span(cell["low"], cell["high"])}</td>'
        f'<td class="n {kind}"><a href="{cell["address"]}" aria-label="{label}{sex}: '
        f'{"unknown" if cell["value"] is None else value}">{value}</a></td><td class="n {kind}">{chance(cell, True)}</td>'
    )


HERE = Path(__file__).parent


def render(template: str, context: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return a page. Every name in it comes from somebody's file, and is escaped."""
    text: str = environment().get_template(template).render({**(context or {}), **more})
    return text


def macro(name: str, *given: Any, **named: Any) -> Markup:
    """Return what a macro of the explorer makes."""
    made: Markup = getattr(environment().get_template("explorer/macros.html").module, name)(*given, **named)
    return made


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return an address with parameters; those that say nothing are left out."""
    pairs = [(name, value) for name, value in query.items() if value not in (None, "", (), [])]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def _compiled_templates() -> Path | None:
    """Return the folder for compiled templates, beside Python's own; None where it cannot be written."""
    folder = HERE / "__pycache__"
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) and not sys.dont_write_bytecode else None


@cache
def environment() -> Environment:
    """Return what all pages are made with."""
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    kept = _compiled_templates()
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        bytecode_cache=FileSystemBytecodeCache(str(kept)) if kept is not None else None,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "stylesheet": lambda: Markup(stylesheet()),
        "spark": charts.spark,
        "count_line": count_line,
        "zeros_unlisted": words.zeros_unlisted,
        "with_query": with_query,
        "version": __version__,
    }
    made.filters |= {
        "number": words.number,
        "several": words.several,
        "at_least": words.at_least,
        "claim": words.claim_in_words,
        "probabilities": words.probabilities,
        "spelled": words.spelled,
        "cut": words.cut,
    }
    return made


@cache
def stylesheet() -> str:
    """Return the stylesheet of all pages: the palette's tokens, the rules, the charts."""
    return "\n".join((palette.tokens(), static("style.css").decode(), static("charts.css").decode()))


@cache
def static(name: str) -> bytes:
    """Return one of our own files."""
    return (HERE / "static" / name).read_bytes()
