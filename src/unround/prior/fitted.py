"""The prior of an audit: fitted to a sample of areas while the release is read, kept with the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.evidence.block import Ints, PriorWeights
from unround.mechanisms import Mechanism
from unround.mechanisms.base import BoolArray, FloatArray
from unround.prior.columns import VARIANTS, ColumnFitter, Mixtures
from unround.prior.deconvolve import present
from unround.prior.exposure import KINDS, ColumnExposure, Hierarchy
from unround.prior.mixture import MOST_RATES
from unround.prior.sexes import SexSplits, fit_splits
from unround.prior.weights import AreaLaws, area_weights
from unround.release import ABSENT, Counts
from unround.small_files import plain_arrays
from unround.sums.compiled import CompiledSums


class AreaSample:
    """A sample of areas, kept whole: it depends on the areas' counts, not on their order or on blocks.

    - `columns`: How many columns there are.
    - `most`: Areas to keep.

    Attributes
    ----------
    seen : int
        How many areas with any count there were to choose from.
    """

    def __init__(self, columns: int, most: int) -> None:
        self.most = most
        self.seen = 0
        self._times: dict[int, int] = {}
        self._keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty((0, columns), dtype=np.int32)

    @property
    def counts(self) -> Counts:
        """The sampled areas × columns, in an order of their own."""
        return self._counts

    def add(self, counts: Counts) -> None:
        """Take in a block of areas; those without any count are left out."""
        keys = self._own_keys(counts)
        chosen = present(counts).any(axis=1)
        self.seen += int(np.count_nonzero(chosen))
        if self._keys.size == self.most:
            chosen &= keys <= self._keys[-1]
        keys = np.concatenate([self._keys, keys[chosen]])
        both = np.concatenate([self._counts, counts[chosen]])
        keep = np.argsort(keys, kind="stable")[: self.most]
        self._keys, self._counts = keys[keep], both[keep]

    def _own_keys(self, counts: Counts) -> NDArray[np.uint64]:
        """Return a random number for every area: that of its counts, and of how many areas with the same came before.

        Without the latter, all areas without anybody, for instance, would be in the sample, or none.
        """
        contents = _mixed(np.full(len(counts), _START, dtype=np.uint64), *counts.T)
        order = np.argsort(contents, kind="stable")
        different, first, number = np.unique(contents[order], return_index=True, return_counts=True)
        before = np.array([self._times.get(content, 0) for content in different.tolist()], dtype=np.int64)
        self._times.update(zip(different.tolist(), (before + number).tolist(), strict=True))
        rank = np.empty(len(counts), dtype=np.int64)
        rank[order] = np.arange(len(counts)) - np.repeat(first - before, number)
        return _mixed(contents, rank)


_START = 0x9E3779B97F4A7C15


def _mixed(keys: NDArray[np.uint64], *columns: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return keys that look random, but are the same for the same numbers (the finaliser of SplitMix64)."""
    for column in columns:
        keys = keys ^ column.astype(np.int64).view(np.uint64)
        keys = keys * np.uint64(0xBF58476D1CE4E5B9)
        keys = keys ^ (keys >> np.uint64(31))
    return keys


FEWEST_AREAS = 15
"""With fewer there is nothing to fit a prior to."""

FEW_AREAS = 60
"""With fewer, the flat prior is one of the set: a fit to so few is not sure enough of itself."""

SAMPLED_CELLS = 25_000_000
"""Counts of the areas that a prior is fitted to: 100 MB."""

