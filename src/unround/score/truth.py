"""Claims scored against the truth, where somebody has it: the agency itself, or whoever simulated the release.

An average over all cells hides what matters: that "nobody here" at 90% may be a coin toss, while all other claims are right.
So likely claims are scored by the count that they claim and the probability that they state. Audits that are given the truth
and calibrations both do so here, and say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.certificates import InferredBlock
from unround.audits.claims import BlockClaims, ClaimKind
from unround.audits.keys import roles_of
from unround.audits.model import Model
from unround.engines.linked_weights import METHODS
from unround.errors import InputError
from unround.mechanisms.base import BoolArray, FloatArray
from unround.release import ABSENT, Counts, Release
from unround.small_files import plain_arrays
from unround.tables.spool import Spool

if TYPE_CHECKING:
    import polars as pl

BANDS = (0.66, 0.75, 0.85, 0.95, 0.99)
"""Where bands of stated probability begin."""

VALUES = ((0, 0, "0"), (1, 2, "1–2"), (3, 9, "3–9"), (10, None, "10+"))
"""Groups of claims by the count claimed: the least, the most, and what the group is called."""

ANY_VALUE = "any"
"""What claims of all counts together are called."""

SMALL = ("0", "1–2")
"""Groups in which fewer claims are enough for a verdict: these are about single persons."""

ENOUGH, ENOUGH_SMALL = 300, 150
"""Claims from which on a band is judged."""

TOLERANCE, TOLERANCE_FEW = 0.02, 0.03
"""By how much claims may state too much, besides two standard errors; the second where there are fewer than `ENOUGH`."""


def stated_probability(inferred: InferredBlock) -> FloatArray:
    """Return the probability that a likely claim about each cell states."""
    return inferred.probabilities.posterior.probability


@dataclass(frozen=True, slots=True)
class Scored:
    """Claims of one group, beside the truth.

    - `value`: Which counts they claim: one of `VALUES`, or `ANY_VALUE`.
    - `band`: Between which probabilities they state; None for all together.
    - `claims`: How many there are.
    - `stated`, `right`: The mean of what they state, and the share that is right.
    - `standard_error`: Of the difference between the two. Claims about one area share its people and its roundings, so
      that areas, not claims, are taken as independent.
    """

    value: str
    band: tuple[float, float] | None
    claims: int
    stated: float
    right: float
    standard_error: float

    @property
    def gap(self) -> float:
        """By how much they state too much."""
        return self.stated - self.right

    @property
    def over(self) -> float:
        """By how much they state too much, less two standard errors: what chance does not explain."""
        return self.gap - 2 * self.standard_error

    @property
    def judged(self) -> bool:
        """Whether there are enough of them for a verdict."""
        return self.claims >= (ENOUGH_SMALL if self.value in SMALL else ENOUGH)

    @property
    def overstated(self) -> bool:
        """Whether they state more than chance and a small tolerance explain."""
        return self.judged and self.over > (TOLERANCE if self.claims >= ENOUGH else TOLERANCE_FEW)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        between = {} if self.band is None else {"from": self.band[0], "to": self.band[1]}
        return between | {
            "claims": self.claims,
            "stated": self.stated,
            "right": self.right,
            "standard_error": self.standard_error,
            "overstated": self.overstated,
        }


def _empty() -> NDArray[np.float64]:
    return np.zeros((len(VALUES) + 1, len(BANDS) + 2, 4))


@dataclass(slots=True)
class ClaimScore:
    """Likely claims by the count claimed and the probability stated; blocks of areas are added up.

    `table` holds, for all claims and each of `VALUES`, for all bands together, below the first one and each of `BANDS`: how
    many claims there are, the sum of what they state, how many are right, and the sum over areas of the square of right
    less stated.
    """

    table: NDArray[np.float64] = field(default_factory=_empty)

    def add(self, inferred: InferredBlock, true: Counts) -> None:
        """Score the likely claims of a block of areas whose truth is known; no area may be in two blocks."""
        here = inferred.claims.of_kind(ClaimKind.LIKELY) & (true > ABSENT)
        values = inferred.claims.values[here]
        self.add_claims(values, stated_probability(inferred)[here], values == true[here], np.nonzero(here)[0])

    def add_claims(
        self, values: NDArray[np.integer[Any]], stated: FloatArray, right: BoolArray, areas: NDArray[np.integer[Any]]
    ) -> None:
        """Score claims, one of each array a claim: the count, the probability, whether it is right, and the area."""
        bands = np.searchsorted(BANDS, stated, side="right") + 1
        groups = np.searchsorted([low for low, _, _ in VALUES], values, side="right")
        off = right - stated
        for group in range(len(VALUES) + 1):
            for band in range(len(BANDS) + 2):
                some = ((groups == group) | (group == 0)) & ((bands == band) | (band == 0))
                if some.any():
                    by_area = np.bincount(np.unique(areas[some], return_inverse=True)[1], weights=off[some])
                    self.table[group, band] += (some.sum(), stated[some].sum(), right[some].sum(), (by_area**2).sum())

    @property
    def rows(self) -> tuple[Scored, ...]:
        """Every group that has claims: by value, all bands together first."""
        edges = (0.0, *BANDS, 1.0)
        return tuple(
            scored
            for group, value in enumerate((ANY_VALUE, *(name for _, _, name in VALUES)))
            for band in range(len(BANDS) + 2)
            if (scored := self._scored(value, (edges[band - 1], edges[band]) if band else None, self.table[group, band]))
        )

    @staticmethod
    def _scored(value: str, band: tuple[float, float] | None, numbers: NDArray[np.float64]) -> Scored | None:
        claims, stated, right, squares = numbers.tolist()
        if not claims:
            return None
        # Without the last digits, which depend on the order in which blocks were added up.
        shares = (round(share, 10) + 0.0 for share in (stated / claims, right / claims, squares**0.5 / claims))
        return Scored(value, band, int(claims), *shares)

    @property
    def bands(self) -> tuple[Scored, ...]:
        """Every group of one band."""
        return tuple(row for row in self.rows if row.band is not None)

    @property
    def whole(self) -> Scored | None:
        """All claims together; None where there are none."""
        return next(iter(self.rows), None)

    @property
    def worst(self) -> Scored | None:
        """The band that states most too much, of those with enough claims for a verdict; None where there is none.

        Where all claims of a band are of one group of values, the band of that group is named.
        """
        judged = [row for row in self.bands if row.judged]
        return max(judged, key=lambda row: (row.overstated, row.gap, row.value != ANY_VALUE), default=None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return it as plain data: a row a group of values, with its bands."""
        return [
            {"value": row.value}
            | row.to_json()
            | {"bands": [band.to_json() for band in self.bands if band.value == row.value]}
            for row in self.rows
            if row.band is None
        ]


