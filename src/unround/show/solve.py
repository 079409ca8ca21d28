"""One system, solved; and how often sums of one shape give their counts away."""

from __future__ import annotations

from collections.abc import Iterator

from unround.expectation import RAREST, Expectation, Number, Residual
from unround.mechanisms.base import ALIKE
from unround.proofs import figure_value
from unround.show import parts as doc
from unround.show.charts import histograms
from unround.show.words import argument, either, large, number, percent, percent_with_error, several, share, span, sparkline
from unround.solution import CellAnswer, FigureAnswer, Solution

MOST_PROOFS, MOST_CELLS, MOST_RESIDUALS = 12, 200, 60
"""What is listed in full; of residuals, longer lists show only those that give something away."""

CELLS = (
    "cell",
    "published",
    "possible",
    "likeliest",
    "prob.",
    doc.TableColumn("distribution", left=True, only=doc.CARD, least=80),
    doc.TableColumn("90% range", left=True, least=60),
    doc.TableColumn("", left=True),
)


@doc.titled("Possible true counts")
def solution(solved: Solution) -> Iterator[doc.Part]:
    """Say everything that a person wants to know: the cells, the best solutions, the proofs, the assumptions."""
    if not solved.feasible:
        yield from _clash(solved)
        return
    yield doc.Text(_total_or_sum(solved))
    yield doc.Table(CELLS, [_cell(cell) for cell in solved.cells[:MOST_CELLS]], "Cells", style="list small")
    if len(solved.cells) > MOST_CELLS:
        yield doc.rest(len(solved.cells), MOST_CELLS, "--json and to_polars() give them all")
    if any(cell.error for cell in solved.cells):
        yield doc.Text("±: the standard error of a probability that was estimated, in points.", doc.QUIET)
    yield from histograms(solved.cells)
    yield doc.Bullets([figure_in_words(figure) for figure in solved.figures])
    yield doc.Text(f"{solutions_counted(solved)} ({solved.engine} engine: {solved.why})")
    if solved.method == "none":
        yield doc.Text("No probabilities: possible ranges and proofs are all that can be said.", doc.STRONG)
    if solved.solutions != 1 and solved.top:
        yield _best(solved)
    if solved.proofs:
        figures = ", and figures were computed from true counts" if solved.figures else ""
        listed = []
        for proof in solved.proofs[:MOST_PROOFS]:
            way = f", through {', '.join(proof.rests_on)}" if proof.rests_on else ""
            listed.append(proof.text + (f" ({argument(proof.depth).capitalize()}{way}.)" if proof.depth > 1 else ""))
        more = len(solved.proofs) - len(listed)
        listed += [f"and {more} more; --json gives them all."] if more else []
        yield doc.Fold(
            f"Proved, provided that the sums hold and exact cells are exact{figures}", [doc.Bullets(listed)], only=""
        )
    yield doc.Fold("Assumed", [doc.Bullets(solved.assumptions, doc.QUIET)], only="")


def _total_or_sum(solved: Solution) -> str:
    """Answer what users of a table ask first: which is right, the total or the sum, and how far off it can be."""
    if len(solved.sums) != 1:
        return ""
    printed, cell = solved.sums[0], solved[solved.sums[0].total]
    off, sum_off = printed.printed_off, printed.added_off
    if off is None or sum_off is None:
        return ""
    added = f"the sum of its parts, {printed.added:,}"
    if cell.kind == "given":
        gap = abs(printed.printed - printed.added)
        return f"The total, {printed.printed:,}, is exact; {added}, is {f'{gap:,} off' if gap else 'the same'}."
    if cell.low == cell.high:
        return f"The true total is {cell.low:,}: the printed total is {printed.printed:,}, {added}."
    furthest = max(abs(printed.printed - value) for value, _ in cell.distribution)
    possible = f"The true total is {span(cell.low, cell.high)}, so that {printed.printed:,} is at most {furthest:,} off"
    if not printed.limited:
        possible = f"With a probability of 90%, the true total is {either(cell.sure)}; nothing limits how far off it can be"
    if printed.printed == printed.added:
        return f"The total and the sum of its parts are both {printed.printed:,}. {possible}; on average {off:.1f}."
    nearer = "the total" if off <= sum_off else "the sum"
    return (
        f"Which is right, the total, {printed.printed:,}, or {added}? Neither is exact; {nearer} is nearer to the truth on "
        f"average: the total is {off:.1f} off, the sum {sum_off:.1f}. {possible}."
    )


