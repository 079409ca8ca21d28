"""Run every benchmark and print one table of ratios. Each ratio is the median of interleaved runs on the same machine.

A row fails when its ratio is worse than its aim by more than a quarter; the command then exits with 1.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from bench import census, linked, posterior, scan, serve, single

TOLERANCE = 0.75


def main() -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("job", "baseline", "baseline time", "our time", "ratio", "aim"):
        table.add_column(name, justify="left" if name in ("job", "baseline") else "right", overflow="fold")
    missed = False
    for row in (*single.rows(), *scan.rows(), *posterior.rows(), *linked.rows(), *census.rows(), *serve.rows()):
        missed |= row.ratio < TOLERANCE * row.aim
        ratio = f"{row.ratio:,.0f}×" if row.ratio >= 100 else f"{row.ratio:.3g}×"
        table.add_row(row.job, row.baseline, f"{row.theirs:.3g} s", f"{row.ours:.3g} s", ratio, f"{row.aim:,}×")
    Console(width=140).print(table)
    if missed:
        sys.exit("A ratio misses its aim by more than a quarter.")


if __name__ == "__main__":
    main()
