"""Explain one cell of an audit: what was published, which sums it stands in, the argument, and its histogram."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unround.audits import AuditFolder, Inferred, Model
from unround.audits.claims import REASONS, Proved, proofs, silent_in
from unround.audits.contradictions import Contradiction
from unround.audits.find import find_area, find_cell
from unround.audits.histogram import histogram
from unround.audits.inferred import KINDS
from unround.batch.room import MOST_VALUES
from unround.batch.types import OPEN
from unround.explanation.family import FamilyEvidence, names_in, others_of
from unround.infer import infer
from unround.proofs import proof_in_words
from unround.release import ABSENT, WHY_ABSENT, Counts, adjustable

FARTHEST = 6
"""How many sums away from the cell the growth of its probability is followed."""


@dataclass(frozen=True, slots=True)
class SumShown:
    """A sum that the cell stands in: its names, what was published, and by how much that fails to add up."""

    sum: str
    total: int | None
    parts: tuple[int | None, ...]
    residual: int | None
    used: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "sum": self.sum,
            "total": self.total,
            "parts": list(self.parts),
            "residual": self.residual,
            "used": self.used,
        }


@dataclass(frozen=True)
class Explanation:
    """Everything that an audit knows about one cell.

    Parameters
    ----------
    area, cell : dict
        Where it is: its area, and its place on the other axes, with labels.
    published : int or None
        What was published; `why_absent` says why nothing was.
    again : tuple of int
        What other files show of the same count.
    same_as : str or None
        The key of the column that shows the same count first, where this one shows it again: claims are made there.
    low, high : int
        The possible range, under the audit's assumptions.
    kind : str
        "given", "proved", "conditional", "likely" or "open".
    value, probability, mean, distribution
        The likeliest count and what is known of the others.
    depth : int
        How many sums follow one upon the other in the argument; None where no number of them explains it without the prior.
    sums : tuple of SumShown
        The sums it stands in.
    growth : tuple
        The probability of the likeliest count under a flat prior: from the cell alone, then with the sums next to it, then
        with those next to these, and so on. A fitted prior is one of the whole area; parts of it mean nothing.
    alone : float or None
        The probability of the likeliest count from the published value and what the column is like elsewhere, without any
        sum; None under a flat prior.
    others : FamilyEvidence or None
        The areas that take part in what is said, where any do: those that it is made of, or that it makes up with others.
    own : float or None
        The probability of the likeliest count if nothing were known of these areas.
    proof : dict or None
        The certificate.
    argument : str or None
        The proof in words, with the names that people know.
    because : tuple of str
        What a conditional claim is conditional on.
    contradictions : tuple of str
        What cannot be, in the same area.
    assumptions : tuple of str
        What the claim rests on.
    """

    area: dict[str, Any]
    cell: dict[str, Any]
    key: str
    mechanism: str
    published: int | None
    why_absent: str | None
    again: tuple[int, ...]
    same_as: str | None
    low: int
    high: int | None
    kind: str
    value: int | None
    probability: float | None
    mean: float | None
    distribution: tuple[tuple[int, float], ...]
    depth: int | None
    sums: tuple[SumShown, ...]
    growth: tuple[float, ...]
    alone: float | None
    others: FamilyEvidence | None
    own: float | None
    proof: dict[str, Any] | None
    argument: str | None
    because: tuple[str, ...]
    contradictions: tuple[str, ...]
    assumptions: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            **self.area,
            **self.cell,
            "key": self.key,
            "mechanism": self.mechanism,
            "published": self.published,
            "why_absent": self.why_absent,
            "published_again": list(self.again),
            "same_as": self.same_as,
            "low": self.low,
            "high": self.high,
            "kind": self.kind,
            "value": self.value,
            "probability": self.probability,
            "mean": self.mean,
            "distribution": [list(pair) for pair in self.distribution],
            "depth": self.depth,
            "sums": [one.to_json() for one in self.sums],
            "growth": list(self.growth),
            "alone": self.alone,
            "other_areas": None if self.others is None else self.others.to_json() | {"without_them": self.own},
            "proof": self.proof,
            "argument": self.argument,
            "because": list(self.because),
            "contradictions": list(self.contradictions),
            "assumptions": list(self.assumptions),
        }


def explain(folder: AuditFolder | Path | str, area: str, characteristic: str, sex: str | None = None) -> Explanation:
    """Explain one cell of an audit.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder that it wrote.
    area : str
        An area's code (or the end of it) or name.
    characteristic : str
        Its ID, its key, or its name.
    sex : str, optional
        For tables by sex: "total" (the default), "men" or "women".

    Raises
    ------
    InputError
        If there is no such area or cell, or more than one.
    """
    if not isinstance(folder, AuditFolder):
        folder = AuditFolder.open(Path(folder))
    return explain_at(folder, find_area(folder, area), find_cell(folder, characteristic, sex))


def explain_at(folder: AuditFolder, row: int, cell: int) -> Explanation:
    """Explain one cell of an audit by the place of its area, and its own place among the cells."""
    return explain_in(folder, look_at(folder, row), cell)


@dataclass(frozen=True, slots=True, eq=False)
class AreaSeen:
    """One area, inferred anew from what the audit kept: where it is, what follows, and the certificates.

    Where it is linked with other areas these are there as well, after it; `rows` are their places in the audit.
    """

    here: dict[str, Any]
    inferred: Inferred
    written: list[Proved]
    rows: tuple[int, ...]


def look_at(folder: AuditFolder, row: int) -> AreaSeen:
    """Infer everything about one area again, as the audit did: a few thousandths of a second for some hundred counts.

    Parameters
    ----------
    folder : AuditFolder
        The audit.
    row : int
        The area's place in it; `find_area` tells.
    """
    nested = folder.nested
    if nested is None:  # as below; but of one row polars would take longer than the inference
        one = folder.areas.row(row, named=True)
        alone = folder.auditor.infer(folder.counts(row)[None, :], np.array([one.get("adjustable") is not False]), keep=0)
        return AreaSeen(one, alone, proofs(folder.model, alone), (row,))
    rows = nested.family(row)  # what areas say about each other depends on all of them
    nested = nested.reordered(rows)
    here = folder.areas[rows]
    inferred = folder.auditor.infer(folder.counts_of(rows), adjustable(here), nested if nested.any else None, keep=0)
    # Certificates come before anything is shown: what they rest on may turn "proved" into "conditional".
    written = proofs(folder.model, inferred, here[folder.told["areas"][0]].to_list(), only=0)
    return AreaSeen(here.row(0, named=True), inferred, written, tuple(rows.tolist()))


# -- one cell ---------------------------------------------------------------------------------------------------------


def explain_in(folder: AuditFolder, seen: AreaSeen, cell: int) -> Explanation:
    """Explain one cell of an area that was looked at; `find_cell` tells its place."""
    model, here, inferred, written = folder.model, seen.here, seen.inferred, seen.written
    counts = inferred.counts[0]
    column, published = model.columns[cell], int(counts[cell])
    shown = [_shown(model, counts, e, bool(inferred.active[0, e])) for e in model.touching[cell]]
    proof = next((one for one in written if one.cell == cell), None)
    kind, given = kind_of(model, inferred, cell), _is_given(model, inferred, cell)
    low, high = int(inferred.reach.low[0, cell]), int(inferred.reach.high[0, cell])
    others = others_of(folder, inferred, seen.rows, cell)
    distribution, own = _known(folder, inferred, cell, others)
    names = (*folder.told["areas"], "region_name", "level")
    return Explanation(
        area={name: here[name] for name in names if here.get(name) not in (None, "")},
        cell=dict(zip(folder.told["axes"], column.codes, strict=True)) | {"label": column.label, "block": column.block},
        key=column.key,
        mechanism=model.mechanisms[cell].sentence,
        published=published if published > ABSENT else None,
        why_absent=WHY_ABSENT.get(published) if published <= ABSENT else None,
        again=tuple(
            int(counts[c])
            for c, (first, e) in model.repeated.items()
            if first == cell and inferred.active[0, e] and counts[c] > ABSENT
        ),
        same_as=_same_as(model, inferred, cell),
        low=low,
        high=None if high >= OPEN else high,
        kind=kind,
        value=int(inferred.value[0, cell]) if distribution else None,
        probability=1.0 if proof else float(inferred.posterior.probability[0, cell]) if distribution else None,
        mean=float(inferred.posterior.mean[0, cell]) if distribution else None,
        distribution=distribution,
        depth=int(inferred.depth[0, cell]) if inferred.depth[0, cell] > 0 else None,
        sums=tuple(shown),
        growth=_growth(folder, inferred, cell) if distribution and not proof and not given else (),
        alone=_alone(folder, inferred, cell) if distribution and not given else None,
        others=others,
        own=own,
        proof=proof.proof.to_json() if proof else None,
        argument=proof_in_words(proof.system, proof.proof, names_in(folder, proof, seen.rows)) if proof else None,
        because=tuple(text for bit, text in enumerate(REASONS) if proof and proof.because >> bit & 1),
        contradictions=tuple(one.text for one in inferred.contradictions if one.area == 0 and _concerns(model, one, cell)),
        assumptions=_assumptions(folder, inferred, cell, kind, others),
    )


def _known(
    folder: AuditFolder, inferred: Inferred, cell: int, others: FamilyEvidence | None
) -> tuple[tuple[tuple[int, float], ...], float | None]:
    """Return how likely each count is; and how likely the claimed one would be without other areas, where these count."""
    everything = _within(folder.model, inferred, cell, len(folder.model.equations))
    if inferred.singly[0, cell]:
        return _within_bounds(folder, inferred, cell), None
    alone = _distribution(folder, inferred, cell, everything, fitted=True)
    if inferred.linked is None:
        return alone, None
    own = dict(alone).get(int(inferred.value[0, cell]), 0.0) if others is not None and alone else None
    if cell not in inferred.linked.kept:
        return (), own
    low, chances = inferred.linked.kept[cell]
    return tuple((low + k, p) for k, p in enumerate(chances.tolist()) if p > 0), own


def _within_bounds(folder: AuditFolder, inferred: Inferred, cell: int) -> tuple[tuple[int, float], ...]:
    """Return the distribution of a cell that was judged by itself: what was published, and what the column is like."""
    own, windows = folder.prior.own, inferred.windows
    low, high, start = (int(array[0, cell]) for array in (inferred.reach.low, inferred.reach.high, windows.start))
    if own is None or high >= OPEN or high - low >= MOST_VALUES:
        return ()
    counts = np.arange(low, high + 1)
    weights = own.weights[own.offset[cell] + np.minimum(counts, own.size[cell] - 1)]
    if start >= 0:
        weights = weights * windows.weights[start + counts - int(windows.low[0, cell])]
    whole = float(weights.sum())
    return tuple((int(n), float(w) / whole) for n, w in zip(counts, weights, strict=True) if w > 0) if whole > 0 else ()


def _same_as(model: Model, inferred: Inferred, cell: int) -> str | None:
    """Return the key of the column that shows the same count first, in another file."""
    first, e = model.repeated.get(cell, (cell, 0))
    return model.columns[first].key if first != cell and inferred.active[0, e] else None


def _concerns(model: Model, one: Contradiction, cell: int) -> bool:
    """Whether a contradiction is about counts that this cell is connected with."""
    members = {*one.cells, *(c for e in one.sums for c in model.members(e))}
    return not members or any(model.piece[c] == model.piece[cell] for c in members)


def _alone(folder: AuditFolder, inferred: Inferred, cell: int) -> float | None:
    """Return how likely the claimed count is from its published value and the column's own distribution, without sums."""
    own = folder.prior.own
    low, start = int(inferred.windows.low[0, cell]), int(inferred.windows.start[0, cell])
    high = int(inferred.windows.high[0, cell])
    if own is None or start < 0:
        return None
    counts = np.arange(low, high + 1)
    weights = inferred.windows.weights[start : start + counts.size]
    weights = weights * own.weights[own.offset[cell] + np.minimum(counts, own.size[cell] - 1)]
    value = int(inferred.value[0, cell])
    return float(weights[value - low] / weights.sum()) if low <= value <= high else 0.0


