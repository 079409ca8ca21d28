"""Which shape is which area: by the property whose values are the areas' codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unround.boundaries.reading import Shape
from unround.errors import InputError
from unround.small_files import shortened

NAMED = 5
"""Codes that are named where some do not match."""


@dataclass(frozen=True, slots=True)
class Matched:
    """What came of matching shapes with areas.

    - `by`: The property that holds the codes.
    - `rows`: For every shape its area; -1 where no area has its code.
    - `strange`: Codes of shapes that no area has.
    - `without`: Codes of areas that no shape has.
    """

    by: str
    rows: tuple[int, ...]
    strange: tuple[str, ...]
    without: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many areas have a shape."""
        return len({row for row in self.rows if row >= 0})

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; of codes that do not match the first ones, and how many there are."""
        return {
            "by": self.by,
            "matched": self.number,
            "shapes_without_area": len(self.strange),
            "areas_without_shape": len(self.without),
            "first_shapes_without_area": list(self.strange[:NAMED]),
            "first_areas_without_shape": list(self.without[:NAMED]),
        }


def matched_in_words(told: Mapping[str, Any]) -> str:
    """Say how many shapes and areas match, and name those that do not.

    Examples
    --------
    >>> told = {"by": "DAUID", "matched": 3, "shapes_without_area": 1, "areas_without_shape": 0,
    ...         "first_shapes_without_area": ["9"], "first_areas_without_shape": []}
    >>> matched_in_words(told)
    '3 areas have a shape, matched by DAUID. 1 shape has a code that no area has (9).'
    """
    number = told["matched"]
    said = [f"{number:,} {'area has' if number == 1 else 'areas have'} a shape, matched by {told['by']}."]
    for key, one, more in (
        ("shapes_without_area", "shape has a code that no area has", "shapes have codes that no area has"),
        ("areas_without_shape", "area has no shape", "areas have no shape"),
    ):
        if told[key]:
            first = told[f"first_{key}"]
            named = ", ".join(first) + (" …" if told[key] > len(first) else "")
            said.append(f"{told[key]:,} {one if told[key] == 1 else more} ({named}).")
    return " ".join(said)


def match(shapes: Sequence[Shape], names: Sequence[Sequence[str]], source: str) -> Matched:
    """Match shapes with areas.

    Raises `InputError` if no property of the shapes holds codes of areas.
    """
    rows: dict[str, int] = {}
    for row, codes in reversed(list(enumerate(names))):
        rows |= {code: row for code in codes if code}
    bare = {code.lstrip("0"): row for code, row in rows.items()}
    properties = list(dict.fromkeys(name for shape in shapes for name in shape.properties))
    found = {name: [_row(shape.properties.get(name, ""), rows, bare) for shape in shapes] for name in properties}
    number = {name: len({row for row in at if row >= 0}) for name, at in found.items()}
    by = max(properties, key=lambda name: number[name], default="")
    if not by or not number[by]:
        some = {name: next((s.properties[name] for s in shapes if s.properties.get(name)), "") for name in properties}
        listed = shortened([f"{name} = {value!r}" for name, value in some.items()], 6) or "none"
        raise InputError(
            f"no property of the shapes in {source} holds codes of this audit's areas, which look like {names[0][0]}. "
            f"Its properties: {listed}."
        )
    at = found[by]
    taken = set(at)
    strange = [shape.properties.get(by, "") or "no code" for shape, row in zip(shapes, at, strict=True) if row < 0]
    without = [codes[0] for row, codes in enumerate(names) if row not in taken]
    return Matched(by, tuple(at), tuple(strange), tuple(without))


def _row(code: str, rows: Mapping[str, int], bare: Mapping[str, int]) -> int:
    """Return the area of a code; one that was read as a number has lost the zeros before it."""
    if not code:
        return -1
    found = rows.get(code)
    return found if found is not None else bare.get(code.lstrip("0") or "-", -1) if code.isdecimal() else -1