COUNTS, MATCHED = "truth.bin", "truth.npz"
"""The true counts, and which of them are of which area and cell."""

MOST_WRONG = 20
"""Wrong claims that are listed one by one."""

LARGE = 8
"""A sum of at least so many parts, at least half of them published as 0, is sparse."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The true counts of the areas of a release.

    - `spool`: The table as it was read.
    - `rows`: Where each area of the release is in it; -1 where it is not.
    - `columns`: Where each audited cell is in it; -1 where it is not.
    """

    spool: Spool
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, truth: Release, model: Model, axes: tuple[str, ...], areas: pl.DataFrame, folder: Path) -> Truth:
        """Read a table of true counts into a folder, and match it with the areas and cells of a release.

        Raises `InputError` if it has no column, no axis of areas, or no area in common with the release.
        """
        if truth.areas != axes:
            raise InputError(
                f"the truth has one row per {', '.join(truth.areas)}, the release one per {', '.join(axes)}: they "
                "cannot be matched."
            )
        spool = Spool(folder / COUNTS, len(truth.columns))
        for block in truth.blocks():
            spool.add(block)
        spool.close(truth.areas)
        at = truth.index
        columns = np.array([at.get(column.key, -1) for column in model.columns])
        if (columns < 0).all():
            raise InputError(
                f"the truth and the release have no column in common: the truth has {', '.join(list(at)[:4])} …, the "
                f"release {', '.join(column.key for column in model.columns[:4])} …"
            )
        row = {key: i for i, key in enumerate(spool.areas.select(axes).iter_rows())}
        rows = np.array([row.get(key, -1) for key in areas.select(axes).iter_rows()])
        if (rows < 0).all():
            here, there = next(areas.select(axes).iter_rows()), next(iter(row), ())
            raise InputError(
                f"the truth and the release have no area in common: the truth has {', '.join(map(str, there))} …, the "
                f"release {', '.join(map(str, here))} …"
            )
        np.savez(folder / MATCHED, rows=rows, columns=columns, shape=(spool.rows, spool.columns))
        return cls(spool, rows, columns)

    @classmethod
    def open(cls, folder: Path) -> Truth:
        """Open what `of` left in a folder."""
        with plain_arrays(folder / MATCHED) as kept:
            height, width = kept["shape"].tolist()
            return cls(Spool.open(folder / COUNTS, width, height), kept["rows"], kept["columns"])

    @property
    def matched(self) -> tuple[int, int]:
        """How many areas and cells have a true count."""
        return int((self.rows >= 0).sum()), int((self.columns >= 0).sum())

    def of_areas(self, areas: NDArray[np.int64]) -> Counts:
        """Return the true counts of some areas, a cell each; a code of `release` where there is none."""
        rows = self.rows[areas]
        true = self.spool.pick(np.maximum(rows, 0))[:, np.maximum(self.columns, 0)]
        true[rows < 0] = ABSENT
        true[:, self.columns < 0] = ABSENT
        return true