def _cell(cell: CellAnswer) -> doc.Line:
    given = cell.kind == "given"
    return [
        cell.name,
        number(cell.published),
        span(cell.low, cell.high),
        likeliest(cell),
        percent_with_error(cell.probability, cell.error),
        "" if given else sparkline(cell.distribution),
        "" if given else either(cell.sure),
        doc.TableCell(cell.kind, badge=cell.kind),
    ]


def figure_in_words(stated: FigureAnswer) -> str:
    """Write for example: x / T = 12.4%, from 12.35% to 12.45% before rounding."""
    figure = stated.published.figure
    value, low, high = (figure_value(figure, number) for number in (stated.published.value, stated.low, stated.high))
    name = figure.name if figure.kind.value in (figure.name, "rate") else f"{figure.kind.value} {figure.name}"
    aside = "" if stated.in_probabilities else "; used for possible ranges alone"
    return f"{name} = {value}: from {low} to {high} before rounding{aside}"


def likeliest(cell: CellAnswer) -> str:
    """Return the likeliest value, or all of them if a few are equally likely."""
    if cell.mode is None or cell.probability is None:
        return ""
    alike = [value for value, p in cell.distribution if p >= cell.probability * (1 - ALIKE)]
    return either(alike) if len(alike) <= 3 else f"{len(alike)} alike"


def solutions_counted(solved: Solution) -> str:
    """Say how many solutions there are."""
    if solved.solutions is None:
        unbounded = [cell.name for cell in solved.cells if cell.high is None]
        if unbounded:
            return f"There are infinitely many solutions: nothing limits {', '.join(unbounded)} from above."
        return "There are too many solutions to count."
    if solved.solutions == 1:
        return "This is the only solution."
    return f"{large(solved.solutions)} solutions."


def _best(solved: Solution) -> doc.Part:
    """Lay out the best solutions, one per row; with many cells, one per column."""
    names = [cell.name for cell in solved.cells if cell.kind != "given"]
    title = "The best solution" if len(solved.top) == 1 else f"The {len(solved.top)} best solutions"
    known = all(ranked.probability is not None for ranked in solved.top)
    title += "" if known else " found; there may be better ones"
    times = ["" if ranked.times_next is None else f"{ranked.times_next:.3g}" for ranked in solved.top]
    chances = [percent(ranked.probability or 0.0) for ranked in solved.top]
    if len(names) <= 8:
        heads = [doc.TableColumn(name) for name in (*names, *(["prob."] if known else []), "times the next")]
        rows = [
            [*(f"{ranked.values[name]:,}" for name in names), *([chance] if known else []), next_]
            for ranked, chance, next_ in zip(solved.top, chances, times, strict=True)
        ]
        return doc.Fold(title, [doc.Table(heads, rows, title, header=-1)], only="")
    rows = [[name, *(f"{ranked.values[name]:,}" for ranked in solved.top)] for name in names]
    rows += [["prob.", *chances]] if known else []
    heads = [doc.TableColumn("cell", left=True), *(doc.TableColumn(f"{rank}.") for rank in range(1, len(solved.top) + 1))]
    return doc.Fold(title, [doc.Table(heads, [*rows, ["times the next", *times]], title)], only="")


def _clash(solved: Solution) -> Iterator[doc.Part]:
    yield doc.Text("No true counts fit.", "wrong")
    clash = solved.clash
    if clash is None:
        yield doc.Text(f"{solved.why[0].upper()}{solved.why[1:]}.", doc.QUIET)
        return
    lines = [f"These cannot all hold: {', '.join(clash.cells)}{' in' if clash.sums else ' and'}"]
    lines += [f"  {total_and_parts}" for total_and_parts in clash.sums]
    lines += [f"  {stated.figure.name} = {figure_value(stated.figure, stated.value)}" for stated in clash.figures]
    lines += [solved.argument] if solved.argument else []
    if not clash.minimum and not clash.figures:
        lines.append("(A smaller set of cells and sums may already clash; the search for it was stopped.)")
    if clash.figures:
        lines.append("The figure may have been computed from rounded counts, or be of other people, or have another step.")
    lines.append(
        "Check the numbers, whether the parts really add up to the total, and how the counts were protected "
        "(! exact, @BASE, ~K within K, ? not published)."
    )
    yield doc.Text("\n".join(lines))


