"""Do probabilities hold on this release? Published counts are hidden, predicted from the rest, and compared.

This needs no truth. It finds a prior that does not suit a table: one that predicts zeros where there are none, or is surer
than it should be. It cannot see what rounding hides: priors that predict the published counts equally well may still
differ in how many true counts are 0, which is why claims go by the lowest of several.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import applicable_sums
from unround.audits.model import Model, block_size
from unround.audits.weigh import with_connected
from unround.bounds.tighten import tighten
from unround.engines.forest import marginals
from unround.evidence.block import Distributions, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Exact, Mechanism, Unpublished, Weighted
from unround.mechanisms.base import FloatArray
from unround.prior import VARIANTS, Prior
from unround.release import ABSENT, NOT_AVAILABLE, Counts

PREDICTIONS = 2400
"""Published counts that are hidden and predicted."""

MOST_ROUNDS = 8
"""Counts that are hidden in one area, one after the other."""

LARGEST = 1000
"""Larger counts are not predicted: their windows say nothing about the prior."""

WIDEST = 150
"""Hidden counts with more possible values are not predicted: sums say too little about them."""

FARTHEST = 64
"""How far from the true count a published one can be that is predicted."""

FEWEST = 60
"""Predictions below which a table gets no verdict."""

BINS = 10
"""Of predicted probability, all of the same width."""

SIZE_CLASSES = (0.25, 0.5, 0.75)
"""Where classes of areas by size end, as shares of the predictions."""

FEWEST_OF_SIZE = 15
"""Predictions of a column in a class of sizes below which they say nothing."""

WORST = 5
"""Columns that are named."""

SURE = 0.6
"""Predictions from this probability on must not overstate."""

HARMLESS = 0.04
"""By how much a prediction may be off, on average, whatever the standard error."""

HARMLESS_BY_SIZE = 0.01
"""By how much zeros may be off beyond chance, on average over columns and classes of areas by size."""

FEWER_ZEROS = 0.0015
"""By how much the log score of the prior with the fewest zeros may be better: beyond that, claims state too much."""

DOUBT = -1.5
"""The same in standard errors: below it there is doubt."""

BELIEVED, DISBELIEVED = 1.0, 4.0
"""Standard errors by which the best prior predicts better than one with fewer zeros: up to the first that one is believed,
from the second on the best instead, and between them each in part."""

PASSED, FAILED, TOO_FEW = "passed", "failed", "too few"


class Prediction(NamedTuple):
    """One hidden count.

    - `column`: Which column it is in.
    - `size`: How large its area is.
    - `stated`, `right`: How likely the likeliest published count was, and whether it was the one.
    - `zero`, `was_zero`: How likely a published 0 was, and whether there was one.
    - `logs`: The log probability of what was published, by prior.
    """

    column: int
    size: float
    stated: float
    right: bool
    zero: float
    was_zero: bool
    logs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TableCheck:
    """How predictions did in one table.

    - `table`: Its name.
    - `columns`: Its columns.
    - `cells`: Predictions.
    - `rms_z`: The root mean square, over columns, of how far published zeros are from predicted ones, in standard errors.
    - `verdict`, `why`: "passed", "failed" or "too few"; and the reason for the second.
    """

    table: str
    columns: tuple[int, ...]
    cells: int
    rms_z: float | None
    verdict: str
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SelfCheck:
    """How well published counts were predicted."""

    predictions: tuple[Prediction, ...]
    tables: tuple[TableCheck, ...]
    priors: tuple[str, ...]
    names: tuple[tuple[str, str], ...]

    @property
    def rms_z(self) -> float | None:
        """The root mean square of z over all columns: near 1 if the prior suits the release."""
        return _rms([z for _, z in _z_by_column(self.predictions)])

    @property
    def failed(self) -> tuple[int, ...]:
        """The columns of tables that failed: nothing is called likely there."""
        return tuple(sorted(column for table in self.tables if table.verdict == FAILED for column in table.columns))

    def better_flat(self) -> tuple[int, ...]:
        """Return the columns of tables in which a flat prior predicts better, by more than two standard errors."""
        columns: list[int] = []
        for table in self.tables:
            logs_here = [each.logs for each in self.predictions if each.column in table.columns]
            gain = np.array([logs[self.priors.index("flat")] - logs[0] for logs in logs_here])
            if len(gain) >= FEWEST and _standard_errors(gain) > 2:
                columns += table.columns
        return tuple(columns)

    def doubts(self, variants: Sequence[str], columns: int) -> FloatArray:
        """Return priors of the set × columns: how far the best prior is believed instead, because it predicts better.

        Where it does, the lowest of all is too modest. *Denser*, the last, is about how those who are there group.
        """
        doubts = np.zeros((len(variants), columns))
        for table in self.tables:
            logs = np.array([prediction.logs for prediction in self.predictions if prediction.column in table.columns])
            for v, name in enumerate(variants):
                if len(logs) >= FEWEST and name in VARIANTS[1:-1]:
                    ahead = _standard_errors(logs[:, 0] - logs[:, v])
                    doubts[v, table.columns] = np.clip((ahead - BELIEVED) / (DISBELIEVED - BELIEVED), 0, 1)
        return doubts

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        logs = np.array([entry.logs for entry in self.predictions])
        return {
            "cells": len(self.predictions),
            "rms_z": self.rms_z,
            "log_score": dict(zip(self.priors, logs.mean(axis=0).tolist(), strict=True)),
            "calibration": _calibration(self.predictions),
            "worst_columns": [self._column(column, z) for column, z in _z_by_column(self.predictions)[:WORST]],
            "tables": [
                {
                    "table": entry.table,
                    "columns": len(entry.columns),
                    "cells": entry.cells,
                    "rms_z": entry.rms_z,
                    "verdict": entry.verdict,
                    "why": entry.why,
                }
                for entry in self.tables
            ],
        }

    def _column(self, column: int, z: float) -> dict[str, Any]:
        those = [prediction for prediction in self.predictions if prediction.column == column]
        key, label = self.names[column]
        return {
            "column": key,
            "label": label,
            "predictions": len(those),
            "zeros_predicted": sum(prediction.zero for prediction in those),
            "zeros_published": sum(prediction.was_zero for prediction in those),
            "z": z,
        }


def self_check(model: Model, prior: Prior, counts: Counts) -> SelfCheck | None:
    """Hide published counts of some areas one at a time, and predict them; None where no prior was fitted."""
    if prior.is_flat:
        return None
    names = (*prior.variants, *(() if "flat" in prior.variants else ("flat",)))
    rounds = min(max(-(-PREDICTIONS // max(len(counts), 1)), 1), MOST_ROUNDS)
    choose = np.random.default_rng(20_260_816).random((rounds, *counts[:PREDICTIONS].shape))
    predictions: list[Prediction] = []
    few = block_size(counts.shape[1])
    for number in range(rounds):
        for first in range(0, min(PREDICTIONS, len(counts)), few):
            some = slice(first, min(first + few, PREDICTIONS))
            predictions += _predict(model, prior, names, counts[some], choose[number, some])
    if not predictions:
        return None
    named = tuple((column.key, column.label) for column in model.columns)
    return SelfCheck(tuple(predictions), tuple(_tables(model, predictions)), names, named)


def choose_and_check(model: Model, prior: Prior, counts: Counts) -> tuple[Prior, SelfCheck | None]:
    """Return the prior with the better of fitted and flat in every table, and how its predictions do.

    Where they fail all the same, nothing will be called likely.
    """
    checked = self_check(model, prior, counts)
    if checked is None:
        return prior, None
    flat = checked.better_flat()
    if flat:
        prior = prior.flat_in(flat)
        checked = self_check(model, prior, counts)
        assert checked is not None  # as before
    return replace(prior, withheld=checked.failed, doubted=checked.doubts(prior.variants, len(model.columns))), checked


def _predict(model: Model, prior: Prior, names: Sequence[str], counts: Counts, choose: FloatArray) -> list[Prediction]:
    """Hide one count of each area, and predict it under every prior."""
    rows, cells = _chosen(model, prior, counts, choose)
    hidden = counts[rows]
    at = np.arange(len(rows))
    published = hidden[at, cells].copy()
    hidden[at, cells] = NOT_AVAILABLE
    windows, misfits = WindowTable(model.mechanisms).of(hidden)
    active = applicable_sums(model, hidden)
    tight = tighten(model.compiled, windows, active)
    width = tight.high[at, cells].astype(np.int64) - tight.low[at, cells]
    tight.feasible[:] &= (width < WIDEST) & ~misfits.any(axis=1)
    wanted = np.zeros(hidden.shape, dtype=np.bool_)
    wanted[at, cells] = True
    assert prior.fitted is not None  # else there is nothing to check
    sizes = prior.fitted.mixtures.sizes.of(hidden)
    by_prior = []
    for name in names:
        weights = prior.weights(hidden, tight.low, tight.high, name, with_connected(model, wanted))
        by_prior.append(marginals(EvidenceBlock(model.compiled, windows, tight, weights, active), wanted, quick=True)[1])
    predictions = []
    for i in np.flatnonzero(tight.feasible).tolist():
        cell, shown = int(cells[i]), int(published[i])
        compared = _compared(
            model.mechanisms[cell], [_distribution(each, i, cell) for each in by_prior], shown, len(prior.variants)
        )
        if compared is not None:
            predictions.append(Prediction(cell, float(sizes[i]), *compared))
    return predictions


def _chosen(model: Model, prior: Prior, counts: Counts, choose: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose a count of each area at random, of those that are rounded, small, and in a sum that carries probabilities."""
    unused = frozenset(model.compiled.left_out)
    usable = np.array([any(e not in unused for e in sums) for sums in model.touching])
    # Of weighted estimates nothing is claimed, so that nothing has to be predicted.
    usable &= np.array([not isinstance(how, Exact | Unpublished | Weighted) for how in model.mechanisms])
    if prior.fitted is not None:
        usable[prior.fitted.mixtures.sizes.column] = False  # without the size of an area, nothing is expected of it
    usable[[*model.exact_twin, *model.repeated, *(first for first, _ in model.repeated.values())]] = False
    possible = usable & (counts > ABSENT) & (counts < LARGEST)
    rows = np.flatnonzero(possible.any(axis=1))
    return rows, np.where(possible[rows], choose[rows], -1.0).argmax(axis=1)


