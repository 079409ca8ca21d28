"""How the counts of a table depend on each other: totals that share random numbers with their two parts.

What is kept here is the result; `sharing_fit` finds it. Bounds and proofs do not rest on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.model import Model
from unround.batch.compiled_sums import compile_sums
from unround.batch.evidence import PATTERNS
from unround.batch.types import Sharing
from unround.errors import InputError
from unround.mechanisms.rounding import TwoWay

FILE = "dependence.json"
"""Where an audit keeps it, in its folder `model/`; there is none where nothing was found."""

LEAST_OWN = 0.005
"""Independence keeps at least this share: what one pattern of sharing rules out must not become impossible."""

Shares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class DependentSum:
    """The counts of one table that are split in the same way, such as all by sex.

    Parameters
    ----------
    table : str
        The table (block) of the release.
    names : tuple of str
        The codes of the total and of its two parts: ("total", "men", "women").
    mechanism : str
        How their parts were published: counts of a sample are rounded by another rule, and so at another time.
    splits : tuple
        The cells of every such total and its parts, in the order of the names.
    """

    table: str
    names: tuple[str, str, str]
    mechanism: str
    splits: tuple[tuple[int, int, int], ...]

    @property
    def key(self) -> tuple[str, tuple[str, str, str], str]:
        """What it is known by."""
        return self.table, self.names, self.mechanism


def groups_of(model: Model) -> list[DependentSum]:
    """Find the counts that can share random numbers with their two parts, table by table.

    A total with two parts that differ from it in their characteristic is one of a kind: its parts are no men and women.
    """
    found: dict[tuple[str, str, str, frozenset[str]], tuple[tuple[str, str, str], list[tuple[int, int, int]]]] = {}
    for total, parts in model.equations:
        if len(parts) != 2 or sum(isinstance(model.mechanisms[c], TwoWay) for c in (total, *parts)) < 2:
            continue
        columns = [model.columns[c] for c in (total, *parts)]
        changing = [k for k in range(len(columns[0].codes)) if len({one.codes[k] for one in columns}) > 1]
        if len(changing) != 1 or not changing[0] or len({one.block for one in columns}) > 1:
            continue
        whole, first, second = (one.codes[changing[0]] for one in columns)
        key = columns[0].block, model.mechanisms[parts[0]].name, whole, frozenset((first, second))
        names, splits = found.setdefault(key, ((whole, first, second), []))
        splits.append((total, *parts) if names[1] == first else (total, parts[1], parts[0]))
    return [DependentSum(key[0], names, key[1], tuple(splits)) for key, (names, splits) in found.items()]


def paired(model: Model, groups: Iterable[DependentSum]) -> Model:
    """Return a model in which every such total and its parts are one node, as far as sums allow."""
    splits = tuple(split for group in groups for split in group.splits)
    return replace(model, compiled=compile_sums(len(model.columns), model.equations, model.fixed, splits))


@dataclass(frozen=True, slots=True)
class DependentTable:
    """What is known about one table.

    Parameters
    ----------
    table, names, mechanism
        As for `DependentSum`.
    shares : tuple of float
        In which share of the counts the total uses the first part's random number, the second's, or both parts the same.
    errors : tuple of float or None
        Their standard errors; None where the user gave the shares.
    told_apart : bool
        Whether the counts tell whose random number the total uses; where they do not, it is split evenly.
    counts, areas : int
        How many totals of how many areas it was fitted to.
    p_value : float or None
        How likely such a fit is if all counts are rounded independently.
    used : bool
        Whether the audit uses it.
    why : str
        Why, or why not.
    """

    table: str
    names: tuple[str, str, str]
    mechanism: str
    shares: Shares
    errors: Shares | None = None
    told_apart: bool = True
    counts: int = 0
    areas: int = 0
    p_value: float | None = None
    used: bool = True
    why: str = ""

    @property
    def patterns(self) -> tuple[str, str, str]:
        """What the shares are called: total-men, total-women, men-women."""
        total, first, second = self.names
        return f"{total}-{first}", f"{total}-{second}", f"{first}-{second}"

    @property
    def sentence(self) -> str:
        """What is assumed, for people."""
        total, first, second = self.names
        one, two, three = self.shares
        return (
            f"Not all counts in this table have random numbers of their own: in {one:.0%} of cases {total} and {first} are "
            f"assumed to share one, in {two:.0%} {total} and {second}, and in {three:.0%} {first} and {second}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "table": self.table,
            "names": list(self.names),
            "mechanism": self.mechanism,
            "shares": dict(zip(self.patterns, self.shares, strict=True)),
            "standard_errors": None if self.errors is None else dict(zip(self.patterns, self.errors, strict=True)),
            "told_apart": self.told_apart,
            "counts": self.counts,
            "areas": self.areas,
            "p_value": self.p_value,
            "used": self.used,
            "why": self.why,
        }

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> DependentTable:
        """Read what `to_json` wrote."""
        total, first, second = told["names"]
        one, two, three = told["shares"].values()
        errors = told["standard_errors"]
        return cls(
            told["table"],
            (total, first, second),
            told["mechanism"],
            (one, two, three),
            None if errors is None else tuple(errors.values()),
            told["told_apart"],
            told["counts"],
            told["areas"],
            told["p_value"],
            told["used"],
            told["why"],
        )


@dataclass(frozen=True, slots=True)
class Dependence:
    """What is known about the dependence of a release's tables; nothing, unless told.

    Parameters
    ----------
    rounding : str
        What the user asked for: "auto", "dependent" or "independent".
    tables : tuple of DependentTable
        Those that were fitted, or given.
    """

    rounding: str = "independent"
    tables: tuple[DependentTable, ...] = ()

    @property
    def used(self) -> tuple[DependentTable, ...]:
        """The tables in which the audit takes random numbers to be shared."""
        return tuple(one for one in self.tables if one.used)

    def groups(self, model: Model) -> list[tuple[DependentSum, Shares]]:
        """Return the counts that share random numbers, and in which shares."""
        shares = {(one.table, one.names, one.mechanism): one.shares for one in self.used}
        return [(group, shares[group.key]) for group in groups_of(model) if group.key in shares]

    def paired(self, model: Model) -> Model:
        """Return a model that has a node for every total that shares with its parts; the same where none does."""
        groups = self.groups(model)
        return paired(model, [group for group, _ in groups]) if groups else model

    def sharing(self, model: Model) -> Sharing | None:
        """Return it as the engine takes it, for a model with such nodes; None where every count has its own number."""
        groups = self.groups(model)
        return sharing_of(model, groups) if groups else None

    def columns(self, model: Model) -> frozenset[int]:
        """Return the cells that share random numbers."""
        return frozenset(cell for group, _ in self.groups(model) for split in group.splits for cell in split)

    def with_totals(self, model: Model) -> dict[tuple[int, int], float]:
        """Return for totals and parts in which share of the areas the total uses the part's random number."""
        found: dict[tuple[int, int], float] = {}
        for group, (one, two, _) in self.groups(model):
            for total, first, second in group.splits:
                found |= {(total, first): one, (total, second): two}
        return {both: share for both, share in found.items() if share}

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"rounding": self.rounding, "tables": [one.to_json() for one in self.tables]}

    def save(self, folder: Path) -> None:
        """Write it into the folder of an audit's model, for `load`."""
        if self.tables:
            (folder / FILE).write_text(json.dumps(self.to_json(), ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Dependence:
        """Read what `save` wrote; nothing is shared where it wrote nothing."""
        try:
            told = json.loads((folder / FILE).read_text(encoding="utf-8"))
            return cls(told["rounding"], tuple(DependentTable.of_json(one) for one in told["tables"]))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / FILE} cannot be read ({error}). Run the audit again to replace it.") from error


def roles_of(model: Model) -> dict[str, NDArray[np.int64]]:
    """Return the cells of counts that are split in two, by what they are there: all totals, all men, all women."""
    found: dict[str, set[int]] = {}
    for group in groups_of(model):
        for split in group.splits:
            for name, cell in zip(group.names, split, strict=True):
                found.setdefault(name, set()).add(cell)
    return {name: np.array(sorted(cells)) for name, cells in found.items()}


def sharing_of(model: Model, groups: Sequence[tuple[DependentSum, Shares]], least: int = 0) -> Sharing:
    """Return what the engine is told: two rows a group, the second for nodes that have their parts the other way round."""
    plan = model.compiled.plan
    row: NDArray[np.int64] = np.full(len(plan.nodes), -1, dtype=np.int64)
    table = np.zeros((2 * len(groups), PATTERNS))
    for k, (group, shares) in enumerate(groups):
        one, two, parts = (share * min(1.0, (1 - LEAST_OWN) / max(sum(shares), LEAST_OWN)) for share in shares)
        table[2 * k] = 1 - one - two - parts, one, two, parts
        table[2 * k + 1] = 1 - one - two - parts, two, one, parts
        for split in group.splits:
            n = plan.home[split[0]][0]
            if set(plan.nodes[n].cells) == set(split):
                row[n] = 2 * k + (plan.nodes[n].cells != split)
    two_way = np.array([isinstance(how, TwoWay) for how in model.mechanisms])
    return Sharing(row, two_way, table, np.full(len(table), least, dtype=np.int64))
