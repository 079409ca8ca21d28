"""What a question comes to, area by area, and what follows for all of them: agreement with its error, and confidence."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.reconstruction.score import ALONE, BINS, EVERYONE, GROUPS, AreaScore

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.96)
"""Confidences from which records are counted as claimed."""

BANDS = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Where bands of confidence for calibration begin."""

LEAN = 5
"""So many keys weigh what was seen of a band as much as what is known of the band below."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Scores of some areas.

    - `exact`, `near`: Records found: areas × (all seeds, then without each) × groups.
    - `people`: How many true records there are: areas × groups.
    - `drawn`, `outside`: Records that one world finds, and how far its counts are outside of their windows: areas.
    - `claims`, `right`, `tried`, `again`: By the share of worlds, in bands, over all areas.
    """

    exact: NDArray[np.int64]
    near: NDArray[np.int64]
    people: NDArray[np.int64]
    drawn: NDArray[np.float64]
    outside: NDArray[np.float64]
    claims: NDArray[np.int64]
    right: NDArray[np.int64]
    tried: NDArray[np.int64]
    again: NDArray[np.float64]

    @classmethod
    def of(cls, scores: Sequence[AreaScore], people: NDArray[np.int64], outside: Sequence[float]) -> Tally:
        """Collect the scores of some areas."""
        return cls(
            np.stack([one.exact for one in scores]),
            np.stack([one.near for one in scores]),
            people,
            np.array([one.drawn for one in scores]),
            np.array(outside, dtype=np.float64),
            np.sum([one.claims for one in scores], axis=0),
            np.sum([one.right for one in scores], axis=0),
            np.sum([one.tried for one in scores], axis=0),
            np.sum([one.again for one in scores], axis=0),
        )

    @classmethod
    def joined(cls, parts: Sequence[Tally]) -> Tally:
        """Put the tallies of different areas together."""
        rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__[:5]}
        sums = {name: np.sum([getattr(part, name) for part in parts], axis=0) for name in cls.__slots__[5:]}
        return cls(**rows, **sums)

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        half = path.with_suffix(f".{uuid.uuid4().hex}.half.npz")  # two workers may be at the same block
        np.savez(half, **{name: getattr(self, name) for name in self.__slots__})
        half.replace(path)

    @classmethod
    def load(cls, path: Path) -> Tally:
        """Read what `save` wrote."""
        with np.load(path) as told:
            return cls(**{name: told[name] for name in cls.__slots__})

    def confidence(self) -> NDArray[np.float64]:
        """Return the confidence in keys, by the share of worlds that hold them, in bands.

        It is the share of another seed's worlds that hold a key which the worlds of the other seeds hold so often: no truth
        is needed for it. A band of few keys leans on the one below, and no confidence is above the band itself.
        """
        found, weights = [], []
        known = None
        for band in range(BINS):
            if self.tried[band]:
                lean = 0 if known is None else LEAN
                share = (self.again[band] + lean * (known or 0.0)) / (self.tried[band] + lean)
                known = min(float(share), (band + 1) / BINS)
            found.append(known if known is not None else (band + 0.5) / BINS)
            weights.append(float(self.tried[band]) or 1e-9)
        return _rising(found, weights)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        whole = int(self.people[:, EVERYONE].sum())
        sure = self.confidence()
        return {
            "agreement": {name: self._share(self.exact, at) for at, name in enumerate(GROUPS)},
            "within_one_year": {name: self._share(self.near, at) for at, name in enumerate(GROUPS) if at != ALONE},
            "one_world": float(self.drawn.sum() / max(1, whole)),
            "steps_outside": float(self.outside.mean()),
            "confidence": [self._claimed(sure >= threshold, threshold, whole) for threshold in THRESHOLDS],
            "calibration": [band for low in BANDS if (band := self._band(sure, low)) is not None],
        }

    def _share(self, hits: NDArray[np.int64], group: int) -> dict[str, Any] | None:
        """Return the share of a group that was found, and its standard error; None for a group of nobody."""
        share, error = ratio(hits[:, :, group], self.people[:, group])
        return None if share is None else {"share": share, "standard_error": error}

    def _claimed(self, which: NDArray[np.bool_], threshold: float, whole: int) -> dict[str, Any]:
        claims, right = int(self.claims[which].sum()), int(self.right[which].sum())
        return {
            "at_least": threshold,
            "claims": claims,
            "precision": right / claims if claims else None,
            "recall": right / max(1, whole),
        }

    def _band(self, sure: NDArray[np.float64], low: float) -> dict[str, Any] | None:
        which = (sure >= low) & ((sure < low + 0.2) | (low == BANDS[-1]))
        claims = int(self.claims[which].sum())
        if not claims:
            return None
        return {
            "from": low,
            "to": round(low + 0.2, 1),
            "claims": claims,
            "stated": float((self.claims * sure)[which].sum() / claims),
            "right": float(self.right[which].sum() / claims),
        }


def _rising(found: Sequence[float], weights: Sequence[float]) -> NDArray[np.float64]:
    """Return the closest numbers that never fall: neighbours that do are averaged."""
    kept: list[tuple[float, float, int]] = []
    for value, weight in zip(found, weights, strict=True):
        own, of, length = value, weight, 1
        while kept and kept[-1][0] > own:
            before, much, many = kept.pop()
            own, of, length = (before * much + own * of) / (much + of), much + of, many + length
        kept.append((own, of, length))
    return np.repeat([one for one, _, _ in kept], [length for _, _, length in kept])


def ratio(hits: NDArray[np.int64], people: NDArray[np.int64]) -> tuple[float | None, float | None]:
    """Return hits to people over all areas, and its standard error over areas and seeds."""
    whole = people.sum()
    if not whole:
        return None, None
    share = hits[:, 0].sum() / whole
    variance, areas, seeds = 0.0, len(people), hits.shape[1] - 1
    if areas > 1:
        off = hits[:, 0] - share * people
        variance += float((off**2).sum()) * areas / (areas - 1) / float(whole) ** 2
    if seeds > 1:  # the jackknife: what leaving out one seed changes
        without = hits[:, 1:].sum(axis=0) / whole
        variance += (seeds - 1) / seeds * float(((without - without.mean()) ** 2).sum())
    return float(share), variance**0.5 if areas > 1 or seeds > 1 else None


def gain(one: Tally, other: Tally) -> dict[str, Any]:
    """Return how much more one guess finds than another, in the same areas, with the error of the difference."""
    found: dict[str, Any] = {}
    for at, name in enumerate(GROUPS):
        share, error = ratio(one.exact[:, :, at] - other.exact[:, :, at], one.people[:, at])
        found[name] = None if share is None else {"share": share, "standard_error": error}
    return found
