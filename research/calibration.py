"""How often claims are right, by count and stated probability: an audit's and all cells, on worlds of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.worlds import WORLDS, World, world
from unround.audits.block import Auditor
from unround.audits.claims import ClaimKind, decide
from unround.audits.model import Model, block_size
from unround.audits.selfcheck import choose_and_check
from unround.bounds.tighten import tighten
from unround.comparison.attack import Narrower
from unround.comparison.material import Material, simulated
from unround.comparison.practice import TODAY, practice
from unround.comparison.run import as_counts
from unround.engines.forest import posteriors
from unround.errors import InputError
from unround.evidence.block import BlockPosterior
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.output import scratch_folder
from unround.prior import Prior, PriorFit
from unround.protection.table import parse_protection
from unround.release import ABSENT, Counts, Release, adjustable
from unround.score.truth import LARGE, ClaimScore, Truth, sparse_totals
from unround.tables.spool import survey

BINS = 20  # bins of stated probability, all of the same width

PRIORS = ("flat", "fitted")

LEAST = 1e-12  # A count that was given less probability than this, and was true after all, costs as much as this does

ANY = float(np.nextafter(0, 1))
"""The least threshold there is: every likeliest count is judged, not only those that an audit would report."""

ENOUGH = 200  # with fewer claims a group's calibration error is mostly chance

SIZES = ((0, "published as 0"), (1, "published as 1 to 14"), (15, "published as 15 to 49"), (50, "published as 50 or more"))
"""Groups by what was published: whoever makes a claim knows that, and does not know the true count."""

Progress = Callable[[str, int, int], None]


@dataclass
class Reliability:
    """Claims of one group under one prior: how often they were right, beside what they stated.

    `bins` holds, for each bin of stated probability, how many claims there are, the sum of what they state, how many are
    right, and the sum of p(1 − p).
    """

    bins: NDArray[np.float64] = field(default_factory=lambda: np.zeros((BINS, 4)))
    loss: float = 0.0
    cells: int = 0

    def add(self, stated: NDArray[np.float64], right: BoolArray, truth: NDArray[np.float64]) -> None:
        """Take in the likeliest counts of some cells, and the probabilities of the true ones."""
        which = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
        for column, weights in enumerate((None, stated, right, stated * (1 - stated))):
            self.bins[:, column] += np.bincount(which, weights=weights, minlength=BINS)
        self.loss -= float(np.log(np.maximum(truth, LEAST)).sum())
        self.cells += stated.size

    @property
    def error(self) -> float:
        """The expected calibration error: how far, on average, what is stated lies from how often it is right."""
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / max(self.cells, 1))

    @property
    def chance(self) -> float:
        """The error that so many claims would have by chance if all of them were calibrated.

        A sum of many independent coins lies, on average, √(2/π) standard deviations from its mean.
        """
        return float(np.sqrt(2 / np.pi * self.bins[:, 3]).sum() / max(self.cells, 1))

    @property
    def bias(self) -> float:
        """How often claims are right, less what they state: negative where they are overconfident."""
        return float((self.bins[:, 2] - self.bins[:, 1]).sum() / max(self.cells, 1))

    @property
    def log_loss(self) -> float:
        """The mean of −log p(truth): a proper score, the smaller the better."""
        return self.loss / max(self.cells, 1)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "cells": self.cells,
            "calibration_error": self.error,
            "by_chance": self.chance,
            "bias": self.bias,
            "log_loss": self.log_loss,
            "bins": [
                {"from": k / BINS, "to": (k + 1) / BINS, "claims": int(n), "stated": stated / n, "right": right / n}
                for k, (n, stated, right, _) in enumerate(self.bins.tolist())
                if n
            ],
        }


@dataclass
class Calibration:
    """How often claims about one table are right.

    - `claims`: The likely claims that an audit lists, by count claimed and probability stated.
    - `groups`: The reliability of the likeliest count of every cell, by group and prior.
    """

    source: str  # where the table is from, for people
    world: str = ""  # the world that it was drawn from, and what is special about that; "" for a release
    sentence: str = ""
    areas: int = 0  # how many areas, how they were published, and the fitted prior in words
    mechanism: str = ""
    fitted: str = ""
    claims: ClaimScore = field(default_factory=ClaimScore)
    groups: dict[str, dict[str, Reliability]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was left out

    def add(self, model: Model, counts: Counts, true: Counts, usable: BoolArray, found: dict[str, BlockPosterior]) -> None:
        """Score a block under each prior; only `usable` cells are judged."""
        for name, where in groups_of(model, counts):
            here = usable & where
            if not here.any():
                continue
            for prior, posterior in found.items():
                assert posterior.asked is not None
                own = self.groups.setdefault(name, {}).setdefault(prior, Reliability())
                own.add(posterior.probability[here], (posterior.mode == true)[here], posterior.asked[here])
        self.areas += len(counts)

    def trusted(self, name: str) -> str:
        """Say which prior to trust for a group: the one with the smaller loss, if that is more than a trifle."""
        own = self.groups[name]
        if any(one.cells < ENOUGH for one in own.values()):
            return "too few to say"
        flat, fitted = own["flat"].log_loss, own["fitted"].log_loss
        if abs(flat - fitted) < 0.005:
            return "either"
        return "fitted" if fitted < flat else "flat"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "world": self.world or None,
            "description": self.sentence or None,
            "source": self.source,
            "areas": self.areas,
            "mechanism": self.mechanism,
            "prior": self.fitted,
            "claims_by_value": self.claims.to_json(),
            "overstated": sum(row.overstated for row in self.claims.bands),
            "worst": None if (worst := self.claims.worst) is None else {"value": worst.value} | worst.to_json(),
            "groups": {
                name: {prior: own[prior].to_json() for prior in PRIORS} | {"trust": self.trusted(name)}
                for name, own in self.groups.items()
            },
            "notes": self.notes,
        }


def groups_of(model: Model, counts: Counts) -> Iterator[tuple[str, BoolArray]]:
    """Yield the groups that claims are judged in: all, by sex, by size, by the number of parts."""
    everything = np.ones(counts.shape, dtype=np.bool_)
    yield "all cells", everything
    sexes = [column.codes[-1] for column in model.columns]
    for sex in ("total", "men", "women"):
        chosen = np.array([one == sex for one in sexes])
        if chosen.any() and "men" in sexes:
            yield sex if sex != "total" else "both sexes", everything & chosen
    for k, (first, name) in enumerate(SIZES):
        below = counts < SIZES[k + 1][0] if k + 1 < len(SIZES) else everything
        above = counts >= first if k else (counts > ABSENT)
        yield name, above & below
    # Men and women are parts of every count that is split by sex: they are no reason to tell counts apart.
    split = {(node.cells[0], node.cells[1:]) for node in model.compiled.plan.nodes if node.is_pair}
    parts = np.zeros(len(model.columns), dtype=np.int64)
    for total, below_it in model.equations:
        if len(below_it) > 1 and (total, below_it) not in split:
            parts[total] = max(parts[total], len(below_it))
    yield "without parts of its own", everything & (parts == 0)
    yield f"totals of 2 to {LARGE - 1} parts", everything & (parts >= 2) & (parts < LARGE)
    yield f"totals of {LARGE} parts or more", everything & (parts >= LARGE)
    yield "totals of sparse sums", sparse_totals(model, counts)


def calibrate(material: Material, spec: str = TODAY, seed: int = 1, progress: Progress = lambda *_: None) -> Calibration:
    """Publish a table whose truth is known, and see how often claims about it are right."""
    chosen = practice(spec, material)
    counts = as_counts(chosen.publish(material.true.astype(np.int64), np.random.default_rng(seed)))
    # What an audit is told of counts rounded by keys is how each was rounded, looked at by itself.
    model = material.model(chosen.mechanisms if parse_protection(spec).keys else chosen.assumed)
    fit = PriorFit(len(model.columns))
    fit.add(counts)
    found, auditor, priors = _begun(model, fit, material.source, chosen.name)
    found.notes += material.notes
    step = block_size(len(model.columns))
    for first in range(0, len(counts), step):
        progress("Calibrating", first, len(counts))
        some = slice(first, first + step)
        _score(found, auditor, priors, counts[some], np.zeros(len(counts[some]), dtype=np.bool_), material.true[some])
    progress("Calibrating", len(counts), len(counts))
    return found


def calibrate_release(release: Release, truth: Release, progress: Progress = lambda *_: None) -> Calibration:
    """See how often claims about a release are right, beside its true table."""
    with scratch_folder("calibrate") as folder:
        spool, structure = survey(release, folder, progress)
        model = Model.of(structure)
        known = Truth.of(truth, model, release.areas, spool.areas, folder)
        fit = PriorFit(len(model.columns))
        for block in spool.blocks(4096):
            fit.add(model.counts_of(block.counts))
        named = ", ".join(dict.fromkeys(how.name for how in model.mechanisms))
        found, auditor, priors = _begun(model, fit, release.source, named)
        done = 0
        for block in spool.blocks(block_size(len(model.columns))):
            progress("Calibrating", done, spool.rows)
            counts = model.counts_of(block.counts)
            _score(
                found, auditor, priors, counts, adjustable(block.areas), known.of_areas(np.arange(done, done + len(counts)))
            )
            done += len(counts)
        progress("Calibrating", done, spool.rows)
    if not found.groups:
        raise InputError(
            f"none of the counts that could be inferred in {release.source} has a true count in {truth.source}."
        )
    return found


def _begun(model: Model, fit: PriorFit, source: str, mechanism: str) -> tuple[Calibration, Auditor, dict[str, Prior]]:
    """Choose the fitted prior, as an audit does, and begin with an empty score."""
    fitted, _ = choose_and_check(model, fit.finish(model.compiled, model.mechanisms), fit.sample.counts)
    found = Calibration(source, mechanism=mechanism, fitted=fitted.sentence)
    return found, Auditor(model, fitted), {"flat": Prior.flat(), "fitted": fitted}


def _score(
    found: Calibration, auditor: Auditor, priors: dict[str, Prior], counts: Counts, loose: BoolArray, true: Counts
) -> None:
    """Score a block where the truth is known: likeliest counts under each prior, and what an audit would claim."""
    model = auditor.model
    stated = auditor.documented(counts, loose)
    active, windows, tight = stated.active, stated.bounds.windows, stated.bounds.tight
    asked = np.where(true > ABSENT, true, 0).astype(np.int32)
    if not windows.certain.all():
        tight = tighten(model.compiled, windows, active)
    if not windows.certain.all() and (counts > ABSENT).all() and active.all():
        narrower = Narrower(model)
        each = {name: narrower.posteriors(counts, prior, asked) for name, prior in priors.items()}
    else:
        each = {
            name: posteriors(
                EvidenceBlock(model.compiled, windows, tight, prior.weights(counts, tight.low, tight.high), active), asked
            )
            for name, prior in priors.items()
        }
    given = np.broadcast_to(model.exact, counts.shape)
    bounds = replace(stated.bounds, tight=tight, given=given)
    usable = np.asarray(true > ABSENT)
    for posterior in each.values():
        usable &= decide(bounds, bounds, posterior, posterior.probability, ANY).of_kind(ClaimKind.LIKELY)
    found.add(model, counts, true, usable, each)
    found.claims.add(auditor.infer(counts, loose), true)


CENSUS = "census"  # the census that `unround simulate` draws, which is a world too

SENTENCES = {
    CENSUS: "The census that `unround simulate` draws, whose shares vary between areas as a simple prior would have them.",
    **{name: one.sentence for name, one in WORLDS.items()},
}
"""All worlds that can be calibrated on, with what is special about each."""

SHORT = (CENSUS, "unlike-evenness", "one-even-part", "rare-languages", "households", "neighbourhoods", "couples")
"""What is calibrated on unless somebody chooses."""

ALL = "all"

AREAS = 2000  # how many areas are drawn of every world, unless somebody says


@dataclass(frozen=True)
class Calibrations:
    """How often claims are right in one table or several worlds, the worst first.

    A world is the worse, the more some band of stated probability overstates beyond chance; those with too few claims to
    judge any band come last.
    """

    worlds: tuple[Calibration, ...]

    @classmethod
    def of(cls, found: Sequence[Calibration]) -> Calibrations:
        """Put the worst first."""
        return cls(tuple(sorted(found, key=_badness, reverse=True)))

    @property
    def worst(self) -> Calibration:
        """The world in which claims overstate most."""
        return self.worlds[0]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the worst world, and under `worlds` all of them."""
        return self.worst.to_json() | {"worlds": [one.to_json() for one in self.worlds]}


