"""Symbols: cells as they stand in a file, numbers and symbols such as `x` and `..`, become counts and codes.

Suppressed, not applicable, not available and zero are four different things, and stay so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.release import (
    ABSENT,
    LARGEST,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNREADABLE,
    UNRELIABLE,
    WIDEST_BETWEEN,
    between,
)

_MEANT: Mapping[int, tuple[str, ...]] = {
    SUPPRESSED: ("x", "c", "..c", ": c", ":c", "[c]", "s", "*", "#", "suppressed", "confidential"),
    NOT_APPLICABLE: ("...", "…", "[z]", "not applicable"),
    # Some agencies write a dash for nought, others for nothing known: it is not taken for a count.
    NOT_AVAILABLE: ("..", "na", "n/a", "nan", "null", "none", "[x]", "not available", "-", "–"),
    UNRELIABLE: ("f",),
    # A spreadsheet's own errors, and a formula whose value is not in the file.
    UNREADABLE: ("#ref!", "#n/a", "#value!", "#div/0!", "#name?", "#num!", "#null!", "=?"),
}
SIGNS: Mapping[str, int] = {sign: code for code, signs in _MEANT.items() for sign in signs}
"""What stands in place of a count, in lower case, and what it means."""

FRACTIONS = 0.02
"""A column in which more of the numbers than this have a fraction holds no counts; fewer are slips in a column of counts."""
EXACT_DIGITS = 15
"""Digits that every floating number keeps."""

_BLANKS = " \t\r\n\u00a0\u202f\u2009"
_PADDING = f"{_BLANKS}\"'"
_GROUPED = "^[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:[ \u00a0\u202f\u2009][0-9]{3})+|(?:['\u2019][0-9]{3})+)(?:\\.[0-9]*)?$"
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"

_DIGITS = r"[0-9]{1,3}(?:[, \u00a0\u202f\u2009'\u2019][0-9]{3})+|[0-9]{1,9}"
_FLAG = r"[*†‡§#^~!¹²³⁴⁵⁶⁷⁸⁹]{1,3}|\([a-zA-Z*†0-9]{1,2}\)|\[(?:note )?[0-9a-zA-Z]{1,2}\]|[a-zA-Z]{1,2}\)?"
FLAGGED = rf"^(?:({_DIGITS})[{_BLANKS}]*({_FLAG})|\(({_DIGITS})\)|\*{{1,2}}({_DIGITS}))$"
"""A number with a symbol that leaves it a number: provisional, revised, of low quality, or a reference to a note."""
RANGED = r"^(?:<|≤|&lt;) ?=? ?[0-9]{1,4}$|^[0-9]{1,4} ?[-–—] ?[0-9]{1,4}$"
"""A range in place of a count, as it is mostly written."""
_RANGE = re.compile(r"(?:from )?([0-9]{1,4})\s*(?:-|–|—|to|bis|à|a|tot|\.\.|…)\s*([0-9]{1,4})")
_BELOW = re.compile(
    r"(?:<|&lt;|fewer than|less than|under|below|unter|weniger als|moins de|menos de|meno di|minder dan)\s*([0-9]{1,4})"
)
_UP_TO = re.compile(r"(?:≤|<=|=<|up to|at most|bis zu|jusqu'à|hasta)\s*([0-9]{1,4})|([0-9]{1,4}) or (?:fewer|less)")


class Flagged(NamedTuple):
    """A number with a symbol beside it."""

    number: int
    flag: str


def flagged_number(cell: str) -> Flagged | None:
    """Return the number and the flag of a cell such as `21*`, `30p` or `(1)`; None for anything else.

    >>> flagged_number("21*"), flagged_number("(1)"), flagged_number("1,234 r"), flagged_number("21"), flagged_number("D7")
    (Flagged(number=21, flag='*'), Flagged(number=1, flag='()'), Flagged(number=1234, flag='r'), None, None)
    """
    matched = _FLAGGED.match(cell.strip(_PADDING))
    if matched is None:
        return None
    number = int(re.sub(r"\D", "", matched[1] or matched[3] or matched[4]))
    return Flagged(number, matched[2] or ("()" if matched[3] else "*")) if number <= LARGEST else None


_FLAGGED = re.compile(FLAGGED)


def hidden_range(cell: str) -> tuple[int, int] | None:
    """Return the range that a cell tells in place of its count, as `<5` and `1-4` do.

    >>> hidden_range("<5"), hidden_range("1–4"), hidden_range("fewer than 10"), hidden_range("5 or fewer"), hidden_range("x")
    ((0, 4), (1, 4), (0, 9), (0, 5), None)
    """
    bare = " ".join(cell.strip(_PADDING + "[]()").lower().split())
    if matched := _RANGE.fullmatch(bare):
        low, high = int(matched[1]), int(matched[2])
    elif matched := _BELOW.fullmatch(bare):
        low, high = 0, int(matched[1]) - 1
    elif matched := _UP_TO.fullmatch(bare):
        low, high = 0, int(matched[1] or matched[2])
    else:
        return None
    return (low, high) if low < high <= WIDEST_BETWEEN else None


def as_counts(
    text: pl.Series, symbol: pl.Series | None = None, blank: int = NOT_AVAILABLE
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Turn cells into counts, with the codes of `release` for what is not a count.

    Numbers may be padded, quoted, signed, grouped in threes (`1,234` or `1 234`) or written as `1e+06`; `12.0` is a whole
    number, and `21*` or `(3)` one with a flag. Negative ones stay: noise makes them. `<5` and `1-4` tell a range. Text that
    is neither number nor sign, a number with a fraction and one beyond `LARGEST` are `UNREADABLE`.

    Signs such as `E` (use with caution) and `r` (revised) in `symbol` leave a count as it is. One that says there is no
    count decides where the cell is empty or 0, which some files put there to fill the place. Any other number beside it
    is a contradiction, hence `UNREADABLE`: neither is to be trusted.

    Which cells show a decimal point or have a fraction: a column with many is not a column of counts. Numbers that come
    parsed show only their fraction.

    >>> counts, decimals = as_counts(pl.Series([" 1,235", "4.5", "7.0", "1e+06"]))
    >>> counts.tolist()[0], counts.tolist()[2:], decimals.tolist()
    (1235, [7, 1000000], [False, True, True, False])
    """
    if text.dtype == pl.String:
        counts, decimals = _from_text(text, blank)
    else:
        counts, decimals = _from_numbers(text, blank)
    if symbol is not None:
        _apply(symbol, counts, text)
    return counts, decimals