def kind_of(model: Model, inferred: Inferred, cell: int) -> str:
    """Name what is known of a cell of the first area: "given", "proved", "conditional", "likely" or "open"."""
    kind = KINDS[inferred.kinds[0, cell]]
    return "given" if kind == "open" and _is_given(model, inferred, cell) else kind


def _is_given(model: Model, inferred: Inferred, cell: int) -> bool:
    return bool(model.exact[cell] and inferred.counts[0, cell] > ABSENT and inferred.slack[0, cell] == 0)


def _shown(model: Model, counts: Counts, e: int, used: bool) -> SumShown:
    total, parts = model.equations[e]
    numbers = [int(counts[c]) if counts[c] > ABSENT else None for c in (total, *parts)]
    there = [number for number in numbers if number is not None]
    residual = there[0] - sum(there[1:]) if len(there) == len(numbers) else None
    return SumShown(model.sum_in_words(e), numbers[0], tuple(numbers[1:]), residual, used)


def _growth(folder: AuditFolder, inferred: Inferred, cell: int) -> tuple[float, ...]:
    """Work out the probability of the claimed count with sums from nearer and farther, under a flat prior."""
    value, steps, used = int(inferred.value[0, cell]), list[float](), list[int]()
    everything = _within(folder.model, inferred, cell, len(folder.model.equations))
    for distance in (*range(FARTHEST + 1), len(folder.model.equations)):
        wider = _within(folder.model, inferred, cell, distance)
        if not distance or wider != used:
            steps.append(dict(_distribution(folder, inferred, cell, wider, fitted=False)).get(value, 0.0))
        used = wider
        if used == everything:
            break
    return tuple(steps)