def _badness(found: Calibration) -> tuple[bool, bool, float]:
    judged = found.claims.worst
    worst = judged or found.claims.whole
    return judged is not None, worst is not None and worst.overstated, worst.gap if worst is not None else -1.0


def from_world(world: World, areas: int, seed: int, *, rounded_total: bool = False) -> Material:
    """Draw a world; its total is published exactly today, unless it is to be rounded as all other counts are."""
    return Material(
        source=f"the world {world.name} (seed {seed})",
        true=world.counts(areas, seed),
        columns=world.columns,
        equations=world.equations,
        exact=frozenset() if rounded_total else frozenset({0}),
    )


def material_of_world(
    name: str, areas: int | None = None, seed: int = 11, rows: str | None = None, *, rounded_total: bool = False
) -> Material:
    """Draw a world, or the simulated census."""
    number = AREAS if areas is None else areas
    if name == CENSUS:
        return simulated(number, seed, rows or "age")
    if name not in WORLDS:
        raise InputError(f"there is no world {name!r}: choose from {', '.join(SENTENCES)}, or {ALL}.")
    return from_world(world(name), number, seed, rounded_total=rounded_total)


def calibrate_worlds(
    names: Sequence[str] | None = None,
    areas: int | None = None,
    seed: int = 11,
    spec: str = TODAY,
    rows: str | None = None,
    *,
    rounded_total: bool = False,
    progress: Progress = lambda *_: None,
) -> Calibrations:
    """Publish worlds whose truth is known, audit each, and see how often its claims are right."""
    chosen = SHORT if names is None else tuple(SENTENCES) if tuple(names) == (ALL,) else tuple(names)
    if not chosen:
        raise InputError(f"name at least one world: {', '.join(SENTENCES)}, or {ALL}.")
    if rows is not None and CENSUS not in chosen:
        raise InputError(f"rows are those of the simulated census: they go with the world {CENSUS}.")
    if rounded_total and chosen == (CENSUS,):
        raise InputError("the census always publishes its population exactly: choose another world to round the total.")
    found = []
    for name in chosen:

        def told(_: str, done: int, whole: int, name: str = name) -> None:
            progress(f"Calibrating on {name}", done, whole)

        material = material_of_world(name, areas, seed, rows, rounded_total=rounded_total)
        one = calibrate(material, spec, seed, told)
        one.world, one.sentence = name, SENTENCES[name]
        found.append(one)
    return Calibrations.of(found)