def plain_numbers(text: pl.Series, thousands: str = "", decimal: str = "") -> pl.Series:
    """Return cells with numbers written as they are in English: no sign between thousands, a point before decimals.

    >>> plain_numbers(pl.Series(["1.234", "15", "x", "1.234.567", "12,5"]), ".", ",").to_list()
    ['1234', '15', 'x', '1234567', '12.5']
    >>> plain_numbers(pl.Series(["1,234"]), decimal=",").to_list()
    ['1.234']
    """
    if thousands in ("", " ", "'") and decimal != ",":
        return text
    bare = text.str.strip_chars(_PADDING)
    if thousands in (".", ","):
        mark = "\\." if thousands == "." else ","
        part = "," if thousands == "." else "\\."
        grouped = bare.str.contains(f"^[+−-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+(?:{part}[0-9]*)?$")
        bare = bare.str.replace_all(thousands, "", literal=True).zip_with(grouped.fill_null(False), bare)
    if decimal == ",":
        # Blanks group digits beside a comma as they do beside a point.
        comma = bare.str.contains("^[+−-]?[0-9]{1,3}(?:[ \u00a0\u202f\u2009]?[0-9]{3})*,[0-9]+$|^[+−-]?[0-9]+,[0-9]+$")
        point = bare.str.replace_all("[ \u00a0\u202f\u2009]", "").str.replace(",", ".", literal=True)
        bare = point.zip_with(comma.fill_null(False), bare)
    return bare


