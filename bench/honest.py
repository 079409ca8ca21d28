"""Are likely claims right as often as they state, and how much is left unsaid? `make honest` (some minutes).

Worlds whose truth is known are published and audited: our own, and those that somebody else has drawn where they are there
(`../shared/truths`, or UNROUND_TRUTHS). Claims of 0, of 1 or 2, and of more are compared with the truth; claims that the
self-check withholds, too. Where the law of a world is known, an oracle that knows it says how many claims there could be.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from research import worlds
from research.calibration import CENSUS, material_of_world
from research.worlds import TOTAL, WORLDS
from scipy.special import gammaln

from unround.audits.block import Auditor
from unround.audits.claims import ClaimKind, HeldBecause
from unround.audits.model import block_size
from unround.audits.selfcheck import choose_and_check
from unround.comparison.material import Material
from unround.mechanisms import mechanism
from unround.mechanisms.base import BoolArray, FloatArray, IntArray
from unround.prior import PriorFit
from unround.release import Column, Counts

ENOUGH, POINTS = 300, 0.02
KINDS = {"0": (0, 0), "1–2": (1, 2), "3+": (3, 1 << 30)}
TRUTHS = Path(os.environ.get("UNROUND_TRUTHS", Path(__file__).parents[2] / "shared" / "truths")) / "foreign.py"
OTHERWISE = {
    "rounding:3": ("households", "neighbourhoods", "mostly-empty", "deep-tree", "rare-languages"),
    "rounding:10": ("institutions", "unlike-evenness", "neighbourhoods"),
    "sample:5": ("rare-languages", "deep-tree"),
}
"""Worlds that are published in other ways besides."""


class Case(NamedTuple):
    """A world, published in some way."""

    name: str
    how: str
    material: Material


def cases(areas: int) -> Iterator[Case]:
    """Yield all worlds."""
    for name in (*WORLDS, CENSUS):
        yield Case(name, "rounding:5", material_of_world(name, areas))
    for how, names in OTHERWISE.items():
        for name in names:
            yield Case(name, how, material_of_world(name, areas, 12))
    if not TRUTHS.is_file():
        print(f"No worlds of others at {TRUTHS}.", file=sys.stderr)
        return
    spec = importlib.util.spec_from_file_location("foreign", TRUTHS)
    assert spec is not None
    assert spec.loader is not None
    foreign: Any = importlib.util.module_from_spec(spec)
    sys.modules["foreign"] = foreign  # its data classes look themselves up there
    spec.loader.exec_module(foreign)
    for name, law in foreign.WORLDS.items():
        drawn = law(np.random.default_rng(sum(map(ord, name))))
        at = {cell: place for place, cell in enumerate(drawn.cells)}
        sexes = sorted({sex for _, sex in at}, key=("total", "men", "women").index)
        sums = [(at[t, sex], tuple(at[part, sex] for part in parts)) for t, parts in drawn.tree.items() for sex in sexes]
        if len(sexes) > 1:
            sums += [(at[c, "total"], (at[c, "men"], at[c, "women"])) for c, sex in drawn.cells if sex == "total"]
        columns = tuple(Column("/".join(cell), cell, cell[0]) for cell in drawn.cells)
        true = np.ascontiguousarray(drawn.truth[:areas], dtype=np.int32)
        yield Case(
            name, f"{drawn.rule}:{drawn.base}", Material(name, true, columns, tuple(sums), frozenset({at["total", "total"]}))
        )


@dataclass
class Claims:
    """What an audit says about a case: the likely counts, and what it withholds; areas × columns.

    - `value`, `probability`: The count, and what is stated.
    - `lowest`: The lowest probability of it that any prior gives, which the threshold is about.
    - `made`, `withheld`: Where it is claimed, and where that is withheld by the self-check.
    - `low`, `high`: What is possible.
    """

    published: Counts
    true: IntArray
    value: IntArray
    probability: FloatArray
    lowest: FloatArray
    made: BoolArray
    withheld: BoolArray
    low: IntArray
    high: IntArray


def audited(case: Case, seed: int = 3) -> Claims:
    """Publish a world, and claim what an audit would."""
    material, how = case.material, mechanism(case.how)
    true, exact = material.true.astype(np.int64), sorted(material.exact)
    counts = np.asarray(how.publish(true, np.random.default_rng(seed)), dtype=np.int32)
    counts[:, exact] = true[:, exact]
    model = material.model(material.mechanisms(how))
    fit = PriorFit(len(model.columns))
    fit.add(counts)
    prior, _ = choose_and_check(model, fit.finish(model.compiled, model.mechanisms), fit.sample.counts)
    auditor, step, blocks = Auditor(model, prior), block_size(len(model.columns)), []
    for first in range(0, len(counts), step):
        some = counts[first : first + step]
        found = auditor.infer(some, np.zeros(len(some), dtype=np.bool_))
        likely = found.probabilities.posterior
        claims, reach = found.claims, found.probabilities.within
        held = (claims.held_back == ClaimKind.LIKELY) & (claims.held_because == HeldBecause.SELFCHECK)
        lowest = np.where(np.isnan(found.probabilities.lowest), likely.probability, found.probabilities.lowest)
        made = claims.of_kind(ClaimKind.LIKELY)
        blocks.append((likely.mode, likely.probability, lowest, made, held, reach.low, reach.high))
    return Claims(counts, true, *(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def judged(claims: Claims, where: BoolArray) -> dict[str, tuple[int, float, float, bool]]:
    """Return by kind how many claims there are, what they state, how many are right, and whether that is too few."""
    found = {}
    for kind, (least, most) in KINDS.items():
        here = where & (claims.value >= least) & (claims.value <= most)
        number = int(here.sum())
        if number:
            stated, right = claims.probability[here], (claims.value == claims.true)[here]
            by_area = np.bincount(np.nonzero(here)[0], weights=right - stated)
            error, over = sqrt(float((by_area**2).sum())) / number, float(stated.mean() - right.mean())
            found[kind] = number, float(stated.mean()), float(right.mean()), number >= ENOUGH and over > POINTS + 2 * error
    return found


# -- oracles -----------------------------------------------------------------------------------------------------------

Latent = tuple[float, Callable[[int, IntArray], FloatArray]]
"""The log weight of what is hidden about an area, and the log probabilities of the counts of a leaf given that."""


def _dirichlet(_total: int) -> list[Latent]:
    return [(0.0, lambda leaf, x: gammaln(x + worlds.PRECISIONS[leaf]) - gammaln(x + 1))]


def _mostly_empty(_total: int) -> list[Latent]:
    def law(leaf: int, x: IntArray) -> FloatArray:
        there, stops = worlds.PRESENT[leaf], worlds.STOPS
        return np.asarray(np.where(x == 0, np.log(1 - there), np.log(there * stops) + (x - 1) * np.log(1 - stops)))

    return [(0.0, law)]


def _neighbourhoods(total: int) -> list[Latent]:
    found: list[Latent] = []
    for common, dwellings, shares in zip(worlds.COMMON, worlds.DWELLINGS, worlds.TYPES, strict=True):
        size = dwellings * np.linspace(0.6, 1.4, 201)
        logs = np.log(shares + 1e-30)
        weight = np.log(common) + np.logaddexp.reduce(total * np.log(size) - size)
        found.append((float(weight), lambda leaf, x, logs=logs: x * logs[leaf] - gammaln(x + 1)))  # type: ignore[misc]
    return found


def _households(_total: int) -> list[Latent]:
    persons = np.arange(1, len(worlds.FAMILY) + 1)
    found: list[Latent] = []
    for z in np.linspace(-2.8, 2.8, 25):
        size = 60 * np.exp(0.6 * z)

        def law(leaf: int, x: IntArray, size: float = size) -> FloatArray:
            if leaf == 0:
                majority = size * (1 - worlds.MINORITIES.sum())
                return np.asarray(x * np.log(majority) - majority - gammaln(x + 1))
            families = size * worlds.MINORITIES[leaf - 1] / (persons * worlds.FAMILY).sum()
            chances = np.zeros(int(x[-1]) + 1)
            chances[0] = np.exp(-families)
            for k in range(1, len(chances)):  # Panjer
                last = persons[: min(k, len(persons))]
                chances[k] = families / k * (last * worlds.FAMILY[: len(last)] * chances[k - last]).sum()
            return np.asarray(np.log(chances[x] + 1e-300))

        found.append((-z * z / 2, law))
    return found


ORACLES: dict[str, Callable[[int], list[Latent]]] = {
    "dirichlet": _dirichlet,
    "mostly-empty": _mostly_empty,
    "neighbourhoods": _neighbourhoods,
    "households": _households,
}
"""Worlds whose law is known: given what is hidden about an area, its leaves are independent but for their exact total."""


def oracle(case: Case, claims: Claims) -> tuple[IntArray, FloatArray]:
    """Return the likeliest count of every cell and its probability, given everything published and the true law."""
    world, how = WORLDS[case.name], mechanism(case.how)
    at, leaves = {node: c for c, node in enumerate(world.nodes)}, {node: j for j, node in enumerate(world.leaves)}
    mode, probability = np.zeros(claims.value.shape, dtype=np.int64), np.zeros(claims.value.shape)
    for area in range(len(mode)):
        x = {node: np.arange(claims.low[area, c], claims.high[area, c] + 1) for node, c in at.items()}
        shown = {
            node: np.ones(own.size)
            if at[node] in case.material.exact
            else how.likelihood(claims.published[area, at[node]], own)
            for node, own in x.items()
        }
        several: list[tuple[float, dict[str, FloatArray]]] = []
        for weight, law in ORACLES[case.name](int(claims.true[area, 0])):
            logs = {leaf: law(j, x[leaf]) for leaf, j in leaves.items()}
            scale = weight + sum(float(own.max()) for own in logs.values())
            own = {leaf: np.exp(one - one.max()) * shown[leaf] for leaf, one in logs.items()}
            several.append(_through_the_tree(world.tree, x, shown, own, scale))
        logs_of = np.array([log for log, _ in several])
        shares = np.exp(logs_of - logs_of.max())
        for node, c in at.items():
            chances = sum(share * found[node] for share, (_, found) in zip(shares / shares.sum(), several, strict=True))
            best = int(np.argmax(chances))
            mode[area, c], probability[area, c] = x[node][best], np.asarray(chances)[best]
    return mode, probability


def _through_the_tree(
    tree: worlds.Tree, x: dict[str, IntArray], shown: dict[str, FloatArray], up: dict[str, FloatArray], scale: float
) -> tuple[float, dict[str, FloatArray]]:
    """Return the log probability of what was published, and the distribution of every node: messages up, then down."""

    def placed(total: str, first: int, chances: FloatArray) -> FloatArray:
        found, at = np.zeros(x[total].size), np.arange(chances.size) + first - x[total][0]
        inside = (at >= 0) & (at < found.size)
        found[at[inside]] = chances[inside]
        return found

    def added(parts: list[str]) -> tuple[int, FloatArray]:
        chances = np.ones(1)
        for part in parts:
            chances = np.convolve(chances, up[part])
        return sum(int(x[part][0]) for part in parts), chances

    def upward(node: str) -> None:
        for part in tree.get(node, ()):
            upward(part)
        if node in tree:
            up[node] = placed(node, *added([*tree[node]])) * shown[node]

    upward(TOTAL)
    whole = float(up[TOTAL].sum())
    down, found = {TOTAL: np.ones(x[TOTAL].size)}, {}
    for node in [TOTAL, *(part for parts in tree.values() for part in parts)]:  # each total stands before its parts
        found[node] = up[node] * down[node]
        found[node] = found[node] / max(float(found[node].sum()), 1e-300)
        for part in tree.get(node, ()):
            first, others = added([one for one in tree[node] if one != part])
            above = shown[node] * down[node]
            down[part] = np.array([above @ placed(node, first + int(own), others) for own in x[part]])
    return scale + np.log(max(whole, 1e-300)), found


def shares_of_oracle(case: Case, claims: Claims) -> list[float]:
    """Return which share of the counts that an oracle makes likely, at 66% and at 90%, the audit makes so likely, too."""
    mode, probability = oracle(case, claims)
    found = []
    for threshold in (0.66, 0.9):
        able = (claims.low < claims.high) & (probability >= threshold)
        ours = able & (claims.lowest >= threshold) & (claims.value == mode) & ~claims.withheld
        found.append(float(ours.sum() / max(int(able.sum()), 1)))
    return found


HEADINGS = ("world", "published", "claims", "stated", "right", "withheld", "of the oracle's at 66%, at 90%")


def main() -> None:
    """Print a table of all worlds, and fail where claims overstate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=600)
    parser.add_argument("worlds", nargs="*", help="all unless named")
    given = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n|---|---|--:|--:|--:|---|---|")
    failed = 0
    for case in cases(given.areas):
        if given.worlds and case.name not in given.worlds:
            continue
        claims = audited(case)
        power = ""
        if case.name in ORACLES and case.how == "rounding:5":
            power = ", ".join(f"{share:.0%}" for share in shares_of_oracle(case, claims))
        withheld = "; ".join(
            f"{kind}: {n:,}, {s:.3f}/{r:.3f}" for kind, (n, s, r, _) in judged(claims, claims.withheld).items()
        )
        for kind, (number, stated, right, over) in (
            judged(claims, claims.made).items() or {"none": (0, 1.0, 1.0, False)}.items()
        ):
            failed += over
            verdict = " **overstated**" if over else ""
            numbers = f"{number:,} | {stated:.3f} | {right:.3f}{verdict}"
            print(f"| {case.name}: {kind} | {case.how} | {numbers} | {withheld} | {power} |", flush=True)
            withheld = power = ""
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
