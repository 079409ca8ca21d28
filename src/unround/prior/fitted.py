"""The prior of an audit: fitted to the release while it is read, kept with the results."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unround.batch.types import NO_UPPER_BOUND, CompiledSums, PriorTable
from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.deconvolve import SIZE, fit_all
from unround.prior.histograms import Histograms
from unround.prior.shares import Sample
from unround.prior.table import Weigher
from unround.release import Counts

FEWEST_AREAS = 60
"""With fewer there is nothing to fit a prior to."""

OWN = 64
"""Counts from 0 on for which each column's own distribution is kept."""

SAMPLED_CELLS = 25_000_000
"""Counts of the areas that are kept to see how totals split: 100 MB."""

SAMPLED_AREAS = 8192
"""More would not change anything."""


_DAMAGE = (
    OSError, EOFError, KeyError, ValueError, TypeError, IndexError, NotImplementedError, RuntimeError, zlib.error,
    zipfile.BadZipFile, MemoryError,
)  # fmt: skip
"""What a file that is no archive of arrays, or a damaged one, leads to. MemoryError: its sizes may be anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What true counts are taken to be like before anything about an area is known.

    Parameters
    ----------
    name : str
        "fitted" or "flat".
    sentence : str
        What is assumed, or why nothing is.
    table : PriorTable or None
        The weights of true counts by column; None if the prior is flat. They belong together: a column's weights mean
        something only beside those of all columns that it is linked with.
    own : PriorTable or None
        Each column's distribution of true counts by itself, for what its published value alone makes likely. Small
        counts only: among larger ones nothing is likely without a sum.
    """

    name: str
    sentence: str
    table: PriorTable | None = None
    own: PriorTable | None = None

    @classmethod
    def flat(cls, why: str = "all true counts that add up are equally likely a priori") -> Prior:
        """Return the prior that prefers nothing."""
        return cls("flat", f"flat: {why}")

    def weights_for(self, column: int, low: int, high: int) -> dict[int, float]:
        """Return the weights of the counts from low to high, the largest of them 1; empty if the prior is flat.

        Weights of different columns belong together only as the prior of one whole area: a total's may lean the other
        way than its parts', to make up for them.

        Raises
        ------
        InputError
            If the column is not there, or the counts cannot be listed.
        """
        if self.table is None:
            return {}
        if not 0 <= column < self.table.size.size:
            raise InputError(f"the prior has {self.table.size.size} columns; there is no column {column}.")
        if not 0 <= low <= high < NO_UPPER_BOUND:
            raise InputError(f"a prior has weights for ranges of counts from 0, not for {low} to {high}.")
        counts = np.arange(low, high + 1)
        places = self.table.offset[column] + np.minimum(counts, self.table.size[column] - 1)
        weights = self.table.weights[places]
        return dict(zip(counts.tolist(), (weights / weights.max()).tolist(), strict=True))

    def own_rows(self) -> FloatArray:
        """Return `own` as columns × counts."""
        assert self.own is not None
        return self.own.weights.reshape(self.own.size.size, -1)

    def save(self, path: Path) -> None:
        """Write it to a file, for `load`."""
        with path.open("wb") as file:
            if self.table is None:
                np.savez_compressed(file, name=self.name, sentence=self.sentence)
            else:
                np.savez_compressed(
                    file,
                    name=self.name,
                    sentence=self.sentence,
                    offset=self.table.offset,
                    size=self.table.size,
                    weights=self.table.weights,
                    own=self.own_rows(),
                )

    @classmethod
    def load(cls, path: Path) -> Prior:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is not there, or is something else.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
                name, sentence = str(found["name"]), str(found["sentence"])
                if name == "flat":
                    return cls(name, sentence)
                table = PriorTable(found["offset"], found["size"], found["weights"])
                own = _rows_table(found["own"])
        except _DAMAGE as error:
            raise InputError(f"{path} cannot be read as a prior ({error}). Run the audit again to replace it.") from error
        return cls(name, sentence, table, own)


def _rows_table(rows: FloatArray) -> PriorTable:
    """Return distributions, columns × counts, as a table."""
    columns, size = rows.shape
    return PriorTable(np.arange(columns) * size, np.full(columns, size), np.ascontiguousarray(rows).ravel())


class PriorFit:
    """Gathers what a prior is fitted to, while blocks of areas go by.

    Parameters
    ----------
    columns : int
        How many columns the release has.

    Examples
    --------
    >>> fit = PriorFit(columns=3)
    >>> fit.add(np.array([[10, 5, 5]] * 12, dtype=np.int32))
    >>> from unround.batch.compiled_sums import compile_sums
    >>> from unround.mechanisms import Rounding
    >>> fit.finish(compile_sums(3, ((0, (1, 2)),), frozenset()), [Rounding(5)] * 3).sentence
    'flat: 12 areas are too few to fit a prior (at least 60)'
    """

    def __init__(self, columns: int) -> None:
        self.histograms = Histograms(columns)
        self._fitted: FloatArray | None = None
        self.sample = Sample(columns, max(FEWEST_AREAS, min(SAMPLED_AREAS, SAMPLED_CELLS // max(columns, 1))))

    def add(self, counts: Counts) -> None:
        """Take in a block of published counts, areas × columns, with the codes of `unround.release` for absent ones."""
        self._fitted = None
        self.histograms.add(counts)
        self.sample.add(counts)

    def finish(
        self,
        compiled: CompiledSums,
        mechanisms: Sequence[Mechanism],
        shared: Mapping[tuple[int, int], float] | None = None,
    ) -> Prior:
        """Fit the prior.

        Parameters
        ----------
        compiled : CompiledSums
            The sums that hold in all areas.
        mechanisms : sequence of Mechanism
            How each column was published.
        shared : mapping, optional
            For totals with a part of theirs: in which share of the areas the total uses the part's random number.
        """
        areas = self.histograms.areas
        if areas < FEWEST_AREAS:
            many = "1 area is" if areas == 1 else f"{areas} areas are"
            return Prior.flat(f"{many} too few to fit a prior (at least {FEWEST_AREAS})")
        if self._fitted is None:
            self._fitted = self.distributions(mechanisms)
        distributions = self._fitted
        table = Weigher(compiled, mechanisms, self.sample.counts, distributions, shared).table()
        return Prior(
            "fitted",
            f"fitted: the distributions of true counts over {areas:,} areas, and of how totals split into their parts, "
            "deconvolved from the published counts",
            table,
            _rows_table(distributions[:, :OWN]),
        )

    def distributions(self, mechanisms: Sequence[Mechanism]) -> FloatArray:
        """Return the fitted distributions of true counts, columns × counts."""
        fitted = np.empty((len(mechanisms), SIZE))
        alike: dict[Mechanism, list[int]] = {}
        for column, mechanism in enumerate(mechanisms):
            alike.setdefault(mechanism, []).append(column)
        for mechanism, those in alike.items():
            fitted[those] = fit_all(self.histograms.tallies[those], mechanism)
        return fitted