def _from_text(text: pl.Series, blank: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    # Nearly every cell is a plain number or empty; only what is left over is looked at closely.
    plain = text.to_frame("text").with_columns(number=pl.col("text").cast(pl.Int32, strict=False))
    unread = pl.col("number").is_null() & (pl.col("text") != "").fill_null(False)
    left, told = plain.select(left=unread | _beyond(pl.col("number")), count=pl.col("number").fill_null(blank))
    counts = told.to_numpy(writable=True)
    decimals = np.zeros(len(text), dtype=bool)
    if left.any():
        at = left.arg_true()
        cells = text.gather(at)
        distinct = cells.unique()
        known, shown = _closely(distinct, blank)
        place = cells.to_frame("cell").join(
            pl.DataFrame({"cell": distinct, "count": known, "shown": shown}), on="cell", how="left", maintain_order="left"
        )
        counts[at.to_numpy()] = place["count"].to_numpy()
        decimals[at.to_numpy()] = place["shown"].to_numpy()
    return counts, decimals


def _beyond(numbers: pl.Expr) -> pl.Expr:
    """Tell which whole numbers are too large for a count. The lowest ones have no absolute value."""
    return ((numbers > LARGEST) | (numbers < -LARGEST)).fill_null(False)


def _closely(cells: pl.Series, blank: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Read cells that are not plain numbers."""
    bare, joined = pl.col("bare"), pl.col("joined")
    exponent = joined.str.contains("(?i)e-")
    told = _joined(cells).with_columns(
        sign=bare.str.to_lowercase().replace_strict(dict(SIGNS), default=None, return_dtype=pl.Int32),
        number=joined.str.contains(NUMBER),
        value=joined.cast(pl.Float64, strict=False),
        long=(joined.str.len_chars() > EXACT_DIGITS) | exponent,
        point=bare.str.contains(".", literal=True) & ~bare.str.contains("(?i)e"),
    )
    number = told["number"].to_numpy()
    # A cast alone would take "inf" for a number.
    value = np.where(number, told["value"].to_numpy(), np.nan)
    counts, fraction = _whole(value)
    # Floats keep sixteen digits and vanish below 1e-323: of what is written longer, a fraction would be lost.
    for at in np.flatnonzero(number & told["long"].to_numpy()).tolist():
        if _has_fraction(told["joined"][at]):
            counts[at], fraction[at] = UNREADABLE, True
    for at in np.flatnonzero(np.isnan(value)).tolist():
        flagged, ends = flagged_number(told["bare"][at]), hidden_range(told["bare"][at])
        counts[at] = flagged.number if flagged else between(*ends) if ends else UNREADABLE
    sign = told["sign"]
    counts[sign.is_not_null().to_numpy()] = sign.drop_nulls().to_numpy()
    counts[(told["bare"] == "").to_numpy()] = blank
    return counts, number & (told["point"].to_numpy() | fraction)


_BARE = pl.col("cell").str.replace_all("−", "-", literal=True).str.strip_chars(_PADDING)
_JOINED = (
    pl.when(pl.col("bare").str.contains(_GROUPED))
    .then(pl.col("bare").str.replace_all("[, \u00a0\u202f\u2009'\u2019]", ""))
    .otherwise(pl.col("bare"))
)


def _joined(cells: pl.Series) -> pl.DataFrame:
    """Return cells without padding and with a plain minus, and these without signs between thousands."""
    return cells.to_frame("cell").select(bare=_BARE).with_columns(joined=_JOINED)


def joined_digits(cells: pl.Series) -> pl.Series:
    """Return cells without padding and without signs between thousands."""
    return _joined(cells)["joined"]


def _has_fraction(text: str) -> bool:
    """Return whether a number as written is not a whole one, digit by digit.

    >>> _has_fraction("12.000000000000000000001"), _has_fraction("1e-400"), _has_fraction("120e-1"), _has_fraction("-0.0e-9")
    (True, True, False, False)
    """
    mantissa, _, exponent = text.lower().lstrip("+-").partition("e")
    before, _, after = mantissa.partition(".")
    digits, places = before + after, len(after) - int(exponent or 0)
    return places > 0 and digits[max(0, len(digits) - places) :].strip("0") != ""


def _whole(value: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return floating numbers as counts, UNREADABLE if they are none, and which have a fraction; what is missing is 0."""
    numbers = np.where(np.isnan(value), 0.0, value)
    fraction = numbers != np.trunc(numbers)
    bad = fraction | (np.abs(numbers) > LARGEST)
    return np.where(bad, UNREADABLE, np.where(bad, 0, numbers).astype(np.int32)).astype(np.int32), fraction


def _from_numbers(numbers: pl.Series, blank: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    if numbers.dtype == pl.Null:
        return np.full(len(numbers), blank, dtype=np.int32), np.zeros(len(numbers), dtype=bool)
    if numbers.dtype.is_integer():
        whole = numbers.cast(pl.Int64, strict=False)
        beyond = (whole.is_null() & numbers.is_not_null()) | pl.select(_beyond(pl.lit(whole))).to_series()
        counts = whole.fill_null(blank).set(beyond, UNREADABLE).cast(pl.Int32).to_numpy(writable=True)
        return counts, np.zeros(len(numbers), dtype=bool)
    value = numbers.cast(pl.Float64).to_numpy()
    counts, fraction = _whole(value)
    counts[np.isnan(value)] = blank
    return counts, fraction


def _apply(symbol: pl.Series, counts: NDArray[np.int32], text: pl.Series) -> None:
    """Let the column of symbols have its say on `counts`, in place."""
    signed = symbol.is_not_null() & (symbol != "")
    if not signed.any():
        return
    at = signed.fill_null(False).arg_true()
    signs = symbol.gather(at)
    distinct = signs.unique()
    bare = distinct.str.strip_chars(_PADDING).str.to_lowercase()
    # A sign that nobody knows says nothing about the count beside it, and does not stand for one that is not there.
    meaning = bare.replace_strict(dict(SIGNS), default=0, return_dtype=pl.Int32)
    said = signs.replace_strict(distinct, meaning, return_dtype=pl.Int32).to_numpy()
    where = at.to_numpy()
    cells = text.gather(at)
    empty = (cells.is_null() | (cells.str.strip_chars(_PADDING) == "")) if cells.dtype == pl.String else cells.is_null()
    was = counts[where]
    placeholder = empty.fill_null(True).to_numpy() | (was == 0)
    now = np.where(placeholder, said, np.where(was > ABSENT, UNREADABLE, was))
    counts[where] = np.where(said == 0, was, now)
