"""Figures in a description or a plan: what the user says of rates, means and medians."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from unround.errors import InputError
from unround.figures import FINEST, Figure, FigureKind, Grid, Group

KEYS = ("column", "kind", "numerator", "universe", "groups", "step", "per", "sampled", "why")
"""What may be said of a figure."""
_GROUP = ("count", "low", "high")

Complaint = Callable[[str, str], InputError]
"""Makes the error with a message that points at a key."""


def figure_from(table: Mapping[str, Any], wrong: Complaint) -> Figure:
    """Return the figure that a table of TOML describes.

    Examples
    --------
    >>> rate = {"column": "345", "kind": "rate", "numerator": "340", "universe": "335", "step": 0.1}
    >>> figure_from(rate, lambda message, key: InputError(message)).counts
    ('340', '335')
    """
    for key in table:
        if key not in KEYS:
            raise wrong(f"there is no key {key!r} in [[figures]]. The keys are {', '.join(KEYS)}.", key)
    name, kind = _word(table, "column", wrong), _word(table, "kind", wrong)
    if not name:
        raise wrong('a figure needs the key of its column: column = "…".', "figures")
    if kind not in tuple(FigureKind):
        raise wrong(f"the kind of {name} must be rate, mean or median, not {kind!r}.", "kind")
    step, per = table.get("step"), _number(table.get("per", 100), "per", wrong)
    if per is None or per <= 0 or per != int(per):
        raise wrong("per must be what a rate of one is printed as, such as 100 for percentages.", "per")
    size = _number(step, "step", wrong)
    if size is not None and (size <= 0 or size % FINEST != 0):
        raise wrong(f"step must be above 0, with at most four decimals, not {step!r}.", "step")
    groups = table.get("groups", [])
    if not isinstance(groups, list | tuple) or not all(isinstance(one, Mapping) for one in groups):
        raise wrong('groups must be a list such as [{ count = "10", low = 0, high = 5 }].', "groups")
    return Figure(
        name=name,
        kind=FigureKind(kind),
        universe=_word(table, "universe", wrong),
        numerator=_word(table, "numerator", wrong),
        groups=tuple(_group(one, wrong) for one in groups),
        grid=Grid.of(size) if size is not None else Grid.of(Fraction(1, 10)),
        per=per,
        label=name,
        sampled=bool(table.get("sampled", False)),
        declared=size is not None,
    )


def _word(table: Mapping[str, Any], key: str, wrong: Complaint) -> str:
    value = table.get(key, "")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong(f"{key} must be text in quotes, not {value!r}.", key)
    return str(value).strip()


def _number(value: object, key: str, wrong: Complaint) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong(f"{key} must be a number, not {value!r}.", key)
    return Fraction(str(value))


def _group(table: Mapping[str, Any], wrong: Complaint) -> Group:
    for key in table:
        if key not in _GROUP:
            raise wrong(f"there is no key {key!r} in a group. The keys are {', '.join(_GROUP)}.", key)
    count = _word(table, "count", wrong)
    if not count:
        raise wrong("every group needs the key of its count.", "groups")
    low, high = _number(table.get("low"), "low", wrong), _number(table.get("high"), "high", wrong)
    if low is not None and high is not None and low > high:
        raise wrong(f"the group {count} ends below its beginning.", "groups")
    return Group(count, low, high)
