"""The view of the "try it" page."""

from __future__ import annotations

from typing import Any

from unround.errors import InputError
from unround.web.addresses import with_query
from unround.web.drawing import histogram
from unround.web.page import Asked, Page
from unround.web.trial import LONGEST, MOST_CELLS

MECHANISMS = {
    "rounding:5": "random rounding to base 5 (Canada)",
    "rounding:3": "random rounding to base 3 (New Zealand)",
    "sample:5": "base 5, but 0 or 10 below 10 (Canada's sample data)",
    "graduated": "graduated random rounding",
    "nearest:5": "to the nearest 5",
    "nearest:10": "to the nearest 10",
    "laplace:1.45": "discrete Laplace noise, scale 1.45",
    "exact": "published as they are",
}
EXAMPLES = {
    "All parts proved": ("48! = 20 + 20 + 20", "rounding:5"),
    "Two ways left": ("87! = men: 35 + women: 45", "rounding:5"),
    "Base 3": ("6 = 6 + 6", "rounding:3"),
    "Ages, and the youngest again": (
        "110! = young: 30 + 65 + 10\nyoung = under_5: 10 + under_10: 10 + under_15: 10",
        "rounding:5",
    ),
    "Numbers that cannot be": ("60! = 20 + 20", "rounding:5"),
}


def trying(asked: Asked) -> Page:
    """Solve what was typed; the JSON twin is what `unround solve --json` prints, and an error where there is one."""
    text, mechanism = asked.query.get("system", ""), asked.query.get("mechanism") or "rounding:5"
    if mechanism not in MECHANISMS:
        raise InputError(f"this page does not offer {mechanism!r}: choose one of {', '.join(MECHANISMS)}.")
    answer: dict[str, Any] = asked.bench.solve(text, mechanism) if text.strip() else {}
    solution, error = answer.get("solution"), answer.get("error", "")
    drawings = {
        cell["name"]: histogram(cell["distribution"], name=cell["name"], kind=cell["kind"], published=cell["published"])
        for cell in (solution or {}).get("cells", ())
        if cell["distribution"] and cell["kind"] != "given"
    }
    more = {
        "text": text,
        "mechanism": mechanism,
        "mechanisms": MECHANISMS,
        "examples": {
            name: with_query("/try", {"system": system, "mechanism": how}) for name, (system, how) in EXAMPLES.items()
        },
        "solution": solution,
        "error": error,
        "drawings": drawings,
        "longest": LONGEST,
        "most_cells": MOST_CELLS,
        "seconds": asked.bench.seconds,
    }
    return Page("try.html", "Try it", solution or ({"error": error} if error else {}), more, status=422 if error else 200)