SAMPLED_AREAS = 8192
"""More would not change anything."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedPrior:
    """What was fitted.

    - `mixtures`: How each column varies over areas.
    - `splits`: How counts split by sex.
    - `power`: For every column to which power its mixture is taken: 1 for leaves, 0 for totals, negative for totals that
      would count several times.
    """

    mixtures: Mixtures
    splits: SexSplits
    power: NDArray[np.int64]

    def check(self) -> None:
        """Raise ValueError unless all arrays fit together: compiled code would read beyond their ends."""
        columns, pairs = self.power.size, len(self.splits.cells)
        whole, real, places = np.dtype(np.int64), np.dtype(np.float64), range(columns)
        law = (len(VARIANTS), columns, MOST_RATES)
        wanted = (
            (self.power, (columns,), whole),
            (self.splits.cells, (pairs, 3), whole),
            (self.splits.tops, (pairs, 2), whole),
            *((getattr(self.splits, name), (pairs,), real) for name in ("usual", "share", "precision", "spread")),
            (np.array(self.mixtures.chosen), (columns, len(ColumnExposure._fields)), real),
            (np.array(astuple(self.mixtures.sizes)), (3,), real),
            (self.mixtures.clump, law[:2], real),
            (self.mixtures.least, law[:2], real),
            (self.mixtures.few, law[:2], real),
            (self.mixtures.rates, law, real),
            (self.mixtures.weights, law, real),
            (self.mixtures.alone, (2, *law[1:]), real),
        )
        for array, shape, kind in wanted:
            if (
                array.shape != shape
                or array.dtype != kind
                or (kind == real and not (np.isfinite(array) & (array >= 0)).all())
            ):
                raise ValueError("its arrays do not fit together")
        pointers = [
            self.mixtures.sizes.column,
            *(exposure.above for exposure in self.mixtures.chosen),
            *self.splits.cells.ravel(),
        ]
        if not np.isin(pointers, places).all() or not np.isin(self.splits.tops, (-1, *places)).all():
            raise ValueError("it refers to columns that do not exist")
        if not all(((shares > 0) & (shares < 1)).all() for shares in (self.splits.usual, self.splits.share)):
            raise ValueError("a share is none")
        if (abs(self.power) > columns).any():
            raise ValueError("a mixture is taken to a power that makes no sense")
        if any(exposure.kind not in KINDS for exposure in self.mixtures.chosen) or self.mixtures.sizes.least <= 0:
            raise ValueError("it has a kind of exposure that does not exist")


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What true counts are taken to be like before anything about an area is known: a small set of priors.

    - `name`: "fitted" or "flat".
    - `sentence`: What is assumed, or why nothing is.
    - `fitted`: What was fitted; None if the prior is flat.
    - `variants`: The names of the set; probabilities are worked out under each.
    - `withheld`: The columns in which nothing is called likely, because predictions of what was published there failed.
    - `doubted`: Priors of the set × columns: how far what each says is not believed, and the best believed instead, because
      the best predicts better there; None where that was not tried.
    """

    name: str
    sentence: str
    fitted: FittedPrior | None = None
    variants: tuple[str, ...] = ("flat",)
    withheld: tuple[int, ...] = ()
    doubted: FloatArray | None = None

    @classmethod
    def flat(cls, why: str = "all true counts that add up are taken to be equally likely") -> Prior:
        """Return the prior that prefers nothing."""
        return cls("flat", f"flat: {why}")

    @property
    def is_flat(self) -> bool:
        """Whether it prefers nothing."""
        return self.fitted is None

    def odd(self, counts: Counts) -> BoolArray:
        """Mark the areas that the prior does not explain: it says nothing likely of them."""
        return np.zeros(len(counts), dtype=np.bool_) if self.fitted is None else self.fitted.splits.odd(counts)

    def believed(self, variant: str, probability: FloatArray, best: FloatArray) -> FloatArray:
        """Return what one prior of the set says of some areas, as far as it is believed, given what the best says."""
        if self.doubted is None:
            return probability
        return np.asarray(probability + self.doubted[self.variants.index(variant)] * (best - probability))

    def flat_in(self, columns: Sequence[int]) -> Prior:
        """Return the prior with some columns flat: all columns of a table, as they belong together."""
        if self.fitted is None or not columns:
            return self
        chosen = np.array(columns, dtype=np.int64)
        mixtures, splits = self.fitted.mixtures, self.fitted.splits
        weights = mixtures.weights.copy()
        weights[:, chosen] = 0.0
        precision = np.where(np.isin(splits.cells[:, 0], chosen), 0.0, splits.precision)
        fitted = replace(
            self.fitted, mixtures=replace(mixtures, weights=weights), splits=replace(splits, precision=precision)
        )
        return replace(self, fitted=fitted)

    def weights(
        self, counts: Counts, low: Ints, high: Ints, variant: str = VARIANTS[0], wanted: BoolArray | None = None
    ) -> PriorWeights | None:
        """Return how likely the possible counts of some areas are, to be used with all sums; None if all are equally."""
        if self.fitted is None or variant == "flat":
            return None
        mixtures, splits, v = self.fitted.mixtures, self.fitted.splits, VARIANTS.index(variant)
        precision, slope = np.zeros(counts.shape), np.zeros(counts.shape)
        divides = np.zeros(counts.shape[1], dtype=np.bool_)
        some = np.flatnonzero(splits.precision > 0)  # the others are flat
        if some.size:
            total, first, second = splits.cells[some].T
            a, shares = splits.precision[some], splits.shares(counts)[:, some]
            about = np.where(counts[:, total] > ABSENT, np.maximum(counts[:, total], 0), 0)
            precision[:, total], divides[total] = a, True
            precision[:, first], precision[:, second] = a * shares, a * (1 - shares)
            steep = np.log((about + a) / (about + 1.0))
            slope[:, total] = slope[:, first] = slope[:, second] = steep
        exposures = mixtures.exposures(counts, v)
        mixed = exposures, mixtures.rates[v], mixtures.weights[v], mixtures.clump[v], mixtures.few[v], self.fitted.power
        return area_weights(_plain(low), _plain(high), AreaLaws(*mixed, precision, divides, slope), wanted)

    def weights_alone(self, low: Ints, high: Ints, wanted: BoolArray | None = None) -> PriorWeights | None:
        """Return the same for counts of which nothing is known but what was published of each."""
        if self.fitted is None:
            return None
        rates, weights = self.fitted.mixtures.alone
        nothing, columns = np.zeros(low.shape), low.shape[1]
        power, never = np.ones(columns, dtype=np.int64), np.zeros(columns, dtype=np.bool_)
        laws = AreaLaws(
            np.ones(low.shape), rates, weights, np.zeros(columns), np.zeros(columns), power, nothing, never, nothing
        )
        return area_weights(_plain(low), _plain(high), laws, wanted)

    def save(self, path: Path) -> None:
        """Write it to a file, for `load`."""
        arrays: dict[str, Any] = {} if self.fitted is None else {"power": self.fitted.power}
        if self.fitted is not None:
            arrays |= self.fitted.mixtures.arrays()
            arrays |= {f"split_{field.name}": getattr(self.fitted.splits, field.name) for field in fields(SexSplits)}
        with path.open("wb") as file:
            members: dict[str, Any] = {"name": self.name, "sentence": self.sentence, "variants": np.array(self.variants)}
            if self.doubted is not None:
                members["doubted"] = self.doubted
            np.savez_compressed(file, **members, withheld=np.array(self.withheld, dtype=np.int64), **arrays)

    @classmethod
    def load(cls, path: Path) -> Prior:
        """Read what `save` wrote.

        Raises `InputError` if the file is not there, or is something else.
        """
        try:
            with plain_arrays(path) as members:
                name, sentence = str(members["name"]), str(members["sentence"])
                variants = tuple(str(variant) for variant in members["variants"])
                if name not in ("fitted", "flat") or not variants or not {*variants} <= {*VARIANTS, "flat"}:
                    raise ValueError(f"it is of a kind that does not exist: {name}, {', '.join(variants)}")
                if name == "flat":
                    return cls(name, sentence, None, variants)
                splits = SexSplits(*(members[f"split_{field.name}"] for field in fields(SexSplits)))
                fitted, withheld = (
                    FittedPrior(Mixtures.of(members), splits, members["power"]),
                    tuple(members["withheld"].tolist()),
                )
                fitted.check()
                doubted = members.get("doubted")
                if doubted is not None and (
                    doubted.shape != (len(variants), fitted.power.size) or not ((doubted >= 0) & (doubted <= 1)).all()
                ):
                    raise ValueError("how far its priors are believed does not fit them")
                return cls(name, sentence, fitted, variants, withheld, doubted)
        except Exception as error:  # there is no end of ways in which an archive of arrays can be damaged
            raise InputError(f"{path} cannot be read as a prior ({error}). Run the audit again to write it anew.") from error


