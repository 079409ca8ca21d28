"""START HERE: publish a table in several ways, infer what can be inferred from each, and judge both by the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits import Model
from unround.comparison.attack import Attacker
from unround.comparison.material import Material
from unround.comparison.measure import Cost, Measures, added_up, cost, distances, mean_change, measure
from unround.comparison.practice import Practice
from unround.errors import InputError
from unround.machine import threads
from unround.mechanisms import HIDDEN, Unpublished
from unround.mechanisms.base import IntArray
from unround.options import THRESHOLD
from unround.prior import Prior, PriorFit
from unround.release import SUPPRESSED, Counts
from unround.shown import Shown

Progress = Callable[[str, int, int], None]
Measured = tuple[dict[str, float], NDArray[np.float64]]
"""The numbers of one release, and how often each signed distance occurred."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One practice, over all seeds."""

    practice: Practice
    measures: Measures
    cost: Cost
    prior: str
    cut: float | None
    mean_change: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: means over the seeds, and their standard errors."""
        return {
            "name": self.practice.name,
            **self.measures.means(),
            **self.cost.to_json(),
            "expected": self._expected(),
            "mean_change": self.mean_change,
            "sentence": self.practice.sentence,
            "prior": self.prior,
            "left_out_of_account": self.cut,
            "standard_error": self.measures.standard_errors(),
            "distances": self.measures.distances(),
        }

    def _expected(self) -> dict[str, float] | None:
        """Return what the mechanism promises of large counts, where that can be told in closed form."""
        promised = distances(self.practice.how)
        if promised is None:
            return None
        return {"mean_error": promised.mean(), "rmse": promised.rmse(), "within_4": promised.within(4)}


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """Several practices side by side."""

    material: Material
    compared: tuple[Compared, ...]
    seed: int
    seeds: int
    threshold: float
    notes: tuple[str, ...] = field(default=())
    designs: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        errors, risks = self.material.judged()
        rows = [practice.to_json() for practice in self.compared]
        return {
            "source": self.material.source,
            "areas": len(self.material.true),
            "cells": int(errors.sum()) * len(self.material.true),
            "cells_to_infer": int(risks.sum()) * len(self.material.true),
            "sums": len(self.material.equations),
            "levels": self.material.levels,
            "seed": self.seed,
            "seeds": self.seeds,
            "threshold": self.threshold,
            "mechanisms": [row | {"efficient": not any(_beats(other, row) for other in rows)} for row in rows],
            "designs": self.designs,
            "notes": list(self.notes),
        }


SLIGHTLY = 0.01  # numbers that differ by no larger share are as good as each other: risks are measured on a few draws


def _beats(better: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a way is better than another in error, risk or proofs, and as good in the others of these."""
    pairs = [(better[name], other[name]) for name in ("truth_probability", "proved")]
    pairs.append(tuple(row["mean_error"] if row["mean_change"] is None else row["mean_change"] for row in (better, other)))
    return all(a <= b * (1 + SLIGHTLY) for a, b in pairs) and any(a < b * (1 - SLIGHTLY) for a, b in pairs)


def compare(
    material: Material,
    practices: Sequence[Practice],
    seed: int = 1,
    seeds: int = 5,
    threshold: float = THRESHOLD,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Publish, infer, and judge; arguments are documented with `unround.compare`.

    A practice's draws do not depend on what it is compared with. Whoever infers fits a prior to each release.
    """
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more, not {seeds}.")
    done, compared = 0, []
    for way in practices:
        # 1. What all releases of this practice share.
        model = material.model(way.assumed)

        def publish(number: int, way: Practice = way) -> IntArray:
            return way.publish(material.true.astype(np.int64), _stream(seed, number, way.name))

        def judge(published: IntArray, way: Practice = way, model: Model = model) -> tuple[Measured, Attacker]:
            # 3. Infer, with a prior fitted to this release: what that gets wrong differs from release to release too.
            attacker = Attacker(model, fitted_prior(material, way, published), threshold, way.mechanisms, way.keys)
            inferred = attacker.infer(as_counts(published), material.true, as_counts(way.seen(published)))
            # 4. Judge both by the truth.
            return measure(material, published, inferred), attacker

        # 2. Publish. Without chance, all releases are the same, and one is enough.
        releases = [publish(number) for number in range(seeds)]
        different = releases[:1] if all(np.array_equal(releases[0], other) for other in releases) else releases
        measures = Measures()
        with threads() as pool:
            attackers = []
            for measured, attacker in pool.map(judge, different):
                progress("Comparing", done, len(practices) * seeds)
                measures.add(measured)
                attackers.append(attacker)
                done += 1
        for _ in range(seeds - len(different)):
            measures.again()
            done += 1
        price = cost(material, way.how, way.mechanisms)
        last, change = attackers[-1], mean_change(way.how, material)
        compared.append(Compared(way, measures, price, last.prior.name, last.cut, change))
    progress("Comparing", done, len(practices) * seeds)
    return Comparison(material, tuple(compared), seed, seeds, threshold, material.notes)


def fitted_prior(material: Material, way: Practice, published: IntArray) -> Prior:
    """Fit a prior to a release; totals that are not published are added up for it."""
    alone = tuple(way.how if isinstance(how, Unpublished) else how for how in way.mechanisms)
    fit = PriorFit(len(alone))
    fit.add(as_counts(added_up(published, material)))
    return fit.finish(material.model(alone).compiled, alone)


def _stream(seed: int, number: int, name: str) -> np.random.Generator:
    """Return the random numbers of one release: its own, whatever it is compared with."""
    return np.random.default_rng(np.random.SeedSequence([seed, number, *name.encode()]))


def as_counts(published: IntArray) -> Counts:
    """Return published counts as a release has them."""
    return np.ascontiguousarray(np.where(published == HIDDEN, SUPPRESSED, published), dtype=np.int32)
