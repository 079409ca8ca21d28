"""The paper's searches on any release: what is found beside what the paper's model predicts.

The conditions are the paper's: counts rounded at random to base 5, every published value in a group above 10, and one given
|total − Σ parts|. Under the exact population: two parts (men and women), and three (broad ages). Under a rounded total:
every sum of four or three parts. Which sums there are is found in the release itself. What rounding cannot produce is
counted too: were populations adjusted, such residuals would be there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unround.expectation import expectation
from unround.mechanisms import Exact, Rounding, Sample
from unround.regions import published_exactly
from unround.release import Counts, Release
from unround.replication.claim import OVER, SEARCHES, Search
from unround.replication.outcome import BASE, Prediction, condition
from unround.structure import PlanFile, Structure
from unround.sums.forest import Equations
from unround.tables.spool import Stage, survey

AREAS_AT_ONCE = 2048


@dataclass
class Finds:
    """What one search found in a release.

    - `search`: Which one.
    - `sums`: The sums that it looks at, as positions of columns.
    - `groups`: In how many groups of cells every value is above 10.
    - `below`, `above`: Finds with parts that add up to less than the total, and to more.
    - `impossible`: Groups whose parts cannot add up to the total, however they were rounded.
    """

    search: Search
    sums: Equations
    groups: int = 0
    below: int = 0
    above: int = 0
    impossible: int = 0

    def add(self, counts: Counts) -> None:
        """Look through some areas: areas × columns, with the codes of `release` for what is absent."""
        for total, parts in self.sums:
            cells = counts[:, [total, *parts]].astype(np.int64)
            cells = cells[(cells > OVER).all(axis=1)]
            residual = cells[:, 0] - cells[:, 1:].sum(axis=1)
            self.groups += len(cells)
            self.below += int((residual == self.search.residual).sum())
            self.above += int((residual == -self.search.residual).sum())
            self.impossible += int((np.abs(residual) > self.farthest).sum())

    @property
    def farthest(self) -> int:
        """The largest |residual| that rounding can produce."""
        return (BASE - 1) * (self.search.parts + (not self.search.exact_total))

    @property
    def found(self) -> int:
        """All finds."""
        return self.below + self.above

    @property
    def predicted(self) -> Prediction:
        """From uniform remainders and independent rounding, as the paper does."""
        model = expectation(self.search.parts, exact_total=self.search.exact_total, base=BASE)
        below, above = model.share(self.search.residual), model.share(-self.search.residual)
        return Prediction(float(self.groups * below), float(self.groups * above))

    @property
    def within(self) -> bool | None:
        """Whether the number of finds is in the interval around the prediction; None with nowhere to look."""
        low, high = self.predicted.interval
        return low <= self.found <= high if self.groups else None

    def to_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return it as plain data; `names` are those of the columns."""
        search = self.search
        return {
            "search": search.key,
            "title": search.title,
            "condition": condition(search),
            "sums": [{"total": names[total], "parts": [names[part] for part in parts]} for total, parts in self.sums],
            "groups": self.groups,
            "found": self.found,
            "below": self.below,
            "above": self.above,
            "impossible": self.impossible,
            "values": self.found * search.values,
            "predicted": self.predicted.to_json(self.below, self.above),
            "within": self.within,
            "paper": {"groups": search.groups, "found": search.found},
        }


@dataclass(frozen=True)
class ReleaseSearches:
    """The paper's searches on one release.

    - `source`, `product`: The file; and what it is, where that is known.
    - `areas`: How many areas it has.
    - `columns`: What its columns are called.
    - `exact`: The exact populations that head a sum; where none does, all that there are.
    - `finds`: One for every search.
    - `notes`: What to know.
    """

    source: str
    product: str | None
    areas: int
    columns: tuple[str, ...]
    exact: tuple[str, ...]
    finds: tuple[Finds, ...]
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, key: str) -> Finds:
        """Return what one search found."""
        for one in self.finds:
            if one.search.key == key:
                return one
        raise KeyError(key)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, as `python -m unround.research paper --release FILE --json` prints it."""
        return {
            "source": self.source,
            "product": self.product,
            "areas": self.areas,
            "exact": list(self.exact),
            "over": OVER,
            "searches": [one.to_json(self.columns) for one in self.finds],
            "notes": list(self.notes),
        }


def search_release(
    release: Release, plan_file: PlanFile | None = None, progress: Stage = lambda *_: None
) -> ReleaseSearches:
    """Run the paper's searches on a release."""
    with tempfile.TemporaryDirectory(prefix="unround-paper-") as folder:
        spool, structure = survey(release, Path(folder), plan_file, progress)
        exact = populations(structure)
        finds = tuple(Finds(search, places(search, structure, exact)) for search in SEARCHES)
        for done, block in enumerate(spool.blocks(AREAS_AT_ONCE)):
            progress("Searching", done * AREAS_AT_ONCE, spool.rows)
            for one in finds:
                one.add(block.counts)
        progress("Searching", spool.rows, spool.rows)
        areas = spool.rows
    columns = tuple(column.key for column in release.columns)
    used = {total for one in finds if one.search.exact_total for total, _ in one.sums}
    return ReleaseSearches(
        source=release.source,
        product=release.product,
        areas=areas,
        columns=columns,
        exact=tuple(columns[at] for at in sorted(used or exact)),
        finds=finds,
        notes=tuple(_notes(structure, exact)),
    )


def populations(structure: Structure) -> set[int]:
    """Return the exact columns that count people; where none is called so, all that are exact."""
    exact = {at for at, how in enumerate(structure.mechanisms) if isinstance(how, Exact)}
    people = {at for at in exact if published_exactly(structure.columns[at].label)[1]}
    return people or exact


def places(search: Search, structure: Structure, exact: set[int]) -> Equations:
    """Return the sums that a search looks at: with so many parts rounded to base 5, and the total that it asks for.

    A rounded total that shows the count of an exact population stands for it.
    """
    rounded = {at for at, how in enumerate(structure.mechanisms) if isinstance(how, Rounding | Sample) and how.base == BASE}
    kept = [one.equation for one in structure.sums]
    found: dict[tuple[int, frozenset[int]], tuple[int, tuple[int, ...]]] = {}
    for total, parts in kept:
        if len(parts) != search.parts or not rounded.issuperset(parts):
            continue
        heads = _exact_for(total, kept, exact) if search.exact_total else {total} & rounded
        for head in sorted(heads):
            found.setdefault((head, frozenset(parts)), (head, parts))
    return tuple(found.values())


def _exact_for(total: int, kept: Iterable[tuple[int, tuple[int, ...]]], exact: set[int]) -> set[int]:
    """Return the exact columns that show the count of a total."""
    same = {total}
    for one, parts in kept:
        if len(parts) == 1 and total in (one, parts[0]):
            same |= {one, parts[0]}
    return same & exact


def _notes(structure: Structure, exact: set[int]) -> list[str]:
    """Say what kept searches from looking."""
    notes = []
    bases = {getattr(how, "base", None) for how in structure.mechanisms if isinstance(how, Rounding | Sample)}
    if BASE not in bases:
        notes.append(f"No column of this release is rounded at random to base {BASE}, which is what the searches are for.")
    if not exact:
        notes.append("No population is published exactly, so the searches under one have nowhere to look.")
    return notes
