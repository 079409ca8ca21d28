"""Facets: ways of sorting findings into classes, and how many of each class pass a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.datastructures import QueryParams

from unround.errors import InputError

Codes = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]

STEPS = (0.9, 0.95, 0.99)
"""Probabilities that are offered; any other can stand in an address."""
SORTS = {
    "strongest": "most sensitive first",
    "probability": "most probable first",
    "count": "smallest count first",
    "published": "smallest published value first",
    "area": "by area, as in the file",
}
"""The orders of a list of findings."""
LISTED = 12
"""Classes that an error message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """One way of sorting findings into classes.

    - `name`, `title`: The parameter of an address, and what people read.
    - `keys`, `labels`: For each class what stands in an address, and what people read.
    - `codes`: For every finding the position of its class.
    - `by_number`: Whether the classes with the most findings come first, and not those that come first in the release.
    """

    name: str
    title: str
    keys: Sequence[str]
    labels: Sequence[str]
    codes: Codes
    by_number: bool = False

    def position(self, key: str) -> int:
        """Return the position of a class.

        Raises `InputError` if there is none of that name: a filter that is ignored would show the wrong findings
        under its name.
        """
        at = self._places.get(key)
        if at is None:
            some = ", ".join(self.keys[:LISTED]) + (" …" if len(self.keys) > LISTED else "")
            raise InputError(f"there is no {self.name} {key!r} in this audit: choose among {some}.")
        return at

    _places: dict[str, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Make the classes easy to find."""
        self._places.update({key: at for at, key in reversed(list(enumerate(self.keys)))})


@dataclass(frozen=True, slots=True)
class Filter:
    """Which findings are wanted.

    - `chosen`: For each facet the classes that are wanted; all, where it is not there.
    - `probability`: The least probability, under the most cautious prior.
    - `line`: Only this characteristic, by its place in the outline.
    - `words`, `area`: Words that must all occur in the names of area and count; or of the area alone.
    - `sort`: One of `SORTS`.
    """

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probability: float = 0.0
    line: int | None = None
    words: str = ""
    area: str = ""
    sort: str = "strongest"

    @classmethod
    def read(cls, query: QueryParams, facets: Mapping[str, Facet], lines: int) -> Filter:
        """Read a filter from the parameters of an address.

        Raises `InputError` for a parameter that means nothing.
        """
        chosen = {}
        for name, facet in facets.items():
            keys = tuple(dict.fromkeys(key for key in query.getlist(name) if key))
            for key in keys:
                facet.position(key)
            if keys:
                chosen[name] = keys
        line = _whole(query["line"], "line") if query.get("line") else None
        if line is not None and line >= lines:
            raise InputError(f"there is no line {line} in this release: it has {lines:,}.")
        sort = query.get("sort") or "strongest"
        if sort not in SORTS:
            raise InputError(f"there is no sort {sort!r}: choose among {', '.join(SORTS)}.")
        words, area = query.get("q", "").strip(), query.get("area", "").strip()
        return cls(chosen, _percent(query.get("probability", "")), line, words, area, sort)

    def query(self) -> dict[str, Any]:
        """Return the parameters that `read` takes."""
        return {
            "q": self.words,
            **self.chosen,
            "probability": f"{self.probability * 100:g}" if self.probability else "",
            "line": self.line,
            "area": self.area,
            "sort": self.sort if self.sort != "strongest" else "",
        }

    @property
    def is_open(self) -> bool:
        """Whether every finding passes."""
        return not (self.chosen or self.probability or self.words or self.area) and self.line is None


def _percent(text: str) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 100:
        raise InputError(f"a probability is a number of percent from 0 to 100, such as 90; not {text!r}.")
    return number / 100


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InputError(f"{name} is a whole number, not {text!r}.")
    return int(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """One class of a facet, as it is offered: how many findings it would show, given everything else that is chosen."""

    key: str
    label: str
    number: int
    chosen: bool


def facet_mask(facet: Facet, keys: Iterable[str]) -> Mask:
    """Say which findings are in one of some classes."""
    wanted = np.zeros(len(facet.keys), dtype=bool)
    wanted[[facet.position(key) for key in keys]] = True
    kept: Mask = wanted[facet.codes]
    return kept


def passing(masks: Sequence[Mask], number: int) -> tuple[Mask, list[Mask]]:
    """Say which findings pass all masks; and, for each mask, which pass all the others."""
    failed = np.zeros(number, dtype=np.uint8)
    for mask in masks:
        failed += ~mask
    none, one = failed == 0, failed == 1
    return none, [none | (one & ~mask) for mask in masks]


def choices(facet: Facet, others: Mask, keys: tuple[str, ...]) -> list[Choice]:
    """Return the classes of a facet with findings that pass all other filters, and those that are chosen."""
    numbers = np.bincount(facet.codes[others], minlength=len(facet.keys))
    chosen = {facet.position(key) for key in keys}
    shown = np.flatnonzero(numbers).tolist()
    places = sorted({*shown, *chosen})
    if facet.by_number:
        places.sort(key=lambda at: (at not in chosen, -int(numbers[at]), at))
    return [Choice(facet.keys[at], facet.labels[at], int(numbers[at]), at in chosen) for at in places]
