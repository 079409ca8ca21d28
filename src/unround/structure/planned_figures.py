"""The user's decisions on figures, in a plan: what they are of, and whether to use them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unround.errors import InputError
from unround.figures import FIGURE_KEYS, Figure, figure_from
from unround.structure.evidence import JudgedFigure, PlannedFigure


def planned_figure(entry: Mapping[str, Any], line: int, wrong: Callable[[str, str], InputError]) -> PlannedFigure:
    """Read one entry: `columns` and `use`, or a whole description of one figure."""
    use = entry.get("use", True)
    if not isinstance(use, bool):
        raise wrong("use must be true or false.", "use")
    if "columns" in entry:
        for key in entry:
            if key not in ("use", "columns"):
                raise wrong(f"{key!r} is about one figure: write column = in place of columns =.", key)
        columns = entry["columns"]
        if not isinstance(columns, list) or not columns or not all(isinstance(one, str | int) for one in columns):
            raise wrong('columns must be a list of keys, in quotes, such as ["345", "346"].', "columns")
        return PlannedFigure(tuple(str(one) for one in columns), use, None, line)
    told = {key: value for key, value in entry.items() if key != "use"}
    if "column" in told and len(told) == 1:
        return PlannedFigure((str(told["column"]),), use, None, line)
    if not set(told) <= set(FIGURE_KEYS):
        odd = next(key for key in told if key not in FIGURE_KEYS)
        raise wrong(
            f"{odd!r} has no meaning in [[structure.figures]]; the keys are use, columns, {', '.join(FIGURE_KEYS)}.", odd
        )
    figure = figure_from(told, wrong)
    return PlannedFigure((figure.name,), use, figure, line)


def with_planned(
    figures: Sequence[Figure],
    planned: Sequence[PlannedFigure],
    counts: Collection[str],
    wrong: Callable[[str, int], InputError],
) -> tuple[Figure, ...]:
    """Return the figures of a release, with what a plan says they are of.

    Raises `InputError` where the plan names figures or counts that are not there.
    """
    known = {figure.name: figure for figure in figures}
    for one in planned:
        for name in one.columns:
            if name not in known:
                raise wrong(f"there is no rate, mean or median {name!r} in the release.", one.line)
        if one.figure is not None:
            gone = next((key for key in (*one.figure.counts, one.figure.numerator) if key and key not in counts), None)
            if gone is not None:
                raise wrong(f"there is no count {gone!r} in the release.", one.line)
            known[one.figure.name] = replace(one.figure, label=known[one.figure.name].label)
    return tuple(known.values())


def overruled(judged: Sequence[JudgedFigure], planned: Sequence[PlannedFigure], where: str) -> tuple[JudgedFigure, ...]:
    """Return verdicts as a plan has them.

    What published counts give tells nothing, and a sample has no whole numbers, whatever the plan says; unless it is certain
    that a figure was computed from true counts.
    """
    decided = {name: one.use for one in planned for name in one.columns}
    certain = {name for one in planned if one.certain for name in one.columns}
    found = []
    for one in judged:
        use = decided.get(one.figure.name)
        if use is False and one.verdict == "evidence":
            one = replace(one, verdict="unclear", why=f"left out by {where}; the data suggest: {one.why}")
        elif one.figure.name in certain:
            one = replace(one, verdict="evidence", why="it was computed from true counts.", reveals=())
        elif use is True and one.verdict == "unclear" and one.figure.is_complete and not one.figure.sampled:
            one = replace(one, verdict="evidence", why=f"used because {where} says so; the data suggest: {one.why}")
        found.append(one)
    return tuple(found)


def figure_entries(figures: Sequence[JudgedFigure]) -> list[tuple[str, bool, list[str]]]:
    """Return the verdicts for a plan: a comment, whether they are used, and the columns, those of one verdict together."""
    groups: dict[tuple[str, bool], list[JudgedFigure]] = {}
    for one in figures:
        groups.setdefault((one.verdict, one.is_evidence), []).append(one)
    return [
        (f"{verdict}: {some[0].figure.name}: {some[0].why}", use, [one.figure.name for one in some])
        for (verdict, use), some in groups.items()
    ]
