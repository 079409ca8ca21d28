"""How numbers are written in a table: what groups their digits, what parts decimals, which signs stand in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from unround.tables.symbols import SIGNS

NUMBER = "^[+−-]?(?:[0-9]{1,3}(?:[.,'\u2019 \u00a0\u202f\u2009][0-9]{3})+|[0-9]+)(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]{1,3})?%?$"
"""What may be a number, in any country's writing."""
PADDING = " \t\r\n\u00a0\u202f\u2009\"'\ufeff"
MOST_SIGNS, LONGEST_SIGN = 30, 24
"""Other texts of a column of counts that are listed; longer ones are text."""
_PLAIN_SHARE = 0.02
"""At least so many of the counts are below 1,000, or a point before three digits is one of decimals."""
_MANY = 40
"""Unless there are so many of them: one decimal in ten ends in a zero."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How numbers are written.

    `signs` are texts in place of a number, and how often each occurs; `blank` is how many cells are empty.
    """

    thousands: str = ""
    decimal: str = ""
    signs: Mapping[str, int] = field(default_factory=dict)
    blank: int = 0


def bare_text(cells: pl.Series) -> pl.Series:
    """Return the cells without what surrounds them."""
    return cells.cast(pl.String).str.strip_chars(PADDING)


def are_numbers(bare: pl.Series) -> pl.Series:
    """Say which cells may be numbers."""
    return bare.str.contains(NUMBER).fill_null(False)


def are_signs(bare: pl.Series) -> pl.Series:
    """Say which cells hold a sign that stands in place of a count."""
    return bare.str.to_lowercase().is_in([*SIGNS, ":", "."]).fill_null(False)


def find_writing(columns: Iterable[pl.Series]) -> Writing:
    """Find out how the numbers of some columns are written.

    Examples
    --------
    >>> find_writing([pl.Series(["1.234", "15", "x", "990"])])
    Writing(thousands='.', decimal=',', signs={'x': 1}, blank=0)
    >>> find_writing([pl.Series(["0.125", "0.5"])]).thousands
    ''
    >>> find_writing([pl.Series(["1,234.5", "15"])]).decimal, find_writing([pl.Series(["12,5", "15"])]).decimal
    ('', ',')
    """
    numbers: Counter[str] = Counter()
    signs: Counter[str] = Counter()
    blank = 0
    for column in columns:
        if column.dtype != pl.String:
            blank += column.null_count()
            continue
        bare = bare_text(column)
        empty = (bare.is_null() | (bare == "")).fill_null(True)
        blank += int(empty.sum())
        fits = are_numbers(bare)
        shapes = bare.filter(fits).str.replace_all("[0-9]", "9").str.strip_chars("+-−%").value_counts()
        for shape, times in shapes.iter_rows():
            numbers[shape] += times
        for sign, times in bare.filter(~fits & ~empty).value_counts().iter_rows():
            signs[sign] += times
    zeros = any(_starts_with_zero(column) for column in columns if column.dtype == pl.String)
    thousands, decimal = _marks(numbers, zeros)
    return Writing(thousands, decimal, dict(signs.most_common(MOST_SIGNS)), blank)


def _starts_with_zero(column: pl.Series) -> bool:
    """Say whether a number such as 0.125 or 0,125 is there, in which the mark cannot group digits."""
    return bool(bare_text(column).str.contains("^[+−-]?0+[.,][0-9]").fill_null(False).any())


def _marks(shapes: Mapping[str, int], zeros: bool) -> tuple[str, str]:
    """Return what groups digits and what parts decimals, told by the shapes of the numbers."""

    def any_like(pattern: str) -> bool:
        return bool(pl.Series([*shapes], dtype=pl.String).str.contains(pattern).any())

    if any_like(r"^9{1,3}(?:\.999){2,}|\.999,") and not any_like(r",999(?:\.|,)"):
        return ".", ","
    if any_like(r"^9{1,3}(?:,999){2,}|,999\.") and not any_like(r"\.999,"):
        return ",", ""
    point, comma = _three_digits(shapes, "."), _three_digits(shapes, ",")
    if any_like(r",(?:9{1,2}|9{4,})$") and not any_like(r"\.9{1,2}$"):
        return ("." if point and not zeros else ""), ","  # 12,5: the comma parts decimals
    if point and not zeros and not any_like(r"\.(?:9{1,2}|9{4,})$"):
        return ".", ","
    if comma and not zeros:
        return ",", ""
    if zeros and any_like(",9") and not any_like(r"\.9"):
        return "", ","
    return "", ""


def _three_digits(shapes: Mapping[str, int], mark: str) -> bool:
    """Say whether a mark stands before three digits wherever it stands, and numbers without it are below 1,000.

    Decimals of three places have it everywhere, so that some counts must do without; or there are so many numbers that
    some of the decimals would end in a zero, which is not written.
    """
    grouped = sum(times for shape, times in shapes.items() if mark in shape)
    plain = sum(times for shape, times in shapes.items() if set(shape) == {"9"} and len(shape) <= 3)
    long = sum(times for shape, times in shapes.items() if set(shape) == {"9"} and len(shape) > 3)
    fits = all(len(shape) - shape.rindex(mark) == 4 for shape in shapes if mark in shape)
    return grouped > 0 and fits and not long and (plain >= _PLAIN_SHARE * (grouped + plain) or grouped >= _MANY)
