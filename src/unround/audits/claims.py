"""What can be claimed of a cell, decided in one place: from what is possible, what is likely, and a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import BlockBounds
from unround.errors import InternalError
from unround.evidence.block import BlockPosterior, Ints
from unround.mechanisms.base import BoolArray, FloatArray, reaches

if TYPE_CHECKING:
    from unround.audits.certificates import Certificate

LEAST_SHARE = 0.25
"""A count that is likely from its published value alone is claimed only if other counts remove so much of the doubt."""


class ClaimKind(IntEnum):
    """What is claimed of a cell; the codes order findings, the most certain first."""

    OPEN = 0
    PROVED = 1
    CONDITIONAL = 2
    LIKELY = 3

    @property
    def label(self) -> str:
        """What people, and files, call it."""
        return self.name.lower()


KINDS = tuple(kind.label for kind in ClaimKind)
"""The labels, in the order of the codes."""


class Needs(IntEnum):
    """What a claim needs besides the sums of its area and the prior."""

    NOTHING = 0
    FAMILY = 1
    """Other areas of the family."""
    FIGURE = 2
    """A published rate, mean or median."""


class HeldBecause(IntEnum):
    """Why a claim that could be made is held back."""

    NOTHING = 0
    MECHANISM = 1
    SELFCHECK = 2
    TIED = 3
    SUSPECT = 4
    ODD = 5

    @property
    def label(self) -> str:
        """What `summary.json` calls it."""
        return self.name.lower()


class RestsOn(IntFlag):
    """What a claim rests on beyond what the agency documents; nothing, for a proof."""

    INDEPENDENT_ROUNDING = 1
    EXACT_POPULATION = 2
    CORRECT_COUNTS = 4
    SUM_IN_DATA = 8
    DOUBTFUL_SUM = 16
    FITTED_PRIOR = 32
    COMPLETE_FAMILY = 64
    FIGURES = 128
    INFERRED = 256
    """A mechanism or a sum that somebody could have documented or declared, and nobody did."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Each assumption in words."""
        return tuple(text for reason, text in REASONS.items() if reason & self)


REASONS = {
    RestsOn.INDEPENDENT_ROUNDING: "independent rounding",
    RestsOn.EXACT_POPULATION: "an exact population",
    RestsOn.CORRECT_COUNTS: "correct counts in sums that contradict each other",
    RestsOn.SUM_IN_DATA: "a sum found only in the data",
    RestsOn.DOUBTFUL_SUM: "a sum that cannot hold in some other area",
    RestsOn.FITTED_PRIOR: "the fitted prior",
    RestsOn.COMPLETE_FAMILY: "areas that together make up their parent",
    RestsOn.FIGURES: "figures computed from unrounded counts and rounded to the nearest step",
    RestsOn.INFERRED: "what nobody documents or declares",
}


@dataclass(frozen=True, slots=True, eq=False)
class BlockClaims:
    """What is claimed of every cell of a block; the arrays cannot be written to.

    - `kinds`: The `ClaimKind` of every cell.
    - `values`: The count that is claimed, or would be: the only possible or the likeliest one.
    - `depth`: How many sums a proof takes, one after the other; 0 for likely claims, and until `certify` has written it.
    - `needs`: What it needs besides, a `Needs` each.
    - `without_sums`: Where a count is known or likely from its published value alone, to which the area's other counts
      add little: that is not a claim.
    - `alone`: Of likely claims, the probability from the published value alone, without anything else that is known of
      the area; NaN elsewhere.
    - `held_back`: The `ClaimKind` of claims that could be made but are held back.
    - `held_because`: Why they are, a `HeldBecause` each.
    - `certificates`: One for every proved and conditional claim, by area and cell; None until `certify` has written them.
    """

    kinds: NDArray[np.int8]
    values: Ints
    depth: Ints
    needs: NDArray[np.int8]
    without_sums: BoolArray
    alone: FloatArray
    held_back: NDArray[np.int8]
    held_because: NDArray[np.int8]
    certificates: tuple[Certificate, ...] | None = None

    def __post_init__(self) -> None:
        arrays = self.kinds, self.values, self.depth, self.needs, self.without_sums, self.alone
        for array in (*arrays, self.held_back, self.held_because):
            array.setflags(write=False)

    def of_kind(self, kind: ClaimKind) -> BoolArray:
        """Return where this is claimed."""
        return np.asarray(self.kinds == kind)

    @property
    def certain(self) -> BoolArray:
        """Where a claim is proved, on a condition or without."""
        return self.of_kind(ClaimKind.PROVED) | self.of_kind(ClaimKind.CONDITIONAL)

    @property
    def certified(self) -> tuple[Certificate, ...]:
        """The certificates, of claims that have them.

        Raises `InternalError` if these claims have not been certified: some of them might not stand.
        """
        if self.certificates is None:
            raise InternalError("claims were about to be written down before they were certified")
        return self.certificates

    @property
    def merely_inferred(self) -> BoolArray:
        """Where a claim would be proved if what it rests on were documented or declared."""
        marked = np.zeros(self.kinds.shape, dtype=np.bool_)
        for certificate in self.certified:
            marked[certificate.area, certificate.cell] = certificate.rests_on == RestsOn.INFERRED
        return marked

    def holding_back(self, kind: ClaimKind, where: BoolArray, why: HeldBecause) -> BlockClaims:
        """Return the claims without those of a kind in some places, which are kept as held back."""
        held = self.of_kind(kind) & where
        if not held.any():
            return self
        kinds = np.where(held, np.int8(ClaimKind.OPEN), self.kinds)
        kept = self.certificates
        if kept is not None:
            kept = tuple(certificate for certificate in kept if not held[certificate.area, certificate.cell])
        held_back = np.where(held, self.kinds, self.held_back)
        because = np.where(held, np.int8(why), self.held_because)
        return replace(self, kinds=kinds, held_back=held_back, held_because=because, certificates=kept)

    def dropping(self, without_sums: BoolArray, alone: FloatArray) -> BlockClaims:
        """Return the claims that remain when those that need no sum are dropped."""
        dropped = np.asarray(without_sums & (self.kinds != ClaimKind.OPEN))
        kinds = np.where(dropped, np.int8(ClaimKind.OPEN), self.kinds)
        return replace(self, kinds=kinds, without_sums=dropped, alone=alone)


