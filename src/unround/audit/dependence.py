"""How the counts of a table depend on each other: totals that share random numbers with their two parts.

What is kept here is the result; `sharing_fit` finds it. Bounds and proofs do not rest on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audit.model import Model
from unround.batch.sharing import PATTERNS
from unround.batch.types import Sharing
from unround.errors import InputError
from unround.mechanisms.rounding import TwoWay

FILE = "dependence.json"
"""Where an audit keeps it, in its folder `model/`; there is none where nothing was found."""

LEAST_OWN = 0.005
"""Independence keeps at least this share: what one pattern of sharing rules out must not become impossible."""

Shares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Group:
    """The counts of one table that are split in the same way, such as all by sex.

    Parameters
    ----------
    table : str
        The table (block) of the release.
    names : tuple of str
        The codes of the total and of its two parts: ("total", "men", "women").
    nodes : tuple of int
        The nodes of the plan; `swapped` are those among them whose first part is the second here.
    """

    table: str
    names: tuple[str, str, str]
    nodes: tuple[int, ...]
    swapped: frozenset[int]


def groups_of(model: Model) -> list[Group]:
    """Find the counts that can share random numbers with their two parts, table by table."""
    found: dict[tuple[str, str, frozenset[str]], tuple[tuple[str, str, str], list[int], set[int]]] = {}
    for n, node in enumerate(model.layout.plan.nodes):
        if not node.is_pair or node.copy or sum(isinstance(model.mechanisms[c], TwoWay) for c in node.cells) < 2:
            continue
        columns = [model.columns[c] for c in node.cells]
        changing = [k for k in range(len(columns[0].codes)) if len({one.codes[k] for one in columns}) > 1]
        if len(changing) != 1 or len({one.block for one in columns}) > 1:
            continue  # no two such counts are split in the same way
        total, first, second = (one.codes[changing[0]] for one in columns)
        key = columns[0].block, total, frozenset((first, second))
        names, nodes, swapped = found.setdefault(key, ((total, first, second), [], set()))
        nodes.append(n)
        if names[1] != first:
            swapped.add(n)
    return [Group(key[0], names, tuple(nodes), frozenset(swapped)) for key, (names, nodes, swapped) in found.items()]


@dataclass(frozen=True, slots=True)
class Table:
    """What is known about one table.

    Parameters
    ----------
    table, names
        As for `Group`.
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
            f"Not all are independent in this table: in {one:.0%} of its counts the {total} is taken to share the random number "
            f"of the {first}, in {two:.0%} that of the {second}, and in {three:.0%} {first} and {second} to share one."
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "table": self.table,
            "names": list(self.names),
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
    def of_json(cls, told: dict[str, Any]) -> Table:
        """Read what `to_json` wrote."""
        total, first, second = told["names"]
        one, two, three = told["shares"].values()
        errors = told["standard_errors"]
        return cls(
            told["table"],
            (total, first, second),
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
    tables : tuple of Table
        Those that were fitted, or given.
    """

    rounding: str = "independent"
    tables: tuple[Table, ...] = ()

    @property
    def used(self) -> tuple[Table, ...]:
        """The tables in which the audit takes random numbers to be shared."""
        return tuple(one for one in self.tables if one.used)

    def sharing(self, model: Model) -> Sharing | None:
        """Return it as the engine takes it; None where every count has its own random number."""
        shares = {(one.table, one.names): one.shares for one in self.used}
        return sharing_of(model, [(group, shares.get((group.table, group.names))) for group in groups_of(model)])

    def columns(self, model: Model) -> frozenset[int]:
        """Return the cells that share random numbers."""
        used = {(one.table, one.names) for one in self.used}
        nodes = model.layout.plan.nodes
        those = [n for group in groups_of(model) if (group.table, group.names) in used for n in group.nodes]
        return frozenset(cell for n in those for cell in nodes[n].cells)

    def of_totals(self, model: Model) -> dict[int, tuple[float, float]]:
        """Return for totals that use random numbers of their parts how often they use the first's, and the second's."""
        shares = {(one.table, one.names): one.shares for one in self.used}
        found = {}
        for group in groups_of(model):
            one, two, _ = shares.get((group.table, group.names), (0.0, 0.0, 0.0))
            if one + two:
                for n in group.nodes:
                    found[model.layout.plan.nodes[n].cells[0]] = (two, one) if n in group.swapped else (one, two)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"rounding": self.rounding, "tables": [one.to_json() for one in self.tables]}

    def save(self, folder: Path) -> None:
        """Write it into the folder of an audit's model, for `load`."""
        if self.tables:
            (folder / FILE).write_text(json.dumps(self.to_json(), ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Dependence:
        """Read what `save` wrote; nothing is shared where it wrote nothing.

        Raises
        ------
        InputError
            If the file is something else.
        """
        try:
            told = json.loads((folder / FILE).read_text(encoding="utf-8"))
            return cls(told["rounding"], tuple(Table.of_json(one) for one in told["tables"]))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / FILE} cannot be read ({error}). Run the audit again to write it anew.") from error


def roles_of(model: Model) -> dict[str, NDArray[np.int64]]:
    """Return the cells of counts that are split in two, by what they are there: all totals, all men, all women."""
    found: dict[str, list[int]] = {}
    for group in groups_of(model):
        total, first, second = group.names
        for n in group.nodes:
            names = (total, second, first) if n in group.swapped else (total, first, second)
            for name, cell in zip(names, model.layout.plan.nodes[n].cells, strict=True):
                found.setdefault(name, []).append(cell)
    return {name: np.array(sorted(cells)) for name, cells in found.items()}


def sharing_of(model: Model, groups: list[tuple[Group, Shares | None]], least: int = 0) -> Sharing | None:
    """Return what the engine is told: two rows a group, the second for nodes that have their parts the other way round."""
    nodes = model.layout.plan.nodes
    row: NDArray[np.int64] = np.full(len(nodes), -1, dtype=np.int64)
    table = np.zeros((max(2 * len(groups), 1), PATTERNS))
    table[:, 0] = 1.0
    for k, (group, shares) in enumerate(groups):
        if shares is None or (not any(shares) and not least):
            continue
        one, two, parts = (share * min(1.0, (1 - LEAST_OWN) / max(sum(shares), LEAST_OWN)) for share in shares)
        table[2 * k] = 1 - one - two - parts, one, two, parts
        table[2 * k + 1] = 1 - one - two - parts, two, one, parts
        for n in group.nodes:
            row[n] = 2 * k + (n in group.swapped)
    if (row < 0).all():
        return None
    two_way = np.array([isinstance(how, TwoWay) for how in model.mechanisms])
    return Sharing(row, two_way, table, np.full(len(table), least, dtype=np.int64))
