"""A repair applied to the draft itself: which cells change, which rows and columns go, and the file that is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unround.errors import InputError
from unround.release import NOT_AVAILABLE, Release
from unround.reviews.layout import Cell, Origin, write_back
from unround.reviews.repairs import SUMMED
from unround.reviews.table import ReviewedTable, original


def apply_repair(
    name: str,
    origin: Origin,
    release: Release,
    draft: ReviewedTable,
    after: ReviewedTable,
    called: Mapping[str, str],
    folder: Path,
) -> Path:
    """Write the file of a draft again, as a repair leaves its table.

    `called` is what the counts of the release are called in the draft under review, where some stand for others.
    Raises `InputError` where its layout cannot take that.
    """
    before = {column.key: at for at, column in enumerate(draft.columns)}
    now = {after.columns[at].key: at for at in after.mine if not _left_out(draft, after, at)}
    rows = {code: row for row, code in enumerate(after.area_codes)}
    columns, areas = (
        {name: (SUMMED.join(group), group[0]) for group in groups for name in group}
        for groups in (after.merged, after.merged_areas)
    )
    first_of = {joined: key for key, joined in reversed(list(called.items()))}
    cells, gone, merged = dict[Cell, int](), list[Cell](), dict[Cell, Cell]()
    for key, joined in called.items():
        if joined not in before:  # it took no part in the review
            continue
        new, kept = columns.get(joined, (joined, joined))
        # With the same numbers as before, the earlier column stands for both.
        there = now.get(new, now.get(original(joined)))
        for row, area in enumerate(draft.area_codes):
            code, place = areas.get(area, (area, area))
            if there is None:
                gone.append((area, key))
            elif (kept, place) != (joined, area):
                gone.append((area, key))
                merged[area, key] = place, first_of[kept]
            else:
                old, count = int(draft.counts[row, before[joined]]), int(after.counts[rows[code], there])
                if old not in (count, NOT_AVAILABLE):
                    cells[area, key] = count
    lost = {key for _, key in (*gone, *merged.values())}
    stale = [figure.name for figure in release.figures if after.merged_areas or not lost.isdisjoint(figure.counts)]
    if stale:
        raise InputError(
            f"{name} cannot be written back: {', '.join(stale[:3])} would be of counts that are no longer there. Leave such "
            "figures out of the draft first."
        )
    return write_back(origin, release, cells, folder, gone, merged)


def _left_out(draft: ReviewedTable, after: ReviewedTable, at: int) -> bool:
    """Whether a column is printed before a repair, and not at all after it; to hide each of its counts is another matter."""
    places = [place for place, column in enumerate(draft.columns) if column.key == after.columns[at].key]
    nothing = bool((after.counts[:, at] == NOT_AVAILABLE).all())
    return bool(places) and nothing and bool((draft.printed[:, places] >= 0).any())