def _plain(bounds: Ints) -> Ints:
    """Return bounds in the type and layout that the kernel is compiled for."""
    return np.require(bounds, np.int32, ("C", "W"))


class PriorFit:
    """Gathers what a prior is fitted to, while blocks of areas go by.

    - `columns`: How many columns the release has.

    Examples
    --------
    >>> fit = PriorFit(columns=3)
    >>> fit.add(np.array([[10, 5, 5]] * 12, dtype=np.int32))
    >>> from unround.sums.compiled import compile_sums
    >>> from unround.mechanisms import Rounding
    >>> fit.finish(compile_sums(3, ((0, (1, 2)),), frozenset()), [Rounding(5)] * 3).sentence
    'flat: 12 areas are too few to fit a prior (at least 15)'
    """

    def __init__(self, columns: int) -> None:
        self.sample = AreaSample(columns, max(FEW_AREAS, min(SAMPLED_AREAS, SAMPLED_CELLS // max(columns, 1))))

    def add(self, counts: Counts) -> None:
        """Take in a block of published counts, areas × columns, with the codes of `unround.release` for absent ones."""
        self.sample.add(counts)

    def finish(
        self,
        compiled: CompiledSums,
        mechanisms: Sequence[Mechanism],
        progress: Callable[[int, int], None] = lambda *_: None,
        skipped: Collection[int] = frozenset(),
    ) -> Prior:
        """Fit the prior."""
        areas = self.sample.seen
        if areas < FEWEST_AREAS:
            many = "1 area is" if areas == 1 else f"{areas} areas are"
            return Prior.flat(f"{many} too few to fit a prior (at least {FEWEST_AREAS})")
        hierarchy = Hierarchy.of(compiled)
        fitter = ColumnFitter(self.sample.counts, mechanisms, hierarchy)
        mixtures = fitter.fit(progress, skipped)
        splits = fit_splits(self.sample.counts, fitter.windows, hierarchy, mixtures, skipped)
        power = np.zeros(hierarchy.columns, dtype=np.int64)
        power[list(hierarchy.leaves)] = 1
        by_sex = {pair.total for pair in hierarchy.split}
        for total, first, second in splits.cells.tolist():
            if total not in by_sex:  # two leaves that split as sexes do: their total carries the weight
                power[[total, first, second]] = 1, 0, 0
        for column, times in hierarchy.repeated.items():
            power[column] = -times
        few = areas < FEW_AREAS
        return Prior(
            "fitted",
            f"fitted to {areas:,} areas: how the rate of every count without parts varies between areas, estimated from the "
            f"published counts; a count is called likely only if all {len(VARIANTS) + few} priors that fit, and "
            "predict, about as well make it so",
            FittedPrior(mixtures, splits, power),
            (*VARIANTS, "flat") if few else VARIANTS,
        )