def _distribution(distributions: Distributions, row: int, cell: int) -> tuple[int, FloatArray]:
    low, start = int(distributions.low[row, cell]), int(distributions.start[row, cell])
    return low, distributions.chances[start : start + int(distributions.high[row, cell]) - low + 1]


def _compared(
    how: Mechanism, each: Sequence[tuple[int, FloatArray]], published: int, variants: int
) -> tuple[float, bool, float, bool, tuple[float, ...]] | None:
    """Compare one published count with what each prior expected; None where nothing was."""
    low = each[0][0]
    true = np.arange(low, low + each[0][1].size)
    shown = np.arange(low - FARTHEST, true[-1] + FARTHEST + 1)
    likely = how.likelihood(shown[np.newaxis, :], true[:, np.newaxis])
    expected = np.stack([chances @ likely for _, chances in each])
    whole = expected.sum(axis=1, keepdims=True)
    if not (whole > 0).all() or not shown[0] <= published <= shown[-1]:
        return None
    expected /= whole
    stated = expected[:variants].mean(axis=0)
    zero = float(stated[-shown[0]]) if shown[0] <= 0 else 0.0
    best = int(stated.argmax())
    logs = np.log(np.maximum(expected[:, published - shown[0]], 1e-12))
    return float(stated[best]), int(shown[best]) == published, zero, published == 0, tuple(logs.tolist())