def _within(model: Model, inferred: Inferred, cell: int, distance: int) -> list[int]:
    """Return the sums that carry probabilities, up to so many away from a cell."""
    usable = frozenset(range(len(model.equations))).difference(model.compiled.unused)
    width = inferred.reach.high[0].astype(np.int64) - inferred.reach.low[0]
    cells, sums = {cell}, set[int]()
    edge = {cell}
    for _ in range(distance):
        near = {e for c in edge if not model.exact[c] or c == cell for e in model.touching[c]} & usable - sums
        near = {e for e in near if inferred.active[0, e] and max(width[list(model.members(e))]) < MOST_VALUES}
        if not near:
            break
        sums |= near
        edge = {c for e in near for c in model.members(e)} - cells
        cells |= edge
    return sorted(sums)


def _distribution(
    folder: AuditFolder, inferred: Inferred, cell: int, equations: list[int], *, fitted: bool
) -> tuple[tuple[int, float], ...]:
    """Return the distribution of one cell from some sums, worked out by the engine for single systems.

    That engine knows nothing of shared random numbers; where there are any, the audit's own is asked.
    """
    if folder.auditor.sharing is not None:
        return histogram(folder.auditor, inferred, cell, equations, fitted=fitted)
    model, counts = folder.model, inferred.counts[0]
    slack = {int(c): int(inferred.slack[0, c]) for c in np.flatnonzero(inferred.slack[0])}
    system = model.system(counts, equations, slack, silent_in(inferred, 0), also=(cell,))
    prior = {}
    if fitted and folder.prior.table is not None:
        for c in (model.index[one.name] for one in system.cells):
            low, high = int(inferred.reach.low[0, c]), int(inferred.reach.high[0, c])
            if low < high < OPEN:
                prior[model.columns[c].key] = folder.prior.weights_for(c, low, high)
    answer = infer(system, prior=prior or None, top=0, count=False).answer
    marginal = answer.marginals[system.index[model.columns[cell].key]] if answer and answer.marginals else None
    return tuple((marginal[0] + i, float(p)) for i, p in enumerate(marginal[1]) if p > 0) if marginal is not None else ()


def _assumptions(
    folder: AuditFolder, inferred: Inferred, cell: int, kind: str, others: FamilyEvidence | None
) -> tuple[str, ...]:
    """Say what the claim rests on, a sentence each."""
    model = folder.model
    said = ["The sums hold: the parts of each total make up all of it."]
    if others is not None:
        said.append("So do those of areas: the areas that lie in another are together all of it.")
    if kind != "proved" and model.on_adjusted[cell] and not inferred.slack[0].any() and inferred.documented_slack[0].any():
        said.append("The population was published as it is, although the agency may have adjusted it by up to 5 here.")
    if kind not in ("proved", "conditional"):
        said += [model.mechanisms[cell].sentence, f"The prior is {folder.summary['prior_in_words']}."]
        how = model.columns[cell].block, model.mechanisms[cell].name
        said += [one.sentence for one in folder.dependence.used if (one.table, one.mechanism) == how]
    return tuple(said)
