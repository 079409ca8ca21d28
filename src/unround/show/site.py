"""The one Jinja environment and the one stylesheet: every page, in a file or served, is a template of these."""

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
from unround.show.words import by_several, percent, probabilities

if TYPE_CHECKING:
    from jinja2 import Environment

EXACT = {"proved": "proved", "given": "exact", "conditional": "conditional"}
"""What stands in place of a probability."""
CONDITIONAL_IN_SHORT = Markup('<abbr title="conditional">cond.</abbr>')


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
        "chance": chance,
        "span": words.span_of,
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