# -- verdicts ----------------------------------------------------------------------------------------------------------


def _z_by_column(predictions: Sequence[Prediction]) -> list[tuple[int, float]]:
    """Return how far published zeros are from predicted ones in every column that tells, in standard errors; worst first."""
    sums: dict[int, list[float]] = {}
    for entry in predictions:
        of_column = sums.setdefault(entry.column, [0.0, 0.0])
        of_column[0] += entry.was_zero - entry.zero
        of_column[1] += entry.zero * (1 - entry.zero)
    by_column = [(column, off / math.sqrt(variance)) for column, (off, variance) in sums.items() if variance >= 1]
    return sorted(by_column, key=lambda entry: (-abs(entry[1]), entry[0]))


def _rms(z: Sequence[float]) -> float | None:
    return math.sqrt(sum(value * value for value in z) / len(z)) if z else None


def _calibration(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    stated = np.array([prediction.stated for prediction in predictions])
    right = np.array([prediction.right for prediction in predictions])
    bin_of = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    return [
        {
            "low": k / BINS,
            "high": (k + 1) / BINS,
            "predictions": int((bin_of == k).sum()),
            "stated": float(stated[bin_of == k].mean()),
            "observed": float(right[bin_of == k].mean()),
        }
        for k in range(BINS)
        if (bin_of == k).any()
    ]


def _tables(model: Model, predictions: Sequence[Prediction]) -> list[TableCheck]:
    """Judge the tables one by one: the columns that sums connect."""
    those: dict[int, list[Prediction]] = {}
    for prediction in predictions:
        those.setdefault(int(model.piece[prediction.column]), []).append(prediction)
    checks = []
    for piece, of_table in sorted(those.items()):
        columns = tuple(np.flatnonzero(model.piece == piece).tolist())
        rms_z = _rms([value for _, value in _z_by_column(of_table)])
        checks.append(TableCheck(table_named(model, columns), columns, len(of_table), rms_z, *_verdict(of_table)))
    return checks


def table_named(model: Model, columns: Sequence[int]) -> str:
    """Name the columns that sums connect after the table that most of them are in."""
    blocks = Counter(model.columns[column].block for column in columns)
    return blocks.most_common(1)[0][0] or model.columns[columns[0]].key


def _verdict(predictions: Sequence[Prediction]) -> tuple[str, str]:
    """Return whether predictions hold: a table fails where claims would state too much, by more than chance explains.

    Over simulated worlds, what tells is how much better the best prior predicts than the one with the fewest zeros: the
    more, the more modest the lowest of all priors is.
    """
    if len(predictions) < FEWEST:
        return TOO_FEW, ""
    zeros = [prediction for prediction in predictions if 0 < prediction.zero < 1]
    over = sum(prediction.zero - prediction.was_zero for prediction in zeros) / max(len(zeros), 1)
    error = math.sqrt(sum(prediction.zero * (1 - prediction.zero) for prediction in zeros)) / max(len(zeros), 1)
    if over > HARMLESS + 2 * error:
        return FAILED, f"zeros were published less often than predicted, by {100 * over:.0f} points"
    gain = np.array([prediction.logs[0] - prediction.logs[VARIANTS.index("tilted")] for prediction in predictions])
    ahead = _standard_errors(gain)
    if gain.mean() < -FEWER_ZEROS and ahead < DOUBT:
        return FAILED, "a prior with fewer zeros predicts what was published better"
    if _off_by_size(zeros) > HARMLESS_BY_SIZE:
        return FAILED, "zeros were published more often than predicted in some sizes of areas, and less often in others"
    sure = [prediction for prediction in predictions if prediction.stated >= SURE]
    if len(sure) >= FEWEST:
        over = sum(prediction.stated - prediction.right for prediction in sure) / len(sure)
        error = math.sqrt(sum(prediction.stated * (1 - prediction.stated) for prediction in sure)) / len(sure)
        if over > HARMLESS + 2 * error:
            return FAILED, f"predictions of {100 * SURE:.0f}% or more state {100 * over:.0f} points too much"
    return PASSED, ""


def _standard_errors(gain: FloatArray) -> float:
    """Return by how many standard errors something is better, on average."""
    return float(gain.mean() / (gain.std() / math.sqrt(len(gain)) + 1e-12))


def _off_by_size(zeros: Sequence[Prediction]) -> float:
    """Return how far published zeros are from predicted ones in a column and a class of sizes, beyond chance, on average.

    A column may be right over all areas, and wrong in small and large ones.
    """
    edges = np.quantile([prediction.size for prediction in zeros], SIZE_CLASSES) if zeros else np.zeros(0)
    groups: dict[tuple[int, int], list[Prediction]] = {}
    for prediction in zeros:
        groups.setdefault((prediction.column, int(np.searchsorted(edges, prediction.size))), []).append(prediction)
    beyond = total = 0.0
    for group in groups.values():
        if len(group) >= FEWEST_OF_SIZE:
            off = abs(sum(prediction.was_zero - prediction.zero for prediction in group))
            spread = math.sqrt(sum(prediction.zero * (1 - prediction.zero) for prediction in group))
            beyond += max(off - 2 * spread, 0.0)
            total += len(group)
    return beyond / total if total > len(zeros) / 2 else 0.0  # where there are many columns, each has too few
