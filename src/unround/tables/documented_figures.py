"""What is documented of the figures of the Canadian profile of 2021, by CHARACTERISTIC_ID: what they are of.

For formats without indentation, or without labels at all; where there are labels, `figure_labels` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unround.figures import Figure, FigureKind
from unround.tables.edges import finest
from unround.tables.figure_labels import KINDS, FigureMeaning, TableLine, figures_for, is_sampled, key_of
from unround.tables.kinds import COUNT
from unround.tables.profile_2021 import FIVE_YEARS, PARTS

_RATES: Mapping[int, tuple[int, int]] = {
    35: (9, 8), 36: (13, 8), 37: (24, 8), 38: (29, 8),
    **{345 + at: (340 + at, 335 + at) for at in range(5)},
    **{360 + at: (355 + at, 350 + at) for at in range(5)},
    **dict.fromkeys((1483, 1484, 1485), (0, 1482)),
    **dict.fromkeys((1491, 1492, 1493), (0, 1490)),
    1497: (0, 1496),
    2228: (2224, 2223), 2229: (2225, 2223), 2230: (2226, 2224),
}  # fmt: skip
"""Rates: whom they count (0 for no line of the profile), and out of whom."""

_PEOPLE = (335, 350)
"""Universes that are nearly everybody in the area, who are line 1."""

_GROUPED: Mapping[int, tuple[FigureKind, int, tuple[int, ...]]] = {
    39: (FigureKind.MEAN, 8, (8, 1)),
    40: (FigureKind.MEDIAN, 8, (8, 1)),
    57: (FigureKind.MEAN, 50, (50, 5)),
    76: (FigureKind.MEAN, 71, (71, 78)),
    113: (FigureKind.MEDIAN, 157, (157, 112)),
    115: (FigureKind.MEDIAN, 173, (173, 114)),
    119: (FigureKind.MEDIAN, 189, (189, 118)),
    243: (FigureKind.MEDIAN, 260, (260, 5)),
    244: (FigureKind.MEDIAN, 281, (281, 5)),
}
"""Means and medians: the line whose parts are their groups, and the lines that count all units, the best first."""

_TOTALS = {57: 56, 76: 90}
"""The persons whose average number is given."""

_MEASURES = {39: "years", 40: "years", 57: "persons", 76: "persons"}
"""What the groups measure; money where nothing is said."""

_ABOVE = (
    *((112 + at, 113 + at) for at in range(0, 14, 2)), *((127 + at, 128 + at) for at in range(0, 14, 2)),
    (142, 143), (142, 144), (145, 146), (145, 147),
    *((205 + at, 206 + at) for at in range(0, 12, 2)), *((218 + at, 219 + at) for at in range(0, 12, 2)),
    (231, 232), (231, 233), (234, 235), (234, 236), (245, 246), (245, 247), (248, 249), (248, 250), (251, 252), (251, 253),
    (254, 255), (254, 256), (257, 258), (257, 259),
    *((first, first + at) for first in (301, 305, 309, 313) for at in (1, 2, 3)), (317, 318), (317, 319),
    *((first, first + at) for first in (320, 323, 326, 329, 332) for at in (1, 2)),
    *((1482, at) for at in range(1486, 1490)), (1490, 1494), (1490, 1495), (1496, 1498), (1496, 1499), (2233, 2236),
)  # fmt: skip
_UNIVERSE = {figure: universe for universe, figure in _ABOVE}
"""Means and medians without groups, and who they are of."""


def documented_figures(lines: Mapping[int, TableLine]) -> list[Figure]:
    """Return the figures among the characteristics that a release has."""
    counts = {key_of(line.id, sex) for line in lines.values() if line.kind == COUNT for sex in line.sexes}
    found: list[Figure] = []
    for number, line in lines.items():
        meaning = _meaning(number, line, lines)
        if meaning is not None:
            found += figures_for(line, meaning, counts, is_sampled(line))
    return found


def _meaning(number: int, line: TableLine, lines: Mapping[int, TableLine]) -> FigureMeaning | None:
    def there(*ids: int) -> str:
        return next((lines[one].id for one in ids if one in lines and lines[one].kind == COUNT), "")

    if number in _RATES:
        numerator, universe = _RATES[number]
        within = there(1) if universe in _PEOPLE else ""
        return FigureMeaning(FigureKind.RATE, there(universe), there(numerator), within=within)
    if number in _GROUPED:
        grouped, total, universes = _GROUPED[number]
        own = [(lines[one].id, label_of(one) or lines[one].label) for one in _below(total) if there(one)]
        return FigureMeaning(
            grouped, there(*universes), there(_TOTALS.get(number, 0)), finest(own, _MEASURES.get(number, "money"))
        )
    kind = KINDS.get(line.kind)
    if kind is None or kind is FigureKind.RATE:
        return None
    return FigureMeaning(kind, there(_UNIVERSE.get(number, 0)))


def _below(total: int) -> Sequence[int]:
    """Return everything that a total consists of, in all levels."""
    return [one for part in PARTS.get(total, ()) for one in (part, *_below(part))]


def label_of(number: int) -> str:
    """Return what is known of a line of ages without its label, or "".

    Examples
    --------
    >>> label_of(10), label_of(33), label_of(29), label_of(41)
    ('0 to 4 years', '100 years and over', '85 years and over', '')
    """
    ages = {**FIVE_YEARS, 30: 85, 31: 90, 32: 95}
    if number in ages:
        return f"{ages[number]} to {ages[number] + 4} years"
    return {29: "85 years and over", 33: "100 years and over"}.get(number, "")