# -- what to expect ---------------------------------------------------------------------------------------------------


@doc.titled("How often sums of this shape reveal their counts")
def expectation(expected: Expectation) -> Iterator[doc.Part]:
    """Say how often sums of one shape give something away."""
    residuals = expected.residuals
    shown = [residual for residual in residuals if residual.kind != "open" or len(residuals) <= MOST_RESIDUALS]
    often = sorted(shown, key=lambda residual: -residual.probability)[:MOST_RESIDUALS]
    kinds = {"proof": "proved", "strong": "likely", "open": "open"}

    def solutions(residual: Residual) -> str:
        said = "too many" if residual.solutions is None else f"{residual.solutions:,}"
        return said if len(said) < 16 else f"{residual.solutions:.2e}"

    columns: doc.Columns = [
        (doc.TableColumn("residual"), lambda residual: f"{residual.residual:+,}" if residual.residual else "0"),
        ("share of sums", lambda residual: f"{float(residual.probability):.6g}"),
        ("solutions", solutions),
        ("cell", "best_cell"),
        ("probability", lambda residual: f"{float(residual.best_probability):.3f}"),
        ("result", lambda residual: doc.TableCell(kinds[residual.kind], badge=kinds[residual.kind])),
    ]
    by_residual = sorted(often, key=lambda residual: residual.residual)
    yield doc.tabulated(by_residual, columns, "Residuals", left=("cell", "result"), header=-1)
    rare, silent = len(shown) - len(often), len(residuals) - len(shown)
    for left_out, what in ((rare, "something, but less often"), (silent, "nothing")):
        if left_out:
            yield doc.Text(f"{several(left_out, 'more residual reveals', 'more residuals reveal')} {what}.", doc.QUIET)
    zero = " (zero part: one published as 0)" if expected.zero_parts else ""
    legend = [
        "residual = published total − sum of the published parts; solutions: how many sets of true counts fit.",
        f"cell: the kind of cell that can be inferred best{zero}; probability: that of its most likely value.",
        f"result: proved if only one solution is left, likely if the probability is {share(expected.threshold)} or more, "
        "otherwise open.",
    ]
    yield doc.Bullets(legend, doc.QUIET)
    said = []
    for name, rate, number_of_sums in (
        ("Proved", expected.proof_share, expected.expected_proofs),
        ("Likely", expected.strong_share, expected.expected_strong),
    ):
        where = several(expected.areas or 0, "area")
        areas = "" if number_of_sums is None else f"; {number_of_sums:,.4g} expected in {where}"
        said.append(f"{name}: {how_often(rate, expected.exact)}{areas if rate else ''}.")
    yield doc.Text("\n".join(said))
    yield doc.Fold("Assumed", [doc.Bullets(expected.assumptions, doc.QUIET)], only="")


def how_often(rate: Number, exact: bool) -> str:
    """Say which share of sums it is, in words.

    >>> from fractions import Fraction
    >>> how_often(Fraction(2, 625), True), how_often(Fraction(3, 4), True), how_often(Fraction(1), True)
    ('0.0032 of all sums, 1 in 312.5', '0.75 of all sums', 'every sum')
    >>> how_often(Fraction(0), True), how_often(0.0, False)
    ('none, whatever is published', 'fewer than 1 sum in 10^290, if any')
    """
    if not rate:
        return "none, whatever is published" if exact else f"fewer than 1 sum in 10^{RAREST}, if any"
    said = f"{float(rate):.6g}"
    if said == "1":
        return "every sum" if exact and rate == 1 else "every sum, or nearly"
    return f"{said} of all sums" + (f", 1 in {float(1 / rate):,.6g}" if rate < 0.5 else "")