@dataclass
class Score:
    """How the claims compare with the truth.

    - `checked`, `wrong`: Claims that could be checked, and those that were wrong, by kind.
    - `bands`: By what is judged ("all cells", "totals of sparse sums", "findings"), for each band of stated probability
      how many likeliest counts there were, their mean stated probability, and the share that was right.
    - `parts`: By the part that cells play in splits (totals, men, women), of all likeliest counts, of those that are at
      least as likely as `BANDS` begin, and of findings: how many there were, the sum of their stated probabilities, and
      how many were right. Errors of opposite signs would cancel in figures of all cells together.
    - `methods`: The same by the method that probabilities were obtained with (see `linked.methods`).
    - `by_value`: Likely claims by the count claimed and the probability stated.
    - `error`: The sum of estimates less truth, of squared errors, and their number.
    """

    checked: dict[str, int] = field(default_factory=lambda: {"proved": 0, "conditional": 0, "likely": 0})
    wrong: dict[str, int] = field(default_factory=lambda: {"proved": 0, "conditional": 0, "likely": 0})
    bands: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    parts: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    methods: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    by_value: ClaimScore = field(default_factory=ClaimScore)
    error: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    outside: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    matched: tuple[int, int] = (0, 0)

    def add(self, model: Model, inferred: InferredBlock, true: Counts, areas: pl.DataFrame, axes: tuple[str, ...]) -> None:
        """Score a block, once its claims are certified."""
        claims, posterior, within = inferred.claims, inferred.probabilities.posterior, inferred.probabilities.within
        known = true > ABSENT
        wrong = known & (true != claims.values)
        for kind in (ClaimKind.PROVED, ClaimKind.CONDITIONAL, ClaimKind.LIKELY):
            here = claims.of_kind(kind)
            self.checked[kind.label] += int((here & known).sum())
            self.wrong[kind.label] += int((here & wrong).sum())
            if kind == ClaimKind.PROVED:
                self._list(model, claims, true, here & wrong, areas, axes)
        tight = inferred.documented.tight
        inside = (tight.low <= true) & (true <= tight.high)
        self.outside += int((known & ~inside & tight.feasible[:, None]).sum())
        uncertain = known & (within.low < within.high) & (posterior.probability > 0)
        right = posterior.mode == true
        findings = uncertain & claims.of_kind(ClaimKind.LIKELY)
        self.by_value.add(inferred, true)
        self._band("all cells", posterior.probability[uncertain], right[uncertain])
        self._band("findings", posterior.probability[findings], right[findings])
        by_figures = findings & inferred.by_figures
        if by_figures.any():
            self._band("findings because of figures", posterior.probability[by_figures], right[by_figures])
        sparse = uncertain & sparse_totals(model, inferred.counts)
        self._band("totals of sparse sums", posterior.probability[sparse], right[sparse])
        for name, cells in roles_of(model).items():
            here = np.zeros_like(uncertain)
            here[:, cells] = uncertain[:, cells]
            _add_part(self.parts, name, inferred, here, true)
        codes = inferred.probabilities.methods
        for code in np.unique(codes).tolist():
            here = uncertain & (codes == code)[:, np.newaxis]
            _add_part(self.methods, METHODS[code].name, inferred, here, true)
        off = posterior.mean[uncertain] - true[uncertain]
        self.error += (off.sum(), (off**2).sum(), off.size)

    def _band(self, name: str, probability: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
        band_of = np.searchsorted(BANDS, probability, side="right") - 1
        total = self.bands.setdefault(name, np.zeros((len(BANDS), 3)))
        for band in range(len(BANDS)):
            here = band_of == band
            total[band] += (here.sum(), probability[here].sum(), right[here].sum())

    def _list(
        self,
        model: Model,
        claims: BlockClaims,
        true: Counts,
        wrong: NDArray[np.bool_],
        areas: pl.DataFrame,
        axes: tuple[str, ...],
    ) -> None:
        for area, cell in np.argwhere(wrong)[: MOST_WRONG - len(self.examples)]:
            where = {axis: areas[axis][int(area)] for axis in axes}
            said = {"cell": model.columns[cell].key, "value": int(claims.values[area, cell]), "true": int(true[area, cell])}
            self.examples.append(where | said)

    def plain(self) -> dict[str, Any]:
        """Return the score, to be written down and added up with other blocks'."""
        bands = {name: table.tolist() for name, table in self.bands.items()}
        return {
            "checked": self.checked,
            "wrong": self.wrong,
            "bands": bands,
            "parts": {name: table.tolist() for name, table in self.parts.items()},
            "methods": {name: table.tolist() for name, table in self.methods.items()},
            "by_value": self.by_value.table.tolist(),
            "error": self.error.tolist(),
            "outside": self.outside,
            "examples": self.examples,
        }

    @classmethod
    def of(cls, scored: Mapping[str, Any], matched: tuple[int, int]) -> Score:
        """Return what `plain` wrote down, or several of them added up."""
        bands, parts, methods = (
            {name: np.array(table) for name, table in scored[what].items()} for what in ("bands", "parts", "methods")
        )
        return cls(
            scored["checked"],
            scored["wrong"],
            bands,
            parts,
            methods,
            ClaimScore(np.array(scored["by_value"])),
            np.array(scored["error"]),
            scored["outside"],
            scored["examples"][:MOST_WRONG],
            matched,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        total, squares, number = self.error.tolist()
        return {
            "areas": self.matched[0],
            "columns": self.matched[1],
            "checked": self.checked,
            "wrong": self.wrong,
            "outside_bounds": self.outside,
            "proved_wrong": self.examples,
            "calibration": {name: list(_rows(table)) for name, table in self.bands.items()},
            "claims_by_value": self.by_value.to_json(),
            "by_part": {name: _part(table) for name, table in self.parts.items()},
            "by_method": {
                method.name: _part(self.methods[method.name]) for method in METHODS if method.name in self.methods
            },
            "mean_error": _share(total, number) if number else None,
            "root_mean_square_error": _share(squares, number) ** 0.5 if number else None,
            "cells": int(number),
            "assumption_failed": self._which_failed(),
        }

    def _which_failed(self) -> str | None:
        """Name the assumption that must be wrong where a claim turned out wrong that could not."""
        if self.wrong["proved"] or self.outside:
            return (
                "a documented fact does not hold: the parts of a sum overlap or are incomplete, counts were not "
                "published by the assumed mechanism, or the truth belongs to another release"
            )
        if self.wrong["conditional"]:
            return "exact populations: some conditional claims are wrong, so some of these populations were adjusted"
        return None


def _add_part(
    parts: dict[str, NDArray[np.float64]],
    name: str,
    concluded: InferredBlock,
    here: NDArray[np.bool_],
    true: Counts,
) -> None:
    """Add up what was stated of some cells, and how often it was right."""
    posterior, likely = concluded.probabilities.posterior, concluded.claims.of_kind(ClaimKind.LIKELY)[here]
    stated, right = posterior.probability[here], (posterior.mode == true)[here]
    total = parts.setdefault(name, np.zeros((len(_JUDGED), 3)))
    for k, judged in enumerate((stated >= 0, stated >= BANDS[0], likely)):
        total[k] += (judged.sum(), stated[judged].sum(), right[judged].sum())


_JUDGED = ("all", "likely", "findings")


def _share(part: float, whole: float) -> float:
    """Return a share without the last digits, which depend on the order in which blocks were added up."""
    return round(part / whole, 10) + 0.0


def _part(table: NDArray[np.float64]) -> dict[str, Any]:
    """Return what was added up of one part as plain data."""
    parts = {}
    for name, (number, stated, right) in zip(_JUDGED, table.tolist(), strict=True):
        shares = (
            {"stated": _share(stated, number), "right": _share(right, number)} if number else {"stated": None, "right": None}
        )
        parts[name] = {"cells": int(number)} | shares
    return parts


def _rows(table: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
    """Return the bands of a table as plain data."""
    for band, (number, stated, right) in enumerate(table.tolist()):
        upper = BANDS[band + 1] if band + 1 < len(BANDS) else 1.0
        shares = (
            {"stated": _share(stated, number), "right": _share(right, number)} if number else {"stated": None, "right": None}
        )
        yield {"from": BANDS[band], "to": upper, "claims": int(number)} | shares


def sparse_totals(model: Model, counts: Counts) -> NDArray[np.bool_]:
    """Mark the totals of sums with many parts, most of them published as 0."""
    marked = np.zeros(counts.shape, dtype=bool)
    for total, parts in model.equations:
        if len(parts) >= LARGE:
            marked[:, total] |= 2 * (counts[:, list(parts)] == 0).sum(axis=1) >= len(parts)
    return marked
