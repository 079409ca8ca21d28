"""What people call columns: `--exact population` becomes positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from unround.errors import InputError
from unround.readers import SIMULATED
from unround.readers.exact import published_exactly
from unround.release import Column, Release

POPULATION, DWELLINGS = "population", "dwellings"


def with_labels(truth: Release) -> Release:
    """Return a release whose columns have names: those of the simulated profile for its truth, which has only numbers."""
    if truth.product != SIMULATED or any(column.label != column.codes[0] for column in truth.columns):
        return truth
    from unround.simulation import schema

    names = {str(row.id): row.name for row in schema("all").rows}
    columns = tuple(replace(column, label=names.get(column.codes[0], column.label)) for column in truth.columns)
    return replace(truth, columns=columns)


def exact_columns(names: Iterable[str], columns: Sequence[Column]) -> frozenset[int]:
    """Return the columns that people mean.

    Parameters
    ----------
    names : iterable of str
        Keys ("10/men"), codes (all columns that have one), labels, or "population" and "dwellings" for what the Canadian
        census publishes as it is.
    columns : sequence of Column
        What there is.

    Raises
    ------
    InputError
        Where a name fits no column.

    Examples
    --------
    >>> columns = [Column("1", ("1", "total"), "Population, 2021"), Column("10/men", ("10", "men"), "0 to 4 years")]
    >>> exact_columns(["population"], columns), exact_columns(["0 to 4 Years"], columns)
    (frozenset({0}), frozenset({1}))
    """
    found: set[int] = set()
    for given in names:
        whole = _fitting(given.strip(), columns)
        # A name may hold commas itself; only one that fits nothing is taken for several.
        for name in [given] if whole else given.split(","):
            here = whole or _fitting(name.strip(), columns)
            if not here:
                few = ", ".join(_called(column) for column in columns[:5])
                raise InputError(
                    f"--exact {name.strip()}: there is no such column. Give a column's key or name, {POPULATION} or "
                    f"{DWELLINGS}; columns are {few} …; `unround inspect --all` lists them all."
                )
            found |= here
    return frozenset(found)


def _fitting(name: str, columns: Sequence[Column]) -> set[int]:
    """Return the columns with this key; if there are none, with this code; else with this label; else of this kind."""
    tests: tuple[Callable[[Column], bool], ...] = (
        lambda column: column.key == name,
        lambda column: name in column.codes,
        lambda column: column.label.lower() == name.lower(),
        lambda column: _counts(name.lower(), column.label),
    )
    found = ({at for at, column in enumerate(columns) if test(column)} for test in tests)
    return next((fits for fits in found if fits), set())


def _counts(kind: str, label: str) -> bool:
    exact, _ = published_exactly(label)
    return exact is not None and kind == (POPULATION if label.strip().lower().startswith(POPULATION) else DWELLINGS)


def _called(column: Column) -> str:
    return column.key if column.label in (column.key, column.codes[0]) else f"{column.key} ({column.label})"
