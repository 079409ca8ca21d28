"""The one Jinja environment and the one stylesheet: every page, in a file or served, is a template of these."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround._version import __version__
from unround.show import charts, counts, palette, words

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
LONGEST = 300
"""Characters of a name that are shown."""


def render(template: str, context: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return a page. Every name in it comes from somebody's file, and is escaped."""
    text: str = environment().get_template(template).render({**(context or {}), **more})
    return text


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
        "KINDS": words.CLAIMS,
        "MEANINGS": words.MEANINGS,
        "NO_INCONSISTENCIES": words.NO_INCONSISTENCIES,
        "stylesheet": lambda: Markup(stylesheet()),
        "strip": charts.strip,
        "spark": charts.spark,
        "percent": words.percent,
        "published": counts.published,
        "chance": counts.chance,
        "count_line": counts.count_line,
        "why_several": words.why_several,
        "by_several": words.by_several,
        "likely_means": words.likely_means,
        "version": __version__,
    }
    made.filters |= {
        "number": words.number,
        "several": words.several,
        "rate": words.rate,
        "percent": words.percent,
        "share": words.share,
        "at_least": words.at_least,
        "claim": words.claim_in_words,
        "probabilities": words.probabilities,
        "due": words.due,
        "spelled": words.spelled,
        "span": words.span_of,
        "size": words.size_named,
        "cut": cut,
        "signed": lambda value: f"{value:+.1f}".replace("-", "−"),
        "total": lambda numbers: sum(numbers.values()),
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


def cut(text: object, longest: int = LONGEST) -> str:
    """Return a text without what goes beyond a length.

    Examples
    --------
    >>> cut("Montréal"), cut("Montréal", 5)
    ('Montréal', 'Mont…')
    """
    whole = str(text)
    return whole if len(whole) <= longest else f"{whole[: longest - 1]}…"