def known_alone(probability: FloatArray, alone: FloatArray, threshold: float) -> BoolArray:
    """Return which counts are likely by their published value alone, so that sums and other counts add little."""
    known = np.asarray(reaches(alone, threshold))
    known[known] = due_to_sums(probability[known], alone[known]) < LEAST_SHARE
    return known


def due_to_sums(probability: FloatArray, alone: FloatArray) -> FloatArray:
    """Return the share of the doubt about a count, given its published value alone, that everything else removes.

    Examples
    --------
    >>> due_to_sums(np.array([0.95, 0.7]), np.array([0.5, 0.8])).tolist()
    [0.9, 0.0]
    """
    return np.asarray(np.clip(1 - (1 - probability) / np.maximum(1 - alone, 1e-12), 0.0, 1.0).round(12))


def due_to_sums_of(probability: float, alone: float) -> float:
    """Return the same of one count, to the last bit.

    Examples
    --------
    >>> due_to_sums_of(0.95, 0.5), due_to_sums_of(0.7, 0.8), due_to_sums_of(0.7, math.nan)
    (0.9, 0.0, nan)
    """
    if math.isnan(probability) or math.isnan(alone):
        return math.nan
    share = min(max(1 - (1 - probability) / max(1 - alone, 1e-12), 0.0), 1.0)
    return round(share * 1e12) / 1e12  # as numpy rounds


def decide(
    documented: BlockBounds,
    assumed: BlockBounds,
    posterior: BlockPosterior,
    lowest: FloatArray,
    threshold: float,
    *,
    nothing: BoolArray | None = None,
    nothing_likely: BoolArray | None = None,
    figured: BlockBounds | None = None,
) -> BlockClaims:
    """Decide for every cell what can be claimed, and which count.

    Audits, comparisons and calibrations all ask this function, so that a claim means the same everywhere.
    """
    likely = reaches(lowest, threshold)
    if nothing_likely is not None:
        likely &= ~nothing_likely
    readings = [(assumed, ClaimKind.CONDITIONAL), (documented, ClaimKind.PROVED)]
    if figured is not None:
        likely &= (posterior.mode >= figured.tight.low) & (posterior.mode <= figured.tight.high)
        readings.insert(0, (figured, ClaimKind.CONDITIONAL))
    kinds = np.where(likely, np.int8(ClaimKind.LIKELY), np.int8(ClaimKind.OPEN))
    values = posterior.mode.copy()
    for bounds, kind in readings:
        pinned = (bounds.tight.low == bounds.tight.high) & ~bounds.given
        kinds[pinned] = kind
        values[pinned] = bounds.tight.low[pinned]
    kinds[assumed.given & (kinds != ClaimKind.PROVED)] = ClaimKind.OPEN
    if nothing is not None:
        kinds[nothing] = ClaimKind.OPEN
    depth, needs = np.zeros(kinds.shape, dtype=np.int32), np.zeros(kinds.shape, dtype=np.int8)
    nowhere, unknown = np.zeros(kinds.shape, dtype=np.bool_), np.full(kinds.shape, np.nan)
    held_back = np.full(kinds.shape, ClaimKind.OPEN, dtype=np.int8)
    because = np.full(kinds.shape, HeldBecause.NOTHING, dtype=np.int8)
    return BlockClaims(kinds, values, depth, needs, nowhere, unknown, held_back, because)
