"""The sums that are documented of the 2021 profile, as proposals; and columns for totals that are not in the file.

A file that someone put together rarely has everything. Where it has the parts of two tables that count the same people, and
the total of neither, both must still add to the same number: that total becomes a column, without a published count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unround.mechanisms import Unpublished
from unround.release import SUPPRESSED, Column, Counts, Proposal
from unround.tables.profile_2021 import FULL, SAMPLE, documented, table_of


def with_documented(
    columns: Sequence[Column],
    counts: Counts,
    places: Mapping[tuple[int, str], int],
    column: Callable[[int, str], Column],
) -> tuple[list[Column], Counts, list[Proposal]]:
    """Propose what is documented, and add a column for every total that two tables share and the file has not.

    The columns and counts, with the new ones at the end, and the proposals.
    """
    columns, hidden, proposals = list(columns), dict[tuple[int, str], int](), list[Proposal]()
    for sex in dict.fromkeys(sex for _, sex in places):
        at = {number: place for (number, own), place in places.items() if own == sex}
        for total, parts, origin, against in documented(at):
            if total not in at:
                whole = hidden.setdefault((total, sex), len(columns))
                if whole == len(columns):
                    columns.append(_unpublished(column(total, sex), table_of(total)))
            head = at[total] if total in at else hidden[total, sex]
            others = tuple(at[part] for part in against)
            proposals.append(Proposal(head, tuple(at[part] for part in parts), origin, others))
    nothing = np.full((len(counts), len(hidden)), SUPPRESSED, dtype=np.int32)
    return columns, np.hstack([counts, nothing]) if hidden else counts, proposals


def _unpublished(column: Column, table: str) -> Column:
    """Return a column for a total that is not in the file."""
    title = table.removesuffix(FULL).removesuffix(SAMPLE)
    return replace(column, label=f"Total of {title} (not in the file)", block=table, mechanism=Unpublished(), adjusted=0)
